"""Coordinate-wise rules against matrix products and library sorts, single thread, float32.

    python benchmarks/selection.py

For each setting: the time of one Gram product plus one mixing product on the same pool, the time of `numpy.sort` along
the neighbour axis of the gathered (R, K, D) array (gathering not counted), and each rule's time as a multiple of the
first and a fraction of the second. All in one run, the best of several repetitions.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable, Iterator
from functools import partial

import networkx as nx
import numpy as np

from byzmesh.rules.base import Rule, rules
from byzmesh.rules.inbox import make_inbox


def best(function: Callable[[], object], seconds: float = 1.0) -> float:
    """Best time of several calls, without the first (which compiles)."""
    function()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < stop:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def setting(name: str) -> tuple[int, int, np.ndarray]:
    """(honest workers, f, index): the published two-castle graph, or 1,000 honest workers on a 10-regular graph."""
    if name == "two-castle":
        graph: nx.Graph[int] = nx.Graph()
        graph.add_edges_from((i, j) for i in range(12) for j in range(i) if i - j != 6)
        # the lying nodes 7 and 9 become the last rows
        place = {node: row for row, node in enumerate([0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 7, 9])}
        honest, f = 10, 2
    else:
        graph = nx.random_regular_graph(10, 1000, seed=0)
        place = {node: node for node in graph}
        honest, f = 1000, 2
    node_of = {row: node for node, row in place.items()}
    index = [[row, *sorted(place[node] for node in graph[node_of[row]])] for row in range(honest)]
    return honest, f, np.array(index, np.int64)


def measure(name: str, columns: int) -> Iterator[str]:
    """The lines of one setting."""
    honest, f, index = setting(name)
    random = np.random.default_rng(0)
    rows = random.standard_normal((int(index.max()) + 1, columns), dtype=np.float32)
    mixing = random.standard_normal((honest, len(rows)), dtype=np.float32)
    weight = np.full(index.shape, 1.0 / index.shape[1])

    def apply(rule: Rule) -> None:
        # a new pool each time, because it caches its Gram matrix
        inbox = make_inbox(
            rule,
            rows[:honest],
            weight=weight,
            f=np.full(honest, f),
            receiver=index[:, 0],
            messages=rows[honest:],
            index=index,
        )
        rule.apply(inbox, None)

    products = best(lambda: (rows @ rows.T, mixing @ rows))
    sort = best(partial(np.sort, rows[index], axis=1))
    for rule in ("CooMed", "TriMean", "MeaMed", "Bulyan"):
        taken = best(partial(apply, rules.build(rule)))
        yield (
            f"{name:12}{columns:9}{products * 1e3:13.3f}{sort * 1e3:10.2f}   {rule:8}{taken * 1e3:8.2f}"
            f"{taken / products:12.2f}{sort / taken:13.1f}"
        )


def main() -> None:
    """Print the table."""
    heads = f"{'graph':12}{'D':>9}{'products ms':>13}{'sort ms':>10}   {'rule':8}{'ms':>8}"
    print(heads + f"{'x products':>12}{'sort / rule':>13}")
    for name, columns in (("two-castle", 7850), ("two-castle", 1_000_000), ("10-regular", 7850)):
        for line in measure(name, columns):
            print(line)


if __name__ == "__main__":
    main()

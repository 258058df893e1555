"""Aggregation per rule beside one Gram product plus one mixing product on the same pool: ratios in one run, one thread.

    python benchmarks/aggregation.py [--quick]

The pool is what the receivers of a network hold: all honest models and the lies of a sign-flipping attack as vectors.
Times are the best of several turns taken in rotation. Limits (issue 2): distance rules 3x (2x at D = 1,000,000), GeoMed
5x, CooMed and TriMean 12x and at least 8x faster than numpy.sort along the neighbour axis.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import byzmesh as bm
from byzmesh.compiled import keep_memory, limit_threads
from byzmesh.round import Round
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.simulation.exchange import Exchange
from byzmesh.studies.bench import best_of

RULES = ("WeiMean", "IOS", "FABA", "Krum", "NNA", "SCC", "CC", "GeoMed", "CooMed", "TriMean")


def turns(network: bm.Network, dimension: int) -> dict[str, Callable[[], Any]]:
    """What is timed on one network and dimension."""
    models = np.random.default_rng(0).normal(size=(len(network.honest), dimension)).astype(np.float32)
    forged = bm.forge("sign-flipping", network, models)
    lies = bm.Forged(forged.liar, forged.victim, forged.row, models, rows=forged.dense())
    pool = np.concatenate([models, lies.rows])
    mixing = np.zeros((len(models), len(pool)), np.float32)
    exchange, bound = Exchange(network), network.bounds("exact")
    index, _ = exchange.slots(lies)
    np.put_along_axis(mixing, index, exchange.weight.astype(np.float32), axis=1)

    def products() -> None:
        pool @ pool.T
        mixing @ pool

    def aggregated(rule: bm.Rule) -> Any:
        inbox = exchange.inbox(rule, models, exchange.deliver(lies, models), f=bound, round=Round())
        return rule.apply(inbox, rule.init(models))

    calls: dict[str, Callable[[], Any]] = {"products": products}
    for name in RULES:
        calls[name] = partial(aggregated, make_rule(name))
    if dimension * index.size * 4 < 2**30:
        held = pool[index]
        calls["numpy.sort"] = lambda: np.sort(held, axis=1)
    return calls


def main() -> None:
    quick = "--quick" in sys.argv
    keep_memory()
    regular = bm.network("k-regular", n=1000, k=10, byzantine=50, seed=0)
    settings = [
        ("two-castle, D = 7,850", bm.network("paper/two-castle"), 7850, 50, 9),
        ("two-castle, D = 1,000,000", bm.network("paper/two-castle"), 1_000_000, 1, 5),
        ("10-regular of 1,000, D = 7,850", regular, 7850, 1, 5),
    ]
    table: dict[str, list[str]] = {name: [] for name in ("products", *RULES, "numpy.sort")}
    with limit_threads(1):
        for _, network, dimension, rounds, repeats in settings:
            best = best_of(turns(network, dimension), rounds, 2 if quick else repeats)
            for name, cells in table.items():
                cells.append(f"{best[name] / best['products']:.2f}" if name in best else "-")
            table["products"][-1] = f"{1e3 * best['products']:.2f} ms"
    print("| aggregation | " + " | ".join(name for name, *_ in settings) + " |")
    print("| --- |" + " ---: |" * len(settings))
    for name, cells in table.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()

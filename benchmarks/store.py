"""How fast the store is at 100,000 runs: python benchmarks/store.py [RUNS]

Builds a store in a temporary folder (about 8 kB a run), then times what users wait for. The bounds of the project: a
filtered list under 1 s, opening independent of the size, finishing a run under 1 % of it.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # noqa: F401  # so that the frame's time is not that of the import

from byzmesh.store import Store, open_store, this_process
from byzmesh.store.database import transaction
from byzmesh.store.writing import end_run

METRICS = ("accuracy", "loss", "H", "CE", "distance", "round", "cut", "kept")
EVALUATIONS = 100


def configs(count: int) -> Iterator[dict[str, Any]]:
    """A grid of rules, attacks, graphs and seeds with the forty-odd fields of a resolved config."""
    rules = ("IOS", "Krum", "FABA", "CC", "SCC", "CooMed", "GeoMed", "TriMean")
    attacks = ("none", "gaussian", "sign-flipping", "isolation", "ALIE")
    for number in range(count):
        yield {
            "rule": {"name": rules[number % 8], "f": "exact", "tau": 0.1},
            "attack": {"name": attacks[number // 8 % 5], "z": None},
            "network": {"name": ("two-castle", "octopus")[number // 40 % 2], "k": 6, "byzantine": [7, 9]},
            "seed": number // 80,
            **{f"group{group}": {f"option{option}": 0.5 * option for option in range(8)} for group in range(4)},
        }


def timed(what: str, function: Callable[[], Any], repeat: int = 3) -> Any:
    """Run, print the best time, return the answer."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        answer = function()
        best = min(best, time.perf_counter() - start)
    print(f"{what:60s} {best * 1e3:10.2f} ms")
    return answer


def build(store: Store, count: int) -> None:
    """Finish all runs but one in a few large transactions."""
    start = time.perf_counter()
    keys = store.plan_all(configs(count))
    planned = time.perf_counter()
    series = {name: np.random.default_rng(0).standard_normal(EVALUATIONS) for name in METRICS}
    edges = np.array([[sender, receiver, 5, 2000] for sender in range(9) for receiver in range(9)])
    with transaction(store._connection, store.path) as connection:
        for key in keys[1:]:
            end_run(connection, key, None, {"status": "finished", "rounds": 2000, "seconds": 1.0}, series, edges)
    ended = time.perf_counter()
    size = store.path.stat().st_size / 2**20
    print(f"{count} runs: planned in {planned - start:.1f} s, ended in {ended - planned:.1f} s, {size:.0f} MB")


def main(count: int) -> None:
    """Build and time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        with open_store(path) as store:
            build(store, count)
        timed("open and close", lambda: open_store(path).close())
        timed("open and close, readonly", lambda: open_store(path, readonly=True).close())
        with open_store(path) as store:
            found = timed("list: rule and seed", lambda: store.list({"rule.name": "IOS", "seed": 3}))
            print(f"{'':8s}{len(found)} runs")
            found = timed("list: rule, attack, graph", lambda: store.list(
                {"rule.name": "IOS", "attack.name": "ALIE", "network.name": "octopus"}))  # fmt: skip
            print(f"{'':8s}{len(found)} runs")
            found = timed("list: rule (an eighth of all)", lambda: store.list({"rule.name": "IOS"}))
            print(f"{'':8s}{len(found)} runs")
            timed(
                "list: a field that all share, finished, latest 50",
                lambda: store.list({"network.k": 6}, "finished", 50),
            )
            timed("list: everything", store.list, 1)
            timed("get by prefix", lambda: store.get(found[0].key[:16]))
            timed("series of a run", lambda: store.series(found[0].key))
            timed("frame of an eighth", lambda: store.frame({"rule.name": "IOS"}), 1)
            key = store.list(status="planned")[0].key
            timed("claim", lambda: store.claim(key, this_process()), 1)
            timed("heartbeat", lambda: store.heartbeat(key, this_process()))
            series = {name: np.arange(float(EVALUATIONS)) for name in METRICS}
            timed("provenance and finish, first in a process", lambda: store.finish(key, "interrupted", series), 1)
            timed("finish", lambda: store.finish(key, "interrupted", series))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)

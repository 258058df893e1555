"""What a changing network costs: rounds under processes beside rounds of the network itself, in one run, alternating.

python benchmarks/processes.py                     # 12 workers: the paper's two-castle graph; 1,000: 10-regular
python benchmarks/processes.py 12 --rule trimean   # one size, another rule; --attack as often as wanted
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

import byzmesh as bm
from byzmesh.simulation.engine import TOGETHER


def edges(n: int) -> list[list[list[int]]]:
    """Three rounds: a ring, workers two apart, and workers three apart."""
    return [[[node, (node + step) % n] for node in range(n)] for step in (1, 2, 3)]


def processes(n: int) -> dict[str, Any]:
    """What may happen to a network of n workers."""
    return {
        "link-loss 10%": {"name": "link-loss", "p": 0.1},
        "sleep 10%": {"name": "sleep", "p": 0.1},
        "churn": "churn",
        "responders, f = 2": {"name": "responders", "f": 2},
        "random-pull of 5": {"name": "random-pull", "s": 5},
        "random-pull of all": {"name": "random-pull", "s": 1000},
        "matching": "matching",
        "mobile": {"name": "mobile", "radius": 0.6 if n < 100 else (10.0 / (np.pi * n)) ** 0.5},
        "one-peer-exponential": "one-peer-exponential",
        "schedule of 3 rounds": {"name": "schedule", "edges": edges(n)},
        "loss, sleep, pull": [
            {"name": "link-loss", "p": 0.1},
            {"name": "sleep", "p": 0.1},
            {"name": "random-pull", "s": 9},
        ],
        "late 10%": {"name": "late", "p": 0.1},
    }


NETWORKS: dict[int, tuple[Any, int, int]] = {
    12: ("paper/two-castle", 64, 15),
    1000: ({"name": "k-regular", "n": 1000, "k": 10, "byzantine": 50}, 4, 5),
}
"""Workers: network, rounds per turn, turns."""


def seconds(run: bm.Simulation, rounds: int) -> float:
    """CPU seconds per round, as a run computes them: static ones several at a time."""
    began = time.process_time()
    for first in range(0, rounds, TOGETHER):
        run.steps(min(TOGETHER, rounds - first))
    return (time.process_time() - began) / rounds


def main() -> None:
    """Print the time per round and the ratio to the network itself, median over the turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(NETWORKS))
    parser.add_argument("--rule", default="ios")
    parser.add_argument("--attack", action="append")
    given = parser.parse_args()
    for size in given.sizes:
        network, rounds, turns = NETWORKS[size]
        for attack in given.attack or ["sign-flipping", "ALIE"]:
            problem = {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 1.0}}
            base = {"problem": problem, "network": network, "rule": given.rule, "attack": attack, "rounds": 10**6}
            runs = {
                name: bm.prepare(process=process, evaluate_every=10**6, dtype="float32", **base)
                for name, process in {"static": None, **processes(size)}.items()
            }
            for run in runs.values():
                seconds(run, max(2, rounds // 4))
            times = {name: np.array([]) for name in runs}
            for _ in range(turns):
                for name, run in runs.items():
                    times[name] = np.append(times[name], seconds(run, rounds))
            still = 1e3 * float(np.median(times["static"]))
            load = os.getloadavg()[0]
            print(f"{size} workers, {given.rule} under {attack}: {still:.3f} ms per static round, load {load:.1f}")
            for name in list(runs)[1:]:
                print(f"  {name:22} {np.median(times[name] / times['static']):.2f} times", flush=True)


if __name__ == "__main__":
    main()

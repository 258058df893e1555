"""What a changing network costs: rounds under processes beside rounds of the network itself, in one run, alternating.

python benchmarks/processes.py            # 12 workers: the paper's two-castle graph; 1,000: a random 10-regular graph
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import byzmesh as bm

PROCESSES: dict[str, Any] = {
    "link-loss 10%": {"name": "link-loss", "p": 0.1},
    "sleep 10%": {"name": "sleep", "p": 0.1},
    "churn": "churn",
    "random-pull of all": {"name": "random-pull", "s": 1000},
    "loss, sleep, pull": [
        {"name": "link-loss", "p": 0.1},
        {"name": "sleep", "p": 0.1},
        {"name": "random-pull", "s": 9},
    ],
    "late 10%": {"name": "late", "p": 0.1},
}
NETWORKS: dict[str, tuple[Any, int, int]] = {
    "12 workers": ("paper/two-castle", 200, 7),
    "1,000 workers": ({"name": "k-regular", "n": 1000, "k": 10, "byzantine": 50}, 4, 5),
}
"""Network, rounds per turn, turns."""


def seconds(run: bm.Simulation, rounds: int) -> float:
    """CPU seconds per round."""
    began = time.process_time()
    for _ in range(rounds):
        run.step()
    return (time.process_time() - began) / rounds


def main() -> None:
    """Print the time per round and the ratio to the network itself, median over the turns."""
    for size, (network, rounds, turns) in NETWORKS.items():
        for attack in sys.argv[1:] or ["sign-flipping", "ALIE"]:
            problem = {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 1.0}}
            base = {"problem": problem, "network": network, "rule": "ios", "attack": attack, "rounds": 10**6}
            runs = {
                name: bm.prepare(process=process, evaluate_every=10**6, dtype="float32", **base)
                for name, process in {"static": None, **PROCESSES}.items()
            }
            for run in runs.values():
                seconds(run, max(2, rounds // 4))
            times = {name: np.array([]) for name in runs}
            for _ in range(turns):
                for name, run in runs.items():
                    times[name] = np.append(times[name], seconds(run, rounds))
            still = float(np.median(times["static"]))
            print(f"{size}, IOS under {attack}: {still * 1e3:.3f} ms per round of the network itself")
            for name in PROCESSES:
                print(f"  {name:20} {np.median(times[name] / times['static']):.2f} times")


if __name__ == "__main__":
    main()

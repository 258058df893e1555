"""One round of each rule before and after a change: two checkouts, alternating, in one run.

    python benchmarks/before_after.py BEFORE [AFTER]      each the Python of an environment with that checkout installed

    python benchmarks/before_after.py ../before/.venv/bin/python
    python benchmarks/before_after.py ../before/.venv/bin/python --rules IOS,TriMean --repeats 30

Two-castle, softmax regression on MNIST, one class per worker, sign-flipping, `profile: paper`, one thread. Each
checkout is a process of its own; only one computes at a time, in short turns, and the best turn of each counts. Times
are processor time, which other processes disturb less than the clock. AFTER is this Python by default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RULES = "IOS,WeiMean,FABA,CC,SCC,Krum,GeoMed,CooMed,TriMean"
DTYPES = ("float32", "float64")
WARM = 700  # rounds before the first turn, after which much used sorting networks are compiled
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def compute(run: Any, rounds: int) -> None:
    """Rounds as a run computes them: several at a time, where the checkout can."""
    if hasattr(run, "steps"):
        run.steps(rounds)
        return
    for _ in range(rounds):
        run.step()


def answer() -> None:
    """In the process of a checkout: read (rule, dtype, rounds) from each line, print the milliseconds per round."""
    import time

    import byzmesh as bm
    from byzmesh.compiled import limit_threads

    runs: dict[tuple[str, str], Any] = {}
    for line in sys.stdin:
        rule, dtype, rounds = json.loads(line)
        if (rule, dtype) not in runs:
            runs[rule, dtype] = bm.prepare(
                problem={"name": "softmax", "partition": "one-class"},
                network="paper/two-castle",
                rule=rule,
                attack="sign-flipping",
                dtype=dtype,
                rounds=1 << 40,
                evaluate_every=1 << 40,
                profile="paper",
            )
            compute(runs[rule, dtype], WARM)
        run = runs[rule, dtype]
        with limit_threads(1):
            run.step()
            began = time.process_time()
            compute(run, rounds)
            print(1e3 * (time.process_time() - began) / rounds, flush=True)


class Checkout:
    """A process that computes rounds with the byzmesh of one environment."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), "--answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )

    def milliseconds(self, rule: str, dtype: str, rounds: int) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([rule, dtype, rounds]) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="Python of the environment with the checkout before the change")
    parser.add_argument("after", nargs="?", default=sys.executable)
    parser.add_argument("--rules", default=RULES, help="separated by commas")
    parser.add_argument("--rounds", type=int, default=16, help="rounds per turn")
    parser.add_argument("--repeats", type=int, default=25, help="turns of each checkout and rule")
    options = parser.parse_args()
    before, after = Checkout(options.before), Checkout(options.after)
    print("| rule | float32: before | after | ratio | float64: before | after | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for rule in options.rules.split(","):
        cells = []
        for dtype in DTYPES:
            turns = [
                [checkout.milliseconds(rule, dtype, options.rounds) for checkout in (before, after)]
                for _ in range(options.repeats + 1)
            ]
            old, new = (min(column) for column in zip(*turns[1:]))
            cells += [f"{old:.3f}", f"{new:.3f}", f"{old / new:.2f}"]
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    answer() if sys.argv[1:] == ["--answer"] else main()

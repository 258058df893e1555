"""What a sweep costs besides its rounds: python benchmarks/sweep.py [RUNS]

The same runs (2,000 rounds each, IOS under sign-flipping on the two-castle graph) twice: back to back in two processes
that do nothing else, timed from their first round to their last; and by `byzmesh sweep --workers 2`, timed from the
start of the command to its end. The bound of the project: 1.15 for 64 runs.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROCESSES = 2
BASE = {"network": "paper/two-castle", "attack": "sign-flipping", "rounds": 2000, "evaluate_every": 100}


def back_to_back(seeds: list[int], barrier: Any, answer: Any) -> None:
    """Compute the runs and return how long they took."""
    from byzmesh.config.schema import resolve
    from byzmesh.sweeps.build import build

    configs = [resolve({**BASE, "seed": seed}) for seed in seeds]
    build({**configs[0], "rounds": 5}).run()
    barrier.wait()
    start = time.perf_counter()
    for config in configs:
        build(config).run()
    answer.put(time.perf_counter() - start)


def rounds_alone(runs: int) -> float:
    """Seconds of the rounds themselves."""
    spawn = multiprocessing.get_context("spawn")
    barrier, answer = spawn.Barrier(PROCESSES), spawn.Queue()
    processes = [
        spawn.Process(target=back_to_back, args=(list(range(first, runs, PROCESSES)), barrier, answer))
        for first in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    taken: float = max(answer.get() for _ in processes)
    for process in processes:
        process.join()
    return taken


def whole_sweep(runs: int) -> float:
    """Seconds of the command."""
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(json.dumps({"base": BASE, "axes": {"seed": {"from": 0, "to": runs - 1}}}))
        command = [sys.executable, "-c", "from byzmesh.cli import main; main()", "sweep", str(grid)]
        start = time.perf_counter()
        subprocess.run(
            [*command, "--store", str(Path(folder) / "runs.db"), "--workers", str(PROCESSES)],
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start


def main(runs: int) -> None:
    """Measure both and compare."""
    alone = rounds_alone(runs)
    print(f"{runs} runs, rounds alone in {PROCESSES} processes: {alone:8.2f} s")
    whole = whole_sweep(runs)
    print(f"{runs} runs, byzmesh sweep --workers {PROCESSES}:    {whole:8.2f} s   ratio {whole / alone:.3f}")


if __name__ == "__main__":
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)

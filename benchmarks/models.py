"""Many local steps of AdamW beside a plain PyTorch loop, what of a round is not local work, and how much memory long
models need.

    python benchmarks/models.py                 the GPT of reports/models, 8 workers, 20 steps per round
    python benchmarks/models.py --memory        four vectors of 1e8 numbers, aggregated in place, in another process

Times are the least of several interleaved repetitions of processor time, so ratios of one run compare even on a busy
machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import byzmesh as bm
from byzmesh.compiled import limit_threads
from byzmesh.problems.neural.flat import load

TEXT = Path(__file__).parent.parent / "examples" / "texts" / "genesis.txt"
WORKERS, STEPS, STEP = 8, 20, 0.003


def simulation(rule: str, width: int, depth: int) -> Any:
    """The GPT of reports/models with an outer step, among two liars."""
    return bm.prepare(
        problem={
            "name": "torch",
            "module": {"name": "gpt", "width": width, "depth": depth, "heads": 4},
            "dataset": {"text": str(TEXT), "context": 32},
            "batch": 4,
            "gradients": "loop",
        },
        network={"name": "complete", "n": WORKERS, "byzantine": [6, 7]},
        attack={"name": "reflection", "reference": "round", "scale": 3.0},
        rule=rule,
        step=STEP,
        local={"optimizer": "AdamW", "steps": STEPS, "outer": "nesterov"},
        rounds=1000,
        evaluate_every=1000,
    )


def plain_loop(run: Any) -> Callable[[int], None]:
    """The same local steps as a script without byzmesh does them: a module and an optimizer per worker."""
    task, workers = run.task, len(run.models)
    modules = [task.factory() for _ in range(workers)]
    for module, vector in zip(modules, run.models, strict=True):
        load(module, vector)
    optimizers = [torch.optim.AdamW(module.parameters(), lr=STEP) for module in modules]
    rows = np.arange(workers)

    def steps(round: int) -> None:
        for number in range(round * STEPS, (round + 1) * STEPS):
            x, y = task.batches(number, rows)
            for row, (module, optimizer) in enumerate(zip(modules, optimizers, strict=True)):
                optimizer.zero_grad()
                task.net.loss(module(x[row]), y[row]).backward()
                optimizer.step()

    return steps


def timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def overhead(width: int, depth: int, repetitions: int) -> None:
    run = simulation("IOS", width, depth)
    by_hand = plain_loop(run)
    ours, theirs, whole = [], [], []
    with limit_threads(1):
        torch.set_num_threads(1)
        run.step()
        half_steps, spent = run.local_round.half_steps, [0.0]

        def measured(*given: Any) -> Any:
            began = time.process_time()
            made = half_steps(*given)
            spent[0] = time.process_time() - began
            return made

        run.local_round.half_steps = measured
        for number in range(repetitions + 1):
            plain = timed(lambda number=number: by_hand(number))  # type: ignore[misc]
            round = timed(run.step)
            if number:
                theirs.append(plain)
                ours.append(spent[0])
                whole.append(round - spent[0])
    local, plain, rest = min(ours), min(theirs), min(whole)
    print(
        f"gpt, width {width}, depth {depth}: D = {run.models.shape[1]:,}, {len(run.models)} honest workers, H = {STEPS}"
    )
    print(f"  local steps {local:.3f} s, plain PyTorch loop {plain:.3f} s: {local / plain - 1.0:+.1%}")
    print(f"  IOS, lies and outer Nesterov step {rest:.4f} s: {rest / (local + rest):.2%} of a round")


def memory(columns: int, workers: int = 4) -> None:
    """Aggregate the vectors of all workers in place; what the process has needed at most, beyond the vectors."""
    from byzmesh.rules.streamed import apply_streamed

    rule, index = bm.rule("IOS"), np.array([[r, *(m for m in range(workers) if m != r)] for r in range(workers)])
    told: dict[str, Any] = {
        "weight": np.full((workers, workers), 1.0 / workers),
        "f": np.ones(workers, np.int64),
        "receiver": np.arange(workers),
        "index": index,
        "dtype": np.float32,
    }
    small = list(np.ones((workers, 10), np.float32))
    apply_streamed(rule, small, [], small, **told)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    models = np.empty((workers, columns), np.float32)
    for row in range(workers):
        models[row] = 0.01 * (row + 1)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = timed(lambda: apply_streamed(rule, list(models), [], list(models), **told))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{workers} workers, D = {columns:,}: models {models.nbytes / 1e9:.2f} GB, process {after / 1e9:.2f} GB, of it "
        f"{(after - held) / 1e6:.0f} MB since the models were there and {before / 1e6:.0f} MB before; {seconds:.1f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", nargs="?", type=int, const=100_000_000, help="numbers per worker")
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    if given.memory:
        child = [sys.executable, "-c", f"import runpy; runpy.run_path({__file__!r})['memory']({given.memory})"]
        raise SystemExit(subprocess.run(child, check=False).returncode)
    overhead(128, 1, given.repetitions)
    overhead(64, 2, given.repetitions)

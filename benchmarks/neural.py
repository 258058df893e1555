"""Gradients of 10 workers' modules beside a Python loop over modules with backward(), and what a round consists of.

    python benchmarks/neural.py [--threads 2]

Times are the least of several interleaved repetitions, so ratios of one run compare even on a busy machine. The last
part measures memory in a process of its own: the growth over what the same process holds before the first round.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from byzmesh.compiled import keep_memory, limit_threads
from byzmesh.problems import problem
from byzmesh.problems.neural.flat import load
from byzmesh.problems.neural.gradients import batched, loop
from byzmesh.problems.neural.task import TorchTask
from byzmesh.round import FIRST
from byzmesh.simulation.exchange import forge
from byzmesh.sweeps.build import prepare

WORKERS = 10
MODULES = {
    "linear": "linear",
    "mlp": "mlp",
    "cnn": "cnn",
    "cnn, D = 952,210": {"name": "cnn", "hidden": 600},
    "resnet8": "resnet8",
}


def least(calls: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Milliseconds per call, the calls interleaved."""
    best = dict.fromkeys(calls, np.inf)
    for repetition in range(repetitions + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if repetition:
                best[name] = min(best[name], (time.perf_counter() - begin) * 1e3)
    return best


def by_hand(
    task: TorchTask, models: np.ndarray, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor
) -> Callable[[], None]:
    """The usual way without byzmesh: a module per worker, zero_grad, backward, the gradients concatenated."""
    made = [task.factory() for _ in range(WORKERS)]
    for module, vector in zip(made, models):
        load(module, vector)

    def run() -> None:
        for row, module in enumerate(made):
            module.zero_grad()
            torch.nn.functional.cross_entropy(module(x[row]), y[row]).backward()
            torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()], out=out[row])

    return run


def gradients(threads: int) -> None:
    print(f"{'module':18} {'D':>8} {'by hand ms':>11} {'batched':>8} {'loop':>8} {'by hand / ours':>15}")
    torch.set_num_threads(threads)
    for name, module in MODULES.items():
        task = problem("torch", module=module).bind(workers=WORKERS, threads=threads)
        assert isinstance(task, TorchTask)
        models = task.initial()
        there, out = torch.from_numpy(models), torch.empty(models.shape)
        x, y = task.batches(0, np.arange(WORKERS))
        calls: dict[str, Callable[[], object]] = {"by hand": by_hand(task, models, x, y, out)}
        for way in (batched, loop):
            calls[way.__name__] = functools.partial(way, task.net, there, x, y, out)
        took = least(calls, 5 if "8" in name or "," in name else 20)
        ratio = took["by hand"] / min(took["batched"], took["loop"])
        times = f"{took['by hand']:11.2f} {took['batched']:8.2f} {took['loop']:8.2f}"
        print(f"{name:18} {task.dimension:8} {times} {ratio:15.2f}")


def shares(threads: int) -> None:
    """How much of a round of the large CNN is aggregation."""
    run = prepare(
        problem={"name": "torch", "module": MODULES["cnn, D = 952,210"]}, network="paper/two-castle", rule="IOS",
        attack="sign-flipping", rounds=100, threads=threads, step=0.01,
    )  # fmt: skip
    with limit_threads(threads):
        run.step()
        delivery = run.exchange.deliver(forge("sign-flipping", run.network, run.half), run.half)
        whole = least({"round": run.step}, 8)["round"]

        def aggregation() -> None:
            run.rule.apply(run.exchange.inbox(run.rule, run.half, delivery, f=run.bound, round=FIRST), run.rule_state)

        part = least({"aggregation": aggregation}, 8)["aggregation"]
    print(f"CNN with D = {run.task.dimension:,}, batch 32, IOS: round {whole:.0f} ms, aggregation {part:.1f} ms "
          f"({100 * part / whole:.0f}%)")  # fmt: skip


def memory() -> None:
    """Peak growth during rounds of the large CNN over N models, their gradients and one batch."""
    run = prepare(
        problem={"name": "torch", "module": MODULES["cnn, D = 952,210"]}, network="paper/two-castle", rule="IOS",
        attack="sign-flipping", rounds=100,
    )  # fmt: skip
    small = prepare(problem={"name": "torch", "module": "cnn"}, network="paper/two-castle", rule="IOS", rounds=2,
                    attack="sign-flipping")  # fmt: skip
    small.step()  # libraries and kernels are loaded
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    before = status("VmRSS") - run.models.nbytes / 2**20
    for _ in range(3):
        run.step()
    grew = status("VmHWM") - before
    assert isinstance(run.task, TorchTask)
    batch = WORKERS * 32 * 784 * 4 / 2**20 + run.task.net.saved / 2**20
    needed = 2 * run.models.nbytes / 2**20 + batch
    print(
        f"memory: {WORKERS} models, their gradients and a batch are {needed:.0f} MiB; three rounds held {grew:.0f} MiB"
    )


def status(name: str) -> float:
    """A line of /proc/self/status in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    keep_memory()
    if arguments.memory:
        memory()
        return
    gradients(arguments.threads)
    shares(arguments.threads)
    subprocess.run([sys.executable, __file__, "--memory"], check=True)


if __name__ == "__main__":
    main()

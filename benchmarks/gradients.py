"""Gradients of 10 workers x 32 samples: products over non-zero pixels against gathered dense batches and BLAS.

Run with OPENBLAS_NUM_THREADS=1. Times are the least of several interleaved repetitions, so ratios of one run compare
even on a busy machine. The density at which the ratio passes 1 is where datasets.py stops storing non-zero pixels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from byzmesh.problems import Dataset, dataset, problem
from byzmesh.problems.data.datasets import nonzero
from byzmesh.problems.linear.products import rows_of
from byzmesh.problems.linear.task import LinearTask

WORKERS, ROUNDS, REPETITIONS = 10, 50, 8


def least(calls: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """Microseconds per call, the calls interleaved."""
    best = dict.fromkeys(calls, np.inf)
    for repetition in range(REPETITIONS + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            for k in range(ROUNDS):
                call(ROUNDS * repetition + k)
            if repetition:
                best[name] = min(best[name], (time.perf_counter() - begin) / ROUNDS * 1e6)
    return best


def with_density(density: float) -> Dataset:
    """Bytes of MNIST's shape with the given fraction of non-zero pixels, in runs as in images."""
    generator = np.random.default_rng(0)
    length = 8
    on = np.repeat(generator.random((20_000, 784 // length)) < density, length, axis=1)
    x = np.where(on, generator.integers(1, 256, on.shape), 0).astype(np.uint8)
    held = nonzero(x, x[:1000], full=2.0)
    y = generator.integers(0, 10, len(x)).astype(np.uint8)
    return Dataset(
        name=f"{density:.0%}",
        train_x=x,
        train_y=y,
        test_x=x[:1000],
        test_y=y[:1000],
        classes=10,
        scale=2 / 255,
        offset=-1.0,
        nonzero=held,
    )


def main() -> None:
    print(f"{'data':>8} {'dtype':>8} {'nonzero us':>11} {'dense us':>9} {'dense/nonzero':>14}")
    sets = [dataset("mnist"), *(with_density(share) for share in (0.1, 0.3, 0.5, 0.7))]
    for held in sets:
        for dtype in ("float32", "float64"):
            task = problem("softmax").bind(workers=WORKERS, dtype=dtype)
            assert isinstance(task, LinearTask)
            samples = np.arange(len(held.train_y), dtype=np.int32) if held.name != "mnist" else task.split.order
            size = len(samples) // WORKERS
            split = replace(task.split, order=samples, start=np.arange(WORKERS + 1) * size)
            models = task.initial("normal")
            out = np.empty_like(models)
            tasks = {
                storage: replace(task, split=split, train=rows_of(held, "train", 10, dtype, storage))
                for storage in ("nonzero", "dense")
            }
            took = least({s: lambda k, t=t, x=models, out=out: t.gradients(x, k, out) for s, t in tasks.items()})  # type: ignore[misc]
            ratio = took["dense"] / took["nonzero"]
            print(f"{held.name:>8} {dtype:>8} {took['nonzero']:11.0f} {took['dense']:9.0f} {ratio:14.2f}")
    task = problem("softmax").bind(workers=WORKERS)
    assert isinstance(task, LinearTask)
    clipped = task.clipping_samples(1.0)
    rows, models = np.arange(WORKERS), task.initial("normal")
    picks, labels = task.batches(0, rows)
    scores, out = np.empty((*picks.shape, 10), np.float32), np.empty_like(models)
    parts = least(
        {
            "batches": lambda k: task.batches(k, rows),
            "forward": lambda k: task.train.forward(picks, models, scores),
            "softmax": lambda k: task.link.delta(scores, labels),
            "backward": lambda k: task.train.backward(picks, scores, out),
            "gradients": lambda k: task.gradients(models, k, out),
            "gradients with clipped samples": lambda k: clipped.gradients(models, k, out),
        }
    )
    print("parts, float32, same batch again (us): " + ", ".join(f"{name} {value:.0f}" for name, value in parts.items()))
    begin = time.perf_counter()
    for _ in range(5):
        task.evaluate(models)
    print(f"evaluation of {WORKERS} models on the test set: {(time.perf_counter() - begin) / 5 * 1e3:.1f} ms")


if __name__ == "__main__":
    main()

"""The arithmetic floor of the paper's round, and how far each phase of an IOS round is above it.

The floor is what the sparse round must compute, as bare loops on data in the L1 cache: no indices, no misses, no rule.

    forward    every non-zero pixel: C multiplications and additions, the model in the cache
    softmax    the exponentials of all scores: the kernel itself, alone
    backward   every non-zero pixel: the same, and the sums are stored
    half step  one pass over the models
    products   M (M + 1) / 2 inner products of D numbers for a basis of M rows
    mixture    R x M multiples of D numbers

Bare loops and phases are timed in one run, in rotation, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from byzmesh.compiled import exact, limit_threads
from byzmesh.problems.data.datasets import dataset
from byzmesh.problems.descent import descend
from byzmesh.round import Round
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products
from byzmesh.simd import VECTOR, axpy, chunk, fused, lanes_of, load, plus, store
from byzmesh.simulation.engine import TOGETHER, Simulation
from byzmesh.types import Array

_U = np.uint64
_FIRST, _SECOND = 8, 2  # lanes of ten classes
_COLUMNS = 256
Call = Callable[[], Any]
HALF_STEPS = ("forward", "softmax", "backward", "half step")
"""The bare loops of which the phase `half steps` consists."""


@exact
def bare_forward(model: Array, nonzeros: int, out: Array) -> None:
    """Multiply and add ten classes for each of so many pixels, four at a time, one after the other in the model."""
    features = (model.size // 10) // 4
    a = c = e = g = load(out, _U(0), _FIRST)
    b = d = f = h = load(out, _U(0), _SECOND)
    x = out[0]
    for first in range(0, nonzeros, 4 * features):
        for feature in range(min(features, (nonzeros - first) // 4)):
            w = _U(40 * feature)
            a, b = axpy(x, load(model, w, _FIRST), a), axpy(x, load(model, w + _U(8), _SECOND), b)
            c, d = axpy(x, load(model, w + _U(10), _FIRST), c), axpy(x, load(model, w + _U(18), _SECOND), d)
            e, f = axpy(x, load(model, w + _U(20), _FIRST), e), axpy(x, load(model, w + _U(28), _SECOND), f)
            g, h = axpy(x, load(model, w + _U(30), _FIRST), g), axpy(x, load(model, w + _U(38), _SECOND), h)
    store(out, _U(0), plus(plus(a, c), plus(e, g)))
    store(out, _U(8), plus(plus(b, d), plus(f, h)))


@exact
def bare_backward(gradient: Array, nonzeros: int, slope: Array) -> None:
    """Add ten classes to the gradient for each of so many pixels."""
    features = gradient.size // 10
    a, b, x = load(slope, _U(0), _FIRST), load(slope, _U(8), _SECOND), slope[0]
    for first in range(0, nonzeros, features):
        for feature in range(min(features, nonzeros - first)):
            w = _U(10 * feature)
            store(gradient, w, axpy(x, a, load(gradient, w, _FIRST)))
            store(gradient, w + _U(8), axpy(x, b, load(gradient, w + _U(8), _SECOND)))


@exact
def bare_products(rows: Array, times: int) -> Any:
    """Eight multiplications and additions of a register for two and four rows of `_COLUMNS` numbers, so many times."""
    lanes, z, width = lanes_of(rows, VECTOR), rows.ravel(), _U(_COLUMNS)
    a = b = c = d = e = f = g = h = chunk(z, _U(0), VECTOR)
    for _ in range(times):
        for at in range(_U(0), width, lanes):
            x, y = chunk(z, at, VECTOR), chunk(z, width + at, VECTOR)
            u, v = chunk(z, _U(2) * width + at, VECTOR), chunk(z, _U(3) * width + at, VECTOR)
            s, t = chunk(z, _U(4) * width + at, VECTOR), chunk(z, _U(5) * width + at, VECTOR)
            a, b, c, d = fused(x, u, a), fused(x, v, b), fused(x, s, c), fused(x, t, d)
            e, f, g, h = fused(y, u, e), fused(y, v, f), fused(y, s, g), fused(y, t, h)
    store(z, _U(0), plus(plus(plus(a, b), plus(c, d)), plus(plus(e, f), plus(g, h))))


def floors(simulation: Simulation, prepared: Any) -> dict[str, Call]:
    """The bare loops for a run of ten classes, by phase."""
    task: Any = simulation.task
    models, dtype = simulation.models, simulation.models.dtype
    workers, columns = models.shape
    start = dataset("mnist").nonzero["train_start"]
    picks, labels = task.batches(0, simulation.task_row)
    nonzeros = int((start[picks + 1] - start[picks]).sum())
    model, slope = np.zeros(columns, dtype), np.zeros(16, dtype)
    rows = np.zeros((6, _COLUMNS), dtype)
    scores = np.zeros((*picks.shape, task.outputs), dtype)
    height = prepared.height
    block, peak, step = np.zeros((8, 512), dtype), np.empty(8), dtype.type(0.5)

    def half_step() -> None:
        for _ in range(models.size // block.size):
            descend(block, block, step, step, block, peak)

    def products(number: int) -> Call:
        times = number * columns // (8 * _COLUMNS)
        return lambda: bare_products(rows, times)

    return {
        "forward": lambda: bare_forward(model, nonzeros, slope),
        "softmax": lambda: task.link.delta(scores, labels),
        "backward": lambda: bare_backward(model, nonzeros, slope),
        "half step": half_step,
        "products": products(height * (height + 1) // 2),
        "mixture": products(workers * height),
    }


def phases(simulation: Simulation, prepared: Any) -> dict[str, Call]:
    """The phases of a round as functions; the half steps are a single call, from the forward product on."""
    task: Any = simulation.task
    models, half, dtype = simulation.models, simulation.half.copy(), simulation.models.dtype
    rows, rounds = simulation.task_row, _rounds()
    picks, labels = task.batches(0, rows)
    out, peak, step = np.empty_like(models), np.empty(len(models)), dtype.type(0.5)
    none, gram = half[:0].copy(), np.zeros((prepared.height, prepared.height))
    weights, sums = np.full((len(models), prepared.height), 0.1, dtype), np.ones(len(models), dtype)
    block = prepared.block(half, none, none, np.ones(len(half)), Round())
    return {
        "draw": lambda: task.batches(next(rounds), rows),
        "half steps": lambda: task.train.half_steps(task.link, picks, labels, models, step, step, out, peak),
        "products": lambda: centred_products(half, none, none, prepared.centre_row, 0, half.shape[1], gram),
        "rule": lambda: prepared.choose(block),
        "mixture": lambda: centred_mix(half, none, none, weights, sums, 0, half.shape[1], out),
    }


def _rounds() -> Iterator[int]:
    return count()


def phase_table(
    simulation: Simulation, best_of: Callable[[dict[str, Call], int, int], dict[str, float]], repeats: int
) -> list[dict[str, Any]]:
    """Milliseconds of every phase of a prepared run, of its floor, and their ratio; last the whole round, as a run
    computes it: several in one compiled call."""
    simulation.step()
    prepared: Any = simulation.prepared
    with limit_threads(1):
        bare = {f"floor {name}": call for name, call in floors(simulation, prepared).items()}
        rounds = {"round": lambda: simulation.steps(TOGETHER)}
        best = best_of({**rounds, **phases(simulation, prepared), **bare}, 20, repeats)
        best["round"] /= TOGETHER
    floor = {name: best[f"floor {name}"] for name in ("products", "mixture")}
    floor["half steps"] = sum(best[f"floor {name}"] for name in HALF_STEPS)
    names = [name for name in best if name != "round" and not name.startswith("floor")]
    table = [_row(name, best[name], floor.get(name)) for name in names]
    table.append(_row("everything else", best["round"] - sum(best[name] for name in names), None))
    table.append(_row("round", best["round"], sum(floor.values())))
    return table


def _row(name: str, seconds: float, floor: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {"phase": name, "ms": 1e3 * seconds}
    return row if floor is None else {**row, "floor_ms": 1e3 * floor, "ratio": seconds / floor}

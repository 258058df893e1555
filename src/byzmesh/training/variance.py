"""Variance reduction: stochastic gradients whose noise dies out as the models settle.

Liars hide in the noise of honest gradients (the paper's inner variation); less noise leaves them less room.

    SAGA     g = (1/B) sum_{i in batch} (g_i(x) - g_i kept) + mean of all g_i kept;  keep the batch's new g_i
    L-SVRG   g = (1/B) sum_{i in batch} (g_i(x) - g_i(w)) + grad f_n(w);  w <- x with probability p in each round

SAGA keeps the samples' slopes (`problems.base.Sampled`). For linear models g_i = [x_i 1]^T delta_i with delta_i the
derivative by the C scores (softmax minus the label's unit vector): C numbers per sample instead of D, 2.4 MB for MNIST
in float32. They start at 0, which agrees with a mean of 0 and needs no pass over the data. Both estimates are unbiased
given what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.errors import ConfigError
from byzmesh.problems.base import Sampled, Task
from byzmesh.types import Array, Integers

State = dict[str, Array]


@dataclass(frozen=True)
class Estimator:
    """A gradient with memory: `init` makes the first state, `apply` one estimate for all rows."""

    init: Callable[[Array], State]
    """first models (R, D) -> state, arrays by name."""
    apply: Callable[[Array, int, State, Array], State]
    """(models (R, D), round, state, out (R, D)) -> next state; writes the estimates to `out`. The state is used up."""
    undo: Callable[[State, Integers], Callable[[], None]] = lambda state, rows: _restore_rows(state, rows)
    """(state, positions of rows) -> a function that gives these rows back what they remember now."""


def _restore_rows(state: State, rows: Integers) -> Callable[[], None]:
    """For a state whose arrays have a row per worker and are changed in place."""
    before = {name: values[rows] for name, values in state.items()}

    def restore() -> None:
        for name, values in before.items():
            state[name][rows] = values

    return restore


def estimator(
    task: Task, rows: Integers, variance: str = "none", refresh: float | None = None, seed: int = 0
) -> Estimator:
    """The gradient estimator of a task's rows; for `none` the task's own gradients.

    refresh  probability p of a new reference point in each round (L-SVRG); None: batch / samples of the worker
    """
    if variance == "none":
        return _plain(task, rows)
    if not isinstance(task, Sampled):
        raise not_sampled(variance)
    return _saga(task, rows) if variance == "saga" else _lsvrg(task, rows, refresh, seed)


def averaged(inner: Estimator, count: int) -> Estimator:
    """The mean of `count` estimates, each with its own batch."""

    def apply(models: Array, round: int, state: State, out: Array) -> State:
        part = out.copy() if isinstance(out, np.ndarray) else out.clone()
        for number in range(count):
            state = inner.apply(models, round * count + number, state, part)
            if number:
                out += part
            else:
                out[:] = part
        out /= count
        return state

    return Estimator(inner.init, apply, inner.undo)


def not_sampled(variance: str) -> ConfigError:
    """The error for a problem whose task is not `Sampled`."""
    return ConfigError(
        f"local variance {variance!r} needs a problem with samples whose gradients are known one by one, "
        "such as softmax; give none"
    )


def _plain(task: Task, rows: Integers) -> Estimator:
    def apply(models: Array, round: int, state: State, out: Array) -> State:
        task.gradients(models, round, out, rows)
        return state

    return Estimator(lambda models: {}, apply)


def _saga(task: Sampled, rows: Integers) -> Estimator:
    samples = task.samples
    size = task.sizes()[rows]
    # liars that train on flipped labels may have samples of honest workers: these are kept separately
    shift = np.where(rows >= task.workers, samples, 0)[:, None]

    def init(models: Array) -> State:
        kept = np.zeros((samples * (2 if task.rows > task.workers else 1), task.outputs), task.dtype)
        return {"kept": kept, "mean": np.zeros(models.shape)}

    def undo(state: State, resting: Integers) -> Callable[[], None]:
        rest = _restore_rows({"mean": state["mean"]}, resting)
        shares = [task.share(int(rows[line]))[0].ravel() + shift[line] for line in resting]
        places = np.concatenate(shares)
        before = state["kept"][places]

        def restore() -> None:
            state["kept"][places] = before
            rest()

        return restore

    def apply(models: Array, round: int, state: State, out: Array) -> State:
        kept, mean = state["kept"], state["mean"]
        picks, targets = task.batches(round, rows)
        slopes = task.slopes(models, picks, targets)
        place = picks + shift
        change = slopes - kept[place]
        task.join(picks, change, out)
        kept[place] = slopes
        step = out
        again = _repeated(place)
        if again.any():  # a sample drawn twice is kept once
            step = np.empty_like(out)
            task.join(picks, np.where(again[:, :, None], task.dtype.type(0), change), step)
        step = step * (task.batch / size)[:, None]
        out += mean
        mean += step
        return state

    return Estimator(init, apply, undo)


def _repeated(place: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(R, B) whether an entry occurs earlier in its row.

    >>> _repeated(np.array([[3, 1, 3, 3]]))
    array([[False, False,  True,  True]])
    """
    order = np.argsort(place, axis=1, kind="stable")
    ranked = np.take_along_axis(place, order, axis=1)
    equal = np.zeros(place.shape, bool)
    equal[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    out = np.empty_like(equal)
    np.put_along_axis(out, order, equal, axis=1)
    return out


def _lsvrg(task: Sampled, rows: Integers, refresh: float | None, seed: int) -> Estimator:
    size = task.sizes()[rows]
    chance = np.minimum(task.batch / size, 1.0) if refresh is None else np.full(len(rows), float(refresh))
    key = rng.key(seed, rng.BATCH, 1)

    def whole(models: Array, line: int) -> Array:
        """(D,) gradient of a row's mean loss on all its samples at its model."""
        picks, targets = task.share(int(rows[line]))
        gradient = np.empty((1, task.dimension), task.dtype)
        task.join(picks, task.slopes(models[line : line + 1], picks, targets), gradient)
        row: Array = gradient[0]
        return row

    def init(models: Array) -> State:
        full = [whole(models, line) for line in range(len(models))]
        return {"reference": models.copy(), "full": np.stack(full)}

    def apply(models: Array, round: int, state: State, out: Array) -> State:
        reference, full = state["reference"], state["full"]
        task.gradients(models, round, out, rows)
        out -= task.gradients(reference, round, None, rows)
        out += full
        for line in np.flatnonzero(rng.uniforms(key, rows, round, 1)[:, 0] < chance):
            reference[line] = models[line]
            full[line] = whole(models, int(line))
        return state

    return Estimator(init, apply)

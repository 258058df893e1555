"""Products of a linear model with the samples of a data set, stored as non-zero bytes or dense.

    forward(picks (R, B), models (R, D), scores (R, B, C))      scores = [x 1] [W; bias]
    backward(picks (R, B), delta (R, B, C), gradients (R, D))   gradients = [x 1]^T delta
    half_steps(link, picks, targets (R, B), models (R, D), keep, step, half (R, D), peak (R,))
                                                                half = keep models - step [x 1]^T delta(scores, targets)

The first two overwrite their last argument, `half_steps` its last two (problems/descent.py), which are not `models`.
Both ways of storage give the same numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.descent import descend
from byzmesh.problems.linear.losses import SOFTMAX, Link
from byzmesh.problems.linear.sparse import lane_kernel, plain_backward, plain_forward
from byzmesh.types import Array, Floats

_CHUNK = 1 << 12  # samples measured at a time
_BUFFER = 1 << 20  # largest number of elements in a dense batch


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The products over one part of a data set."""

    forward: Callable[[Array, Array, Array], None]
    backward: Callable[[Array, Array, Array], None]
    half_steps: Callable[[Link, Array, Array, Array, Any, Any, Array, Floats], None]
    storage: str
    """`nonzero` or `dense`."""
    softmax_kernel: Any = None
    """The half steps of softmax regression as a kernel (sparse.py), and `data`, its first arguments; None: none."""
    data: tuple[Any, ...] = ()


def rows_of(data: Dataset, part: str, classes: int, dtype: Any, storage: str = "auto") -> Rows:
    """The products over `part` (`train` or `test`) for models of `classes` outputs in `dtype`."""
    if storage == "auto":
        storage = "nonzero" if data.nonzero else "dense"
    if storage == "nonzero":
        held = tuple(data.nonzero[f"{part}_{array}"] for array in ("start", "column", "value"))
        return _sparse_rows(held, data, classes, np.dtype(dtype))
    return _dense_rows(data.train_x if part == "train" else data.test_x, data, classes, np.dtype(dtype))


def sample_lengths(data: Dataset) -> Floats:
    """(M,) ||[x 1]|| of every training sample: the length of its gradient is this times that of its slopes."""
    lengths = np.empty(len(data.train_x))
    for first in range(0, len(lengths), _CHUNK):
        x = data.scale * data.train_x[first : first + _CHUNK].astype(np.float64) + data.offset
        lengths[first : first + _CHUNK] = np.sqrt(np.einsum("sf,sf->s", x, x) + 1.0)
    return lengths


def _sparse_rows(held: tuple[Array, ...], data: Dataset, classes: int, dtype: Any) -> Rows:
    table, shift = (data.scale * np.arange(256)).astype(dtype), dtype.type(data.offset)
    run = lane_kernel(classes)
    if run is None:
        start, column, value = held
        known = (start, column, value, table, shift)
        return _composed(partial(plain_forward, *known), partial(plain_backward, *known), classes, "nonzero")
    none, unknown, zero, unused = (
        np.empty((0, 0), dtype),
        np.empty((0, 0), data.train_y.dtype),
        dtype.type(0),
        np.empty(0),
    )
    nobody = np.zeros(0, np.bool_)

    def forward(picks: Array, models: Array, scores: Array) -> None:
        run(*held, table, shift, picks, unknown, models, scores, zero, zero, none, unused, nobody)

    def backward(picks: Array, delta: Array, gradients: Array) -> None:
        run(*held, table, shift, picks, unknown, none, delta, zero, zero, gradients, unused, nobody)

    parts = _composed(forward, backward, classes, "nonzero")

    def half_steps(
        link: Link, picks: Array, targets: Array, models: Array, keep: Any, step: Any, half: Array, peak: Floats
    ) -> None:
        if link is not SOFTMAX:
            parts.half_steps(link, picks, targets, models, keep, step, half, peak)
            return
        scores = np.empty((*picks.shape, classes), dtype)
        run(*held, table, shift, picks, targets, models, scores, keep, step, half, peak, nobody)

    return replace(parts, half_steps=half_steps, softmax_kernel=run, data=(*held, table, shift))


def _composed(
    forward: Callable[[Array, Array, Array], None],
    backward: Callable[[Array, Array, Array], None],
    classes: int,
    storage: str,
) -> Rows:
    """Products with half steps that are made of them, one after the other."""

    def half_steps(
        link: Link, picks: Array, targets: Array, models: Array, keep: Any, step: Any, half: Array, peak: Floats
    ) -> None:
        scores = np.empty((*picks.shape, classes), half.dtype)
        forward(picks, models, scores)
        link.delta(scores, targets)
        backward(picks, scores, half)
        descend(models, half, keep, step, half, peak)

    return Rows(forward=forward, backward=backward, half_steps=half_steps, storage=storage)


def _dense_rows(x: Array, data: Dataset, classes: int, dtype: Any) -> Rows:
    features = x.shape[1]
    slope, shift = dtype.type(data.scale), dtype.type(data.offset)

    def blocks(picks: Array) -> Iterator[tuple[slice, slice, Array]]:
        """Parts of the batches as dense (rows, samples, F) arrays of bounded size."""
        samples = max(1, min(picks.shape[1], _BUFFER // features))
        rows = max(1, _BUFFER // (features * samples))
        for r in range(0, len(picks), rows):
            for s in range(0, picks.shape[1], samples):
                block = picks[r : r + rows, s : s + samples]
                batch = np.empty((*block.shape, features), dtype)
                gather(x, block, slope, shift, batch)
                yield slice(r, r + rows), slice(s, s + samples), batch

    def forward(picks: Array, models: Array, scores: Array) -> None:
        weights = models[:, : features * classes].reshape(len(models), features, classes)
        for r, s, batch in blocks(picks):
            scores[r, s] = batch @ weights[r]
        scores += models[:, None, features * classes :]

    def backward(picks: Array, delta: Array, gradients: Array) -> None:
        weights = gradients[:, : features * classes].reshape(len(gradients), features, classes)
        for r, s, batch in blocks(picks):
            product = batch.transpose(0, 2, 1) @ delta[r, s]
            if s.start == 0:
                weights[r] = product
            else:
                weights[r] += product
        gradients[:, features * classes :] = delta.sum(axis=1)

    return _composed(forward, backward, classes, "dense")


@exact
def gather(x: Any, picks: Any, slope: Any, shift: Any, batch: Any) -> None:
    """batch[r, s] = slope * x[picks[r, s]] + shift."""
    for r in range(picks.shape[0]):
        for s in range(picks.shape[1]):
            source, target = x[picks[r, s]], batch[r, s]
            for p in range(target.shape[0]):
                target[p] = slope * batch.dtype.type(source[p]) + shift

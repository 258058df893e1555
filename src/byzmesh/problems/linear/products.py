"""Products of a linear model with the samples of a data set, stored as non-zero bytes or dense.

    forward(picks (R, B), models (R, D), scores (R, B, C))      scores = [x 1] [W; bias]
    backward(picks (R, B), delta (R, B, C), gradients (R, D))   gradients = [x 1]^T delta
    descend(picks, delta, models (R, D), keep, step, half (R, D), peak (R,))
                                                                half = keep models - step [x 1]^T delta

The first two overwrite their last argument, `descend` its last two (problems/descent.py), which are not `models`. Both
ways of storage give the same numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.descent import descend as descend_rows
from byzmesh.problems.linear.sparse import kernels
from byzmesh.types import Array, Floats

_BUFFER = 1 << 20  # largest number of elements in a dense batch


@dataclass(frozen=True)
class Rows:
    """The products over one part of a data set."""

    forward: Callable[[Array, Array, Array], None]
    backward: Callable[[Array, Array, Array], None]
    descend: Callable[[Array, Array, Array, Any, Any, Array, Floats], None]
    storage: str
    """`nonzero` or `dense`."""


def rows_of(data: Dataset, part: str, classes: int, dtype: Any, storage: str = "auto") -> Rows:
    """The products over `part` (`train` or `test`) for models of `classes` outputs in `dtype`."""
    if storage == "auto":
        storage = "nonzero" if data.nonzero else "dense"
    if storage == "nonzero":
        held = tuple(data.nonzero[f"{part}_{array}"] for array in ("start", "column", "value"))
        return _sparse_rows(held, data.scale, data.offset, classes, np.dtype(dtype))
    return _dense_rows(data.train_x if part == "train" else data.test_x, data.scale, data.offset, np.dtype(dtype))


def _sparse_rows(held: tuple[Array, ...], scale: float, offset: float, classes: int, dtype: Any) -> Rows:
    run_forward, run_backward = kernels(classes)
    table, shift = (scale * np.arange(256)).astype(dtype), dtype.type(offset)

    def forward(picks: Array, models: Array, scores: Array) -> None:
        run_forward(*held, table, shift, picks, models, scores)

    none, zero, unused = np.empty((0, 0), dtype), dtype.type(0), np.empty(0)

    def backward(picks: Array, delta: Array, gradients: Array) -> None:
        run_backward(*held, table, shift, picks, delta, none, zero, zero, gradients, unused)

    def descend(picks: Array, delta: Array, models: Array, keep: Any, step: Any, half: Array, peak: Floats) -> None:
        run_backward(*held, table, shift, picks, delta, models, keep, step, half, peak)

    return Rows(forward, backward, descend, "nonzero")


def _dense_rows(x: Array, scale: float, offset: float, dtype: Any) -> Rows:
    features = x.shape[1]
    slope, shift = dtype.type(scale), dtype.type(offset)

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
        classes = scores.shape[2]
        weights = models[:, : features * classes].reshape(len(models), features, classes)
        for r, s, batch in blocks(picks):
            scores[r, s] = batch @ weights[r]
        scores += models[:, None, features * classes :]

    def backward(picks: Array, delta: Array, gradients: Array) -> None:
        classes = delta.shape[2]
        weights = gradients[:, : features * classes].reshape(len(gradients), features, classes)
        for r, s, batch in blocks(picks):
            product = batch.transpose(0, 2, 1) @ delta[r, s]
            if s.start == 0:
                weights[r] = product
            else:
                weights[r] += product
        gradients[:, features * classes :] = delta.sum(axis=1)

    def descend(picks: Array, delta: Array, models: Array, keep: Any, step: Any, half: Array, peak: Floats) -> None:
        gradients = np.empty_like(half)
        backward(picks, delta, gradients)
        descend_rows(models, gradients, keep, step, half, peak)

    return Rows(forward, backward, descend, "dense")


@exact
def gather(x: Any, picks: Any, slope: Any, shift: Any, batch: Any) -> None:
    """batch[r, s] = slope * x[picks[r, s]] + shift."""
    for r in range(picks.shape[0]):
        for s in range(picks.shape[1]):
            source, target = x[picks[r, s]], batch[r, s]
            for p in range(target.shape[0]):
                target[p] = slope * batch.dtype.type(source[p]) + shift

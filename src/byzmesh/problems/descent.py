"""The gradient step itself, in one pass: x_half = keep x - step g, and the largest |x_half| of each row.

Whoever receives the half steps asks first whether they are finite and how large they are (`Pool.peak`); here the answer
costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.simd import VECTOR, chunk, fused, lanes_of, load, spread, store, times
from byzmesh.simd_sums import larger, largest, magnitude

_U = np.uint64


@exact
def descend_row(model: Any, gradient: Any, keep: Any, step: Any, out: Any) -> Any:
    """out = keep * model - step * gradient; returns the largest |out|, infinity if a number is not finite.

    All three are contiguous (D,) arrays; `out` may be one of the others.
    """
    lanes = lanes_of(model, VECTOR)
    whole = _U(model.size) // lanes * lanes
    zeros = np.zeros(VECTOR, model.dtype)
    kept, back = spread(keep, chunk(zeros, _U(0), VECTOR)), spread(-step, chunk(zeros, _U(0), VECTOR))
    top = magnitude(chunk(zeros, _U(0), VECTOR))
    for at in range(_U(0), whole, lanes):
        half = fused(kept, chunk(model, at, VECTOR), times(back, chunk(gradient, at, VECTOR)))
        store(out, at, half)
        top = larger(top, magnitude(half))
    last = magnitude(load(zeros, _U(0), 1))
    for at in range(whole, _U(model.size)):
        one = load(model, at, 1)
        half = fused(spread(keep, one), one, times(spread(-step, one), load(gradient, at, 1)))
        store(out, at, half)
        last = larger(last, magnitude(half))
    peak = max(largest(top, step), largest(last, step))
    return np.float64(np.inf) if np.isnan(peak) else np.float64(peak)


@exact
def copy_row(model: Any, out: Any) -> Any:
    """out = model, for a row that takes no step; returns what `descend_row` does."""
    lanes = lanes_of(model, VECTOR)
    whole = _U(model.size) // lanes * lanes
    zeros = np.zeros(VECTOR, model.dtype)
    top, last = magnitude(chunk(zeros, _U(0), VECTOR)), magnitude(load(zeros, _U(0), 1))
    for at in range(_U(0), whole, lanes):
        same = chunk(model, at, VECTOR)
        store(out, at, same)
        top = larger(top, magnitude(same))
    for at in range(whole, _U(model.size)):
        one = load(model, at, 1)
        store(out, at, one)
        last = larger(last, magnitude(one))
    peak = max(largest(top, zeros[0]), largest(last, zeros[0]))
    return np.float64(np.inf) if np.isnan(peak) else np.float64(peak)


@exact
def descend(models: Any, gradients: Any, keep: Any, step: Any, out: Any, peak: Any) -> None:
    """`descend_row` for every row of (R, D) arrays; `peak` (R,) gets what it returns."""
    for row in range(models.shape[0]):
        peak[row] = descend_row(models[row], gradients[row], keep, step, out[row])

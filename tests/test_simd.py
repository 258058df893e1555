"""Vectors in registers: every operation against NumPy, in both precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from byzmesh.compiled import exact
from byzmesh.simd import axpy, chunk, fma, fused, halves, lanes_of, load, minus, plus, spread, store, times, twice
from byzmesh.simd_sums import add_folds, half_sums, larger, largest, magnitude

_U = np.uint64
TYPES = [np.float32, np.float64]


@exact
def arithmetic(x: Any, y: Any, out: Any) -> None:
    a, b = load(x, _U(1), 4), load(y, _U(0), 4)
    store(out, _U(0), plus(a, b))
    store(out, _U(4), minus(a, b))
    store(out, _U(8), times(a, b))
    store(out, _U(12), spread(x[0], a))
    store(out, _U(16), fused(a, b, a))
    store(out, _U(20), axpy(x[0], a, b))
    store(out, _U(24), twice(halves(a)[1]))
    out[28], out[29] = half_sums(a)
    out[30] = fma(x[0], x[1], x[2])


@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic_lane_by_lane(dtype: Any) -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.normal(size=8).astype(dtype) for _ in range(2))
    out = np.full(32, np.nan, dtype)
    arithmetic(x, y, out)
    a, b = x[1:5], y[:4]
    expected = [a + b, a - b, a * b, np.full(4, x[0]), once(a, b, a), once(x[0], a, b), a[[2, 3, 2, 3]]]
    np.testing.assert_array_equal(out[:28], np.concatenate(expected))
    np.testing.assert_array_equal(out[28:30], [a[0] + a[1], a[2] + a[3]])
    assert out[30] == once(x[0], x[1], x[2])


def once(a: Any, b: Any, c: Any) -> Any:
    """a b + c rounded once: in twice the precision of float32, and of float64 where there is one."""
    wide = np.float64 if np.asarray(a).dtype == np.float32 else np.longdouble
    return (wide(a) * wide(b) + wide(c)).astype(np.asarray(a).dtype)


@exact
def peak(x: Any) -> Any:
    return largest(larger(magnitude(chunk(x, _U(0), 32)), magnitude(chunk(x, _U(32 // x.itemsize), 32))), x[0])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("place", range(8))
def test_the_largest_magnitude(dtype: Any, place: int) -> None:
    x = np.random.default_rng(place).normal(size=64 // np.dtype(dtype).itemsize).astype(dtype)
    assert peak(x) == np.abs(x).max()
    for value in (-9.0, np.inf, -np.inf):
        x[place] = value
        assert peak(x) == abs(value)
    x[-1 - place] = np.nan
    assert np.isnan(peak(x))


def test_lanes_of_an_array_with_gaps_are_refused() -> None:
    with pytest.raises(TypingError, match="contiguous"):
        peak(np.zeros(32, np.float32)[::2])


@exact
def _folds(rows: Any, out: Any) -> None:
    n = lanes_of(rows, 32)
    a, b, c, d = chunk(rows, _U(0), 32), chunk(rows, n, 32), chunk(rows, _U(2) * n, 32), chunk(rows, _U(3) * n, 32)
    at = _U(4) * n
    e, f, g, h = (
        chunk(rows, at, 32),
        chunk(rows, at + n, 32),
        chunk(rows, at + _U(2) * n, 32),
        chunk(rows, at + _U(3) * n, 32),
    )
    add_folds(out, _U(1), _U(6), a, b, c, d, e, f, g, h)


@exact
def _folds_of_pairs(rows: Any, out: Any) -> None:
    n = lanes_of(rows, 64)
    a, b, c, d = chunk(rows, _U(0), 64), chunk(rows, n, 64), chunk(rows, _U(2) * n, 64), chunk(rows, _U(3) * n, 64)
    at = _U(4) * n
    e, f, g, h = (
        chunk(rows, at, 64),
        chunk(rows, at + n, 64),
        chunk(rows, at + _U(2) * n, 64),
        chunk(rows, at + _U(3) * n, 64),
    )
    add_folds(out, _U(1), _U(6), a, b, c, d, e, f, g, h)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("folds", [_folds, _folds_of_pairs])
def test_sums_of_vectors_are_folded_in_the_order_of_half_sums(folds: Any, dtype: Any) -> None:
    count = 8 if folds is _folds else 16
    rows = np.random.default_rng(0).normal(size=(count, 32 // np.dtype(dtype).itemsize)).astype(dtype)
    out = np.arange(24.0)
    folds(rows.ravel(), out)
    sums = rows
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    expected = np.arange(24.0)
    for first in range(0, count, 4):
        at = 1 + 6 * (first // 4)
        expected[at : at + 4] += sums[first : first + 4, 0]
    np.testing.assert_array_equal(out, expected)

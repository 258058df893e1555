"""Inner products of a few rows in registers, a block of columns at a time: what `centred_products` consists of.

Rows lie in pairs, `HALF` bytes of one beside `HALF` bytes of the other, and the pairs `stride` numbers apart. With
AVX-512 a register holds the partial sums of two products, with AVX2 of one. The order of every sum is the same:
`HALF` bytes of partial sums, halved until one is left, then the last `rest` columns one by one; and a block's sum is
added in float64, to `sums`, a flat matrix with rows of `width` numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import inner
from byzmesh.simd import chunk, fma, fused, lanes_of, spread, twice
from byzmesh.simd_sums import FOLD, add_folds, half_sums
from byzmesh.types import Array

_U = np.uint64
HALF, PAIR = FOLD, 2 * FOLD
"""Bytes of the partial sums of one product, and of two."""


@inner
def _store_sums(
    z: Array, stride: Any, row: int, left: int, whole: Any, rest: Any, low: Any, high: Any, sums: Any, width: int
) -> None:
    """Add the products of `row` with the rows left .. left + 3: the partial sums, then the last `rest` columns."""
    half = lanes_of(z, HALF)
    a, b = half_sums(low)
    c, d = half_sums(high)
    mine = _U(row // 2) * stride + _U(row % 2) * half + whole
    others = _U(left // 2) * stride + whole
    for column in range(rest):
        x = z[mine + column]
        a = fma(x, z[others + column], a)
        b = fma(x, z[others + half + column], b)
        c = fma(x, z[others + stride + column], c)
        d = fma(x, z[others + stride + half + column], d)
    sums[row * width + left] += a
    sums[row * width + left + 1] += b
    sums[row * width + left + 2] += c
    sums[row * width + left + 3] += d


@inner
def _add_rest(
    z: Array, stride: Any, row: int, other: int, at: Any, rest: Any, lanes: Any, sums: Any, width: int
) -> None:
    """Add the product of two rows: the partial sums `lanes`, then the last `rest` columns, from `at`."""
    half = lanes_of(z, HALF)
    total, _ = half_sums(twice(lanes))
    one = _U(row // 2) * stride + _U(row % 2) * half + at
    two = _U(other // 2) * stride + _U(other % 2) * half + at
    for column in range(rest):
        total = fma(z[one + column], z[two + column], total)
    sums[row * width + other] += total


@inner
def two_by_four(z: Array, stride: Any, row: int, left: int, whole: Any, rest: Any, sums: Any, width: int) -> None:
    """Add the products of two rows with the rows left .. left + 3: what the registers of AVX2 hold."""
    half, across = lanes_of(z, HALF), _U(width)
    first, second, third = _U(row // 2) * stride, _U(left // 2) * stride, _U(left // 2 + 1) * stride
    a = b = c = d = e = f = g = h = spread(z.dtype.type(0.0), chunk(z, _U(0), HALF))
    for at in range(_U(0), whole, lanes_of(z, PAIR)):
        p, q = chunk(z, second + at, HALF), chunk(z, second + half + at, HALF)
        r, s = chunk(z, third + at, HALF), chunk(z, third + half + at, HALF)
        x = chunk(z, first + at, HALF)
        a, b, c, d = fused(x, p, a), fused(x, q, b), fused(x, r, c), fused(x, s, d)
        x = chunk(z, first + half + at, HALF)
        e, f, g, h = fused(x, p, e), fused(x, q, f), fused(x, r, g), fused(x, s, h)
    if rest == 0:
        place = _U(row) * across + _U(left)
        add_folds(sums, place, across, a, b, c, d, e, f, g, h)
        return
    _add_rest(z, stride, row, left, whole, rest, a, sums, width)
    _add_rest(z, stride, row, left + 1, whole, rest, b, sums, width)
    _add_rest(z, stride, row, left + 2, whole, rest, c, sums, width)
    _add_rest(z, stride, row, left + 3, whole, rest, d, sums, width)
    _add_rest(z, stride, row + 1, left, whole, rest, e, sums, width)
    _add_rest(z, stride, row + 1, left + 1, whole, rest, f, sums, width)
    _add_rest(z, stride, row + 1, left + 2, whole, rest, g, sums, width)
    _add_rest(z, stride, row + 1, left + 3, whole, rest, h, sums, width)


@inner
def triangle(z: Array, stride: Any, row: int, whole: Any, rest: Any, sums: Any, width: int) -> None:
    """Add the products of the rows row .. row + 3 with one another, each pair once, in the registers of AVX2."""
    half, across = lanes_of(z, HALF), _U(width)
    first, second = _U(row // 2) * stride, _U(row // 2 + 1) * stride
    nothing = a = b = c = d = e = f = g = h = i = j = spread(z.dtype.type(0.0), chunk(z, _U(0), HALF))
    for at in range(_U(0), whole, lanes_of(z, PAIR)):
        p, q = chunk(z, first + at, HALF), chunk(z, first + half + at, HALF)
        r, s = chunk(z, second + at, HALF), chunk(z, second + half + at, HALF)
        a, b, c, d = fused(p, p, a), fused(q, p, b), fused(q, q, c), fused(r, p, d)
        e, f, g, h = fused(r, q, e), fused(r, r, f), fused(s, p, g), fused(s, q, h)
        i, j = fused(s, r, i), fused(s, s, j)
    if rest == 0:
        place = _U(row) * (across + _U(1))
        add_folds(sums, place, across, a, nothing, nothing, nothing, b, c, nothing, nothing)
        place += _U(2) * across
        add_folds(sums, place, across, d, e, f, nothing, g, h, i, j)
        return
    _add_rest(z, stride, row, row, whole, rest, a, sums, width)
    _add_rest(z, stride, row + 1, row, whole, rest, b, sums, width)
    _add_rest(z, stride, row + 1, row + 1, whole, rest, c, sums, width)
    _add_rest(z, stride, row + 2, row, whole, rest, d, sums, width)
    _add_rest(z, stride, row + 2, row + 1, whole, rest, e, sums, width)
    _add_rest(z, stride, row + 2, row + 2, whole, rest, f, sums, width)
    _add_rest(z, stride, row + 3, row, whole, rest, g, sums, width)
    _add_rest(z, stride, row + 3, row + 1, whole, rest, h, sums, width)
    _add_rest(z, stride, row + 3, row + 2, whole, rest, i, sums, width)
    _add_rest(z, stride, row + 3, row + 3, whole, rest, j, sums, width)


@inner
def four_by_four(z: Array, stride: Any, row: int, left: int, whole: Any, rest: Any, sums: Any, width: int) -> None:
    """Add the products of four rows with the rows left .. left + 3, for AVX-512."""
    half, across = lanes_of(z, HALF), _U(width)
    first, others = _U(row // 2) * stride, _U(left // 2) * stride
    a = b = c = d = e = f = g = h = spread(z.dtype.type(0.0), chunk(z, _U(0), PAIR))
    for at in range(_U(0), whole, _U(2) * half):
        low, high = chunk(z, others + at, PAIR), chunk(z, others + stride + at, PAIR)
        x = twice(chunk(z, first + at, HALF))
        a, b = fused(x, low, a), fused(x, high, b)
        x = twice(chunk(z, first + half + at, HALF))
        c, d = fused(x, low, c), fused(x, high, d)
        x = twice(chunk(z, first + stride + at, HALF))
        e, f = fused(x, low, e), fused(x, high, f)
        x = twice(chunk(z, first + stride + half + at, HALF))
        g, h = fused(x, low, g), fused(x, high, h)
    if rest == 0:
        place = _U(row) * across + _U(left)
        add_folds(sums, place, across, a, b, c, d, e, f, g, h)
        return
    _store_sums(z, stride, row, left, whole, rest, a, b, sums, width)
    _store_sums(z, stride, row + 1, left, whole, rest, c, d, sums, width)
    _store_sums(z, stride, row + 2, left, whole, rest, e, f, sums, width)
    _store_sums(z, stride, row + 3, left, whole, rest, g, h, sums, width)

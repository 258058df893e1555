"""Inner products of pools of many rows: a block of columns is centred into the cache, then multiplied tile by tile.

Of <y_i, y_j> and <y_j, y_i> one is computed, except in the tiles on the diagonal. Partial sums are kept in the
precision of the rows for `_FLUSH` blocks, a vector of them for each product, and then added in float64. While a block
is multiplied, the next one is on its way from memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact, fast, inner
from byzmesh.rules.gram.small_kernels import aligned, centre_columns
from byzmesh.simd import VECTOR, chunk, lanes_of, minus, store
from byzmesh.simd_tiles import SIDE, add_tile
from byzmesh.types import Array

_U = np.uint64
_COLUMNS = 640
"""Centred at a time: the ten rows of a tile stay in the L1 cache, all of a few hundred in L2."""
_STRIDE = _COLUMNS + 16
"""Distance of two centred rows, so that they do not compete for the same lines of the cache."""
_FLUSH = 12
"""Blocks of columns after which partial sums are added in float64."""


@inner
def _put(rows: Array, start: Any, centre: Array, size: Any, z: Array, at: Any) -> None:
    """z[at : at + size] = rows[start : start + size] - centre, and zeros to the end of the last vector."""
    lanes = lanes_of(z, VECTOR)
    whole = size // lanes * lanes
    for column in range(_U(0), whole, lanes):
        store(z, at + column, minus(chunk(rows, start + column, VECTOR), chunk(centre, column, VECTOR)))
    for column in range(whole, (size + lanes - _U(1)) // lanes * lanes):
        z[at + column] = rows[start + column] - centre[column] if column < size else z.dtype.type(0.0)


@exact
def _next_blocks(own: Array, messages: Array) -> Array:
    """The addresses of the second blocks of columns of the own rows and messages."""
    where = np.empty(own.shape[0] + messages.shape[0], np.uint64)
    one, two = _U(own.ctypes.data), _U(messages.ctypes.data)
    for row in range(where.size):
        before = row < own.shape[0]
        place = (row if before else row - own.shape[0]) * own.shape[1] + _COLUMNS
        where[row] = (one if before else two) + _U(place * own.itemsize)
    return where


@fast
def _flush(sums: Array, height: int, total: Array) -> None:
    """Add the partial sums to the lower triangle of `total`, and set them to zero."""
    lanes: Any = np.int64(lanes_of(sums, VECTOR))
    place = 0
    for row in range(0, height, SIDE):
        for other in range(0, row + 1, SIDE):
            for i in range(row, row + SIDE):
                for j in range(other, other + SIDE):
                    product = 0.0
                    for lane in range(lanes):
                        product += np.float64(sums[place + lane])
                    if j <= i < height:
                        total[i, j] += product
                    place += lanes
    sums[:] = 0.0


@exact
def many_products(
    own: Array, messages: Array, anchors: Array, centre_row: bool, first: int, last: int, total: Array
) -> None:
    """total = Z Z^T over the columns first .. last as `centred_products` has it, for more rows."""
    height, width, lanes = total.shape[0], _U(own.shape[1]), np.int64(lanes_of(own, VECTOR))
    groups = (height + SIDE - 1) // SIDE
    # with rows of zeros at the end: no remainder
    z, centre = aligned(groups * SIDE * _STRIDE, own), aligned(_COLUMNS, own)
    sums, nothing = aligned(groups * (groups + 1) // 2 * SIDE * SIDE * lanes, own), np.zeros(_COLUMNS, own.dtype)
    flat, received, fixed = own.ravel(), messages.ravel(), anchors.ravel()
    count, past = own.shape[0], own.shape[0] + messages.shape[0]
    where, item = _next_blocks(own, messages), own.itemsize
    total[:] = 0.0
    for block, start in enumerate(range(first, last, _COLUMNS)):
        left, size = _U(start), _U(min(_COLUMNS, last - start))
        centre_columns(flat, count, width, left, size, centre)
        for row in range(count):
            _put(flat, _U(row) * width + left, centre, size, z, _U(row * _STRIDE))
        for row in range(messages.shape[0]):
            _put(received, _U(row) * width + left, centre, size, z, _U((count + row) * _STRIDE))
        for row in range(anchors.shape[0]):
            _put(fixed, _U(row) * width + left, centre, size, z, _U((past + row) * _STRIDE))
        if centre_row:
            _put(centre, _U(0), nothing, size, z, _U((height - 1) * _STRIDE))
        padded, tile = (size + _U(lanes - 1)) // _U(lanes) * _U(lanes), 0
        for row in range(0, height, SIDE):
            for other in range(0, row + 1, SIDE):
                one, two, at = _U(row * _STRIDE), _U(other * _STRIDE), _U(tile * SIDE * SIDE * lanes)
                ahead = where[min(tile, past - 1)] + _U(start * item)
                add_tile(z, one, two, _U(_STRIDE), padded, sums, at, ahead)
                tile += 1
        if block % _FLUSH == _FLUSH - 1 or start + _COLUMNS >= last:
            _flush(sums, height, total)
    for i in range(height):
        for j in range(i):
            total[j, i] = total[i, j]

"""Gram and mixing products of small pools, centred on the fly: no array of the pool's size is built.

Both work on blocks of columns that stay in the cache, with the sums in vector registers (simd.py). The order of every
sum is written here and is the same on every processor:

    centre    c = sum over the rows, one after the other
    mixture   out = sums c + sum over the rows, one after the other
    product   over a block of columns, 32 bytes of partial sums, halved until one is left, then the last columns one by
              one; the blocks are added in float64
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact, inner
from byzmesh.rules.gram.tiles import HALF, PAIR, four_by_four, triangle, two_by_four
from byzmesh.simd import VECTOR, chunk, fma, fused, halves, lanes_of, minus, spread, store, times, twice
from byzmesh.simd_sums import half_sums
from byzmesh.types import Array

_U = np.uint64
_FOUR = 4 * VECTOR


@exact
def pool_row(own: Array, messages: Array, anchors: Array, row: int, left: int, size: int) -> Array:
    """Columns left .. left + size of a dense row, in basis numbering."""
    count, received = own.shape[0], messages.shape[0]
    if row < count:
        return own[row, left : left + size]
    if row < count + received:
        return messages[row - count, left : left + size]
    return anchors[row - count - received, left : left + size]


@exact
def aligned(count: int, like: Array) -> Array:
    """(count,) zeros of the type of `like` that begin with a cache line: no load of a register then reads two."""
    line: Any = np.int64(lanes_of(like, 64))
    zeros = np.zeros(count + line, like.dtype)
    start = line - zeros.ctypes.data // (64 // line) % line
    return zeros[start : start + count]


@inner
def _store_four(target: Array, at: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Store four registers side by side."""
    lanes = lanes_of(target, VECTOR)
    store(target, at, a)
    store(target, at + lanes, b)
    store(target, at + _U(2) * lanes, c)
    store(target, at + _U(3) * lanes, d)


@inner
def centre_columns(own: Array, rows: int, width: Any, left: Any, size: Any, centre: Array) -> None:
    """centre[:size] = mean of the rows of `own`, which is flat, over the columns left .. left + size."""
    share = own.dtype.type(1.0 / rows)
    block = lanes_of(own, _FOUR)
    if size < block:
        for column in range(size):
            total = own.dtype.type(0.0)
            for row in range(rows):
                total = fma(share, own[_U(row) * width + left + column], total)
            centre[column] = total
        return
    for start in range(_U(0), size, block):
        at = min(start, size - block)  # the last block ends with the columns: it may overlap the one before
        _centre_block(own, rows, width, left + at, share, centre, at)


@inner
def _centre_block(own: Array, rows: int, width: Any, left: Any, share: Any, centre: Array, at: Any) -> None:
    lanes = lanes_of(own, VECTOR)
    a = b = c = d = spread(own.dtype.type(0.0), chunk(centre, _U(0), VECTOR))
    part = spread(share, a)
    for row in range(rows):
        place = _U(row) * width + left
        a = fused(part, chunk(own, place, VECTOR), a)
        b = fused(part, chunk(own, place + lanes, VECTOR), b)
        c = fused(part, chunk(own, place + _U(2) * lanes, VECTOR), c)
        d = fused(part, chunk(own, place + _U(3) * lanes, VECTOR), d)
    _store_four(centre, at, a, b, c, d)


@inner
def _put(rows: Array, start: Any, centre: Array, size: Any, row: Any, z: Array) -> None:
    """Row `row` of z = rows[start : start + size] - centre; in z two rows lie side by side, `HALF` bytes of each."""
    half = lanes_of(z, HALF)
    target = row // _U(2) * _U(2 * centre.size) + row % _U(2) * half
    whole = size // (_U(2) * half) * _U(2) * half
    for at in range(_U(0), whole, _U(2) * half):
        low, high = halves(minus(chunk(rows, start + at, PAIR), chunk(centre, at, PAIR)))
        store(z, target + _U(2) * at, low)
        store(z, target + _U(2) * at + _U(2) * half, high)
    for at in range(whole, size):
        z[target + at // half * _U(2) * half + at % half] = rows[start + at] - centre[at]


@inner
def _multiply(z: Array, padded: int, size: Any, sums: Array) -> None:
    """Add the products of all rows of z over its first `size` columns."""
    half, stride = lanes_of(z, HALF), _U(z.size // (padded // 2))
    whole, rest = size // half * half * _U(2), size % half
    for row in range(0, padded, 4):
        for other in range(0, row + 1, 4):
            if VECTOR == 64:
                four_by_four(z, stride, row, other, whole, rest, sums, padded)
            elif other == row:
                triangle(z, stride, row, whole, rest, sums, padded)
            else:
                two_by_four(z, stride, row, other, whole, rest, sums, padded)
                two_by_four(z, stride, row + 2, other, whole, rest, sums, padded)


@exact
def centred_products(
    own: Array, messages: Array, anchors: Array, centre_row: bool, first: int, last: int, total: Array
) -> None:
    """total = Z Z^T over the columns first .. last, Z the basis of finite, not huge rows (centre last if asked).

    Z is never built as a whole: one block of columns at a time stays in the cache.
    """
    height, width = total.shape[0], _U(own.shape[1])
    block = 512 if height <= 12 else 256
    padded = (height + 3) // 4 * 4  # with rows of zeros, so that there is no remainder
    z, centre, nothing = aligned(padded * block, own), aligned(block, own), np.zeros(block, own.dtype)
    sums = np.zeros(padded * padded)
    flat, received, fixed = own.ravel(), messages.ravel(), anchors.ravel()
    count, past = _U(own.shape[0]), _U(own.shape[0] + messages.shape[0])
    for start in range(first, last, block):
        left, size = _U(start), _U(min(block, last - start))
        centre_columns(flat, own.shape[0], width, left, size, centre)
        for row in range(count):
            _put(flat, row * width + left, centre, size, row, z)
        for row in range(_U(messages.shape[0])):
            _put(received, row * width + left, centre, size, count + row, z)
        for row in range(_U(anchors.shape[0])):
            _put(fixed, row * width + left, centre, size, past + row, z)
        if centre_row:
            _put(centre, _U(0), nothing, size, _U(height - 1), z)
        _multiply(z, padded, size, sums)
    for i in range(height):
        for j in range(i + 1):
            total[i, j] = sums[i * padded + j]
            total[j, i] = sums[i * padded + j]


@exact
def _mix_narrow(
    own: Array, messages: Array, anchors: Array, weights: Array, sums: Array, first: int, last: int, out: Array
) -> None:
    """`centred_mix` of fewer columns than the registers hold, one by one."""
    share = own.dtype.type(1.0 / own.shape[0])
    for column in range(first, last):
        centre = own.dtype.type(0.0)
        for row in range(own.shape[0]):
            centre = fma(share, own[row, column], centre)
        for receiver in range(out.shape[0]):
            mixed = sums[receiver] * centre
            for row in range(own.shape[0] + messages.shape[0] + anchors.shape[0]):
                line = pool_row(own, messages, anchors, row, column, 1)
                mixed = fma(weights[receiver, row], line[0] - centre, mixed)
            out[receiver, column] = mixed


@inner
def _less(rows: Array, start: Any, centre: Array, z: Array, at: Any) -> None:
    """Four registers of z at `at` = those of the rows at `start` - centre."""
    lanes = lanes_of(z, VECTOR)
    for part in range(4):
        place = _U(part) * lanes
        store(z, at + place, minus(chunk(rows, start + place, VECTOR), chunk(centre, place, VECTOR)))


@inner
def _square(flat: Array, at: Any, mine: Array, left: Any, total: Any) -> Any:
    """Add the squares of one register of differences."""
    gap = minus(chunk(flat, at, HALF), chunk(mine, left, HALF))
    return fused(gap, gap, total)


@inner
def _add_square(flat: Array, at: Any, mine: Array, left: Any, first: Any, last: Any, lanes: Any) -> Any:
    """The sum of the lanes and of the squared differences of the last columns, one by one."""
    product, _ = half_sums(twice(lanes))
    for column in range(first, last):
        rest = flat[at + column] - mine[left + column]
        product = fma(rest, rest, product)
    return product


@exact
def own_products(own: Array, messages: Array, first: int, last: int, out: Array) -> None:
    """out[k] = ||messages[k] - own||^2 over the columns first .. last, for one receiver.

    The numbers, bit for bit, that `centred_products` has on its diagonal, whose centre is then the receiver's own
    model; the other products are not computed. Four messages at a time: each sum waits for its last addition.
    """
    lanes, width, size = lanes_of(own, HALF), _U(own.shape[1]), 512 if out.size < 12 else 256
    mine, flat = own.ravel(), messages.ravel()
    out[:] = 0.0
    for start in range(first, last, size):
        left, columns = _U(start), _U(min(size, last - start))
        whole = columns // lanes * lanes
        for row in range(0, out.size, 4):
            # the last of them may be one message several times
            p, q = _U(row) * width + left, _U(min(row + 1, out.size - 1)) * width + left
            r, s = _U(min(row + 2, out.size - 1)) * width + left, _U(min(row + 3, out.size - 1)) * width + left
            a = b = c = d = spread(own.dtype.type(0.0), chunk(mine, _U(0), HALF))
            for column in range(_U(0), whole, lanes):
                a = _square(flat, p + column, mine, left + column, a)
                b = _square(flat, q + column, mine, left + column, b)
                c = _square(flat, r + column, mine, left + column, c)
                d = _square(flat, s + column, mine, left + column, d)
            out[row] += _add_square(flat, p, mine, left, whole, columns, a)
            if row + 1 < out.size:
                out[row + 1] += _add_square(flat, q, mine, left, whole, columns, b)
            if row + 2 < out.size:
                out[row + 2] += _add_square(flat, r, mine, left, whole, columns, c)
            if row + 3 < out.size:
                out[row + 3] += _add_square(flat, s, mine, left, whole, columns, d)


@exact
def _mix_one(own: Array, messages: Array, weights: Array, total: Any, first: int, last: int, out: Array) -> None:
    """`centred_mix` for one receiver without anchors, whose own model is the centre: nothing is built on the way."""
    lanes, width = lanes_of(own, VECTOR), _U(own.shape[1])
    columns: Any = np.int64(lanes_of(own, _FOUR))
    centre, flat, target = own.ravel(), messages.ravel(), out.ravel()
    for start in range(first, last, columns):
        left = _U(min(start, last - columns))
        a, b = chunk(centre, left, VECTOR), chunk(centre, left + lanes, VECTOR)
        c, d = chunk(centre, left + _U(2) * lanes, VECTOR), chunk(centre, left + _U(3) * lanes, VECTOR)
        w = spread(total, a)
        p, q, r, s = times(w, a), times(w, b), times(w, c), times(w, d)
        for row in range(messages.shape[0]):
            if weights[row] != 0.0:
                at, w = _U(row) * width + left, spread(weights[row], a)
                p = fused(w, minus(chunk(flat, at, VECTOR), a), p)
                q = fused(w, minus(chunk(flat, at + lanes, VECTOR), b), q)
                r = fused(w, minus(chunk(flat, at + _U(2) * lanes, VECTOR), c), r)
                s = fused(w, minus(chunk(flat, at + _U(3) * lanes, VECTOR), d), s)
        _store_four(target, left, p, q, r, s)


@exact
def centred_mix(
    own: Array, messages: Array, anchors: Array, weights: Array, sums: Array, first: int, last: int, out: Array
) -> None:
    """out[r] = sums[r] c + sum_m weights[r, m] (row_m - c) over the columns first .. last, c the receivers' own mean.

    Two receivers and four registers of columns at a time: the sums stay in registers.
    """
    lanes = lanes_of(own, VECTOR)
    columns: Any = np.int64(lanes_of(own, _FOUR))
    if last - first < columns:
        _mix_narrow(own, messages, anchors, weights, sums, first, last, out)
        return
    if own.shape[0] == 1 and out.shape[0] == 1 and anchors.shape[0] == 0:
        _mix_one(own, messages, weights[0, 1:], sums[0], first, last, out)
        return
    dense, receivers = own.shape[0] + messages.shape[0] + anchors.shape[0], out.shape[0]
    block, width = _U(columns), _U(out.shape[1])
    z, centre, target = aligned(dense * columns, own), aligned(columns, own), out.ravel()
    flat, received, fixed = own.ravel(), messages.ravel(), anchors.ravel()
    count, past = _U(own.shape[0]), _U(own.shape[0] + messages.shape[0])
    share = own.dtype.type(1.0 / own.shape[0])
    for start in range(first, last, columns):
        left = _U(min(start, last - columns))  # the last block ends with the columns: it may overlap the one before
        _centre_block(flat, own.shape[0], width, left, share, centre, _U(0))
        for row in range(count):
            _less(flat, row * width + left, centre, z, row * block)
        for row in range(_U(messages.shape[0])):
            _less(received, row * width + left, centre, z, (count + row) * block)
        for row in range(_U(anchors.shape[0])):
            _less(fixed, row * width + left, centre, z, (past + row) * block)
        a, b = chunk(centre, _U(0), VECTOR), chunk(centre, lanes, VECTOR)
        c, d = chunk(centre, _U(2) * lanes, VECTOR), chunk(centre, _U(3) * lanes, VECTOR)
        for even in range(0, receivers, 2):
            odd = min(even + 1, receivers - 1)  # the last one has no partner if the number is odd
            w, v = spread(sums[even], a), spread(sums[odd], a)
            p, q, r, s = times(w, a), times(w, b), times(w, c), times(w, d)
            e, f, g, h = times(v, a), times(v, b), times(v, c), times(v, d)
            for row in range(dense):
                at = _U(row) * block
                x, y = chunk(z, at, VECTOR), chunk(z, at + lanes, VECTOR)
                t, u = chunk(z, at + _U(2) * lanes, VECTOR), chunk(z, at + _U(3) * lanes, VECTOR)
                w, v = spread(weights[even, row], a), spread(weights[odd, row], a)
                p, q, r, s = fused(w, x, p), fused(w, y, q), fused(w, t, r), fused(w, u, s)
                e, f, g, h = fused(v, x, e), fused(v, y, f), fused(v, t, g), fused(v, u, h)
            _store_four(target, _U(odd) * width + left, e, f, g, h)
            _store_four(target, _U(even) * width + left, p, q, r, s)

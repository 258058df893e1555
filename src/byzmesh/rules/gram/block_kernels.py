"""Compiled passes over the rows of a pool of any size: all code that touches D numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact, fast
from byzmesh.simd import VECTOR, chunk, fma, fused, lanes_of, load, minus, spread, store, times
from byzmesh.simd_sums import add_sums, larger, largest, magnitude
from byzmesh.types import Array

_BLOCK = 512
_U = np.uint64
_BYTES = 32
"""Partial sums of a product, the same number on every processor."""


@fast
def peak_bits(bits: Array, mask: Any) -> Array:
    """(P,) largest bit pattern without its sign, rows viewed as integers: orders like |x|, with inf and NaN on top."""
    kind = bits.dtype.type
    out = np.zeros(bits.shape[0], bits.dtype)
    for row in range(bits.shape[0]):
        top = kind(0)
        line = bits[row]
        for column in range(line.size):
            value = kind(line[column] & mask)
            if value > top:
                top = value
        out[row] = top
    return out


@exact
def row_peaks(rows: Array, out: Array) -> None:
    """out[p] = the largest absolute value of a contiguous row, infinity if one is not finite."""
    lanes, width, flat = lanes_of(rows, VECTOR), _U(rows.shape[1]), rows.ravel()
    whole = width // lanes * lanes
    nothing = np.zeros(VECTOR, rows.dtype)
    for row in range(rows.shape[0]):
        start = _U(row) * width
        top, last = magnitude(chunk(nothing, _U(0), VECTOR)), magnitude(load(nothing, _U(0), 1))
        for column in range(_U(0), whole, lanes):
            top = larger(top, magnitude(chunk(flat, start + column, VECTOR)))
        for column in range(whole, width):
            last = larger(last, magnitude(load(flat, start + column, 1)))
        peak = largest(last, nothing[0])
        most = largest(top, nothing[0])
        found = np.float64(most if most > peak or np.isnan(most) else peak)
        out[row] = np.inf if np.isnan(found) else found


@fast
def center_columns(
    own: Array,
    messages: Array,
    anchors: Array,
    share: Array,
    factor: Array,
    start: int,
    centre_row: bool,
    basis: Array,
    centre: Array,
) -> None:
    """One chunk of columns: centre = sum of share * own, basis rows = (row - centre) * factor, centre last if asked.

    A row with factor 0 is unusable and becomes zero without being read.
    """
    count, received, width = own.shape[0], messages.shape[0], centre.size
    kind = own.dtype.type
    for left in range(0, width, _BLOCK):
        size = min(_BLOCK, width - left)
        middle = centre[left : left + size]
        middle[:] = kind(0.0)
        for row in range(count):
            if share[row] > 0.0:
                part = kind(share[row])
                line = own[row, start + left : start + left + size]
                for column in range(size):
                    middle[column] += part * line[column]
        for row in range(basis.shape[0] - int(centre_row)):
            if row < count:
                line = own[row, start + left : start + left + size]
            elif row < count + received:
                line = messages[row - count, start + left : start + left + size]
            else:
                line = anchors[row - count - received, start + left : start + left + size]
            target = basis[row, left : left + size]
            shrink = kind(factor[row])
            if factor[row] == 1.0:
                for column in range(size):
                    target[column] = line[column] - middle[column]
            elif factor[row] == 0.0:
                target[:] = kind(0.0)
            else:
                for column in range(size):
                    target[column] = line[column] * shrink - middle[column] * shrink
        if centre_row:
            basis[basis.shape[0] - 1, left : left + size] = middle


@exact
def _mix(flat: Array, row: Array, weight: Array, used: int, lead: Any, target: Array) -> None:
    """target = lead * first + sum_{0 < i < used} weight[i] * (row_i - first); row_i begins at flat[row[i]], first is 0.

    Four registers of columns at a time, in which the sums stay: every row is one stream from memory, the target is only
    written.
    """
    lanes, size = lanes_of(flat, VECTOR), _U(target.size)
    block = _U(4) * lanes
    whole = size // block * block
    for column in range(_U(0), whole, block):
        at = row[0] + column
        p, q = chunk(flat, at, VECTOR), chunk(flat, at + lanes, VECTOR)
        r, s = chunk(flat, at + _U(2) * lanes, VECTOR), chunk(flat, at + _U(3) * lanes, VECTOR)
        w = spread(lead, p)
        a, b, c, d = times(w, p), times(w, q), times(w, r), times(w, s)
        for i in range(1, used):
            at, w = row[i] + column, spread(weight[i], p)
            a = fused(w, minus(chunk(flat, at, VECTOR), p), a)
            b = fused(w, minus(chunk(flat, at + lanes, VECTOR), q), b)
            c = fused(w, minus(chunk(flat, at + _U(2) * lanes, VECTOR), r), c)
            d = fused(w, minus(chunk(flat, at + _U(3) * lanes, VECTOR), s), d)
        store(target, column, a)
        store(target, column + lanes, b)
        store(target, column + _U(2) * lanes, c)
        store(target, column + _U(3) * lanes, d)
    for column in range(whole, size):
        first = flat[row[0] + column]
        total = lead * first
        for i in range(1, used):
            total = fma(weight[i], flat[row[i] + column] - first, total)
        target[column] = total


@exact
def _combine(own: Array, index: Array, share: Array, left: int, row: Array, weight: Array, target: Array) -> None:
    """target = sum_j share[j] own[index[j]] over the columns from `left`; `row` and `weight` (J,) are scratch."""
    used, total = 0, 0.0
    for term in range(index.size):
        if share[term] != 0.0:
            row[used] = _U(index[term]) * _U(own.shape[1]) + _U(left)
            weight[used] = own.dtype.type(share[term])
            total += share[term]
            used += 1
    if used == 0:
        target[:] = own.dtype.type(0.0)
    else:
        _mix(own.ravel(), row, weight, used, own.dtype.type(total), target)


@fast
def _differ(line: Array, centre: Array, shrink: Any, target: Array) -> None:
    if shrink == target.dtype.type(1.0):
        for column in range(target.size):
            target[column] = line[column] - centre[column]
    else:
        for column in range(target.size):
            target[column] = line[column] * shrink - centre[column] * shrink


@fast
def _add(line: Array, centre: Array, weight: Any, target: Array) -> None:
    for column in range(target.size):
        target[column] += weight * (line[column] - centre[column])


@exact
def build_messages(own: Array, terms: Array, share: Array, out: Array) -> None:
    """out[q] = message q of a combination."""
    row, weight = np.empty(terms.shape[1], np.uint64), np.empty(terms.shape[1], own.dtype)
    for message in range(out.shape[0]):
        _combine(own, terms[message], share[message], 0, row, weight, out[message])


@exact
def _two_by_four(z: Array, row: int, other: int, size: Any, sums: Array, at: Any) -> None:
    """sums[at : at + 8] += products of rows row, row + 1 with rows other .. other + 3 over the first `size` columns."""
    lanes, width = lanes_of(z, _BYTES), _U(_BLOCK)
    one, four = _U(row) * width, _U(other) * width
    a = b = c = d = e = f = g = h = spread(z.dtype.type(0.0), chunk(z, _U(0), _BYTES))
    for column in range(_U(0), size, lanes):
        x, y = chunk(z, one + column, _BYTES), chunk(z, one + width + column, _BYTES)
        w = chunk(z, four + column, _BYTES)
        a, e = fused(x, w, a), fused(y, w, e)
        w = chunk(z, four + width + column, _BYTES)
        b, f = fused(x, w, b), fused(y, w, f)
        w = chunk(z, four + _U(2) * width + column, _BYTES)
        c, g = fused(x, w, c), fused(y, w, g)
        w = chunk(z, four + _U(3) * width + column, _BYTES)
        d, h = fused(x, w, d), fused(y, w, h)
    add_sums(sums, at, a, b, c, d, e, f, g, h)


@exact
def _place(i: int, j: int) -> int:
    """Where the product of rows i >= j is among the tiles of two by four: a pair of rows p has p // 2 + 1 of them."""
    pair = i // 2
    before = (pair + 1) // 2 * (pair // 2 + 1)
    return (before + j // 4) * 8 + i % 2 * 4 + j % 4


@exact
def neighbourhood_products(
    own: Array,
    messages: Array,
    terms: Array,
    share: Array,
    anchors: Array,
    index: Array,
    present: Array,
    needed: Array,
    factor: Array,
    scale: Array,
    out: Array,
) -> None:
    """out[r, i, j] = <y_i - own_r, y_j - own_r> for each receiver separately; zero where a slot is absent.

    The rows of a pool are `own`, then combinations of own rows (`terms`, `share`), then `messages`, then `anchors`.
    Receivers that are not `needed` get zeros. Blocks of columns of an inbox stay in the cache, two by four products at
    a time in registers; the blocks' sums are added in float64.
    """
    width, slots, count = own.shape[1], index.shape[1], own.shape[0]
    before = count + messages.shape[0] + terms.shape[0]
    kind = own.dtype.type
    buffer = np.zeros(((slots + 3) // 4 * 4, _BLOCK), own.dtype)  # rows of zeros at the end: no remainder
    flat, lanes = buffer.ravel(), np.int64(lanes_of(own, _BYTES))
    sums = np.empty(buffer.shape[0] ** 2)  # tile after tile
    held, same = np.empty(slots, np.int64), np.empty(slots, np.int64)
    begin, part = np.empty(terms.shape[1], np.uint64), np.empty(terms.shape[1], own.dtype)
    out[:] = 0.0
    for receiver in range(index.shape[0]):
        if not needed[receiver]:
            continue
        used = 0
        for slot in range(1, slots):
            if present[receiver, slot]:
                held[used] = slot
                same[used] = used
                for place in range(used):  # liars often tell the same
                    if index[receiver, held[place]] == index[receiver, slot]:
                        same[used] = place
                        break
                used += 1
        sums[:] = 0.0
        for left in range(0, width, _BLOCK):
            size = min(_BLOCK, width - left)
            centre = own[index[receiver, 0], left : left + size]
            for place in range(used):
                row = index[receiver, held[place]]
                target = buffer[place, :size]
                shrink = kind(factor[row])
                if same[place] < place:
                    target[:] = buffer[same[place], :size]
                    continue
                if row < count:
                    _differ(own[row, left : left + size], centre, shrink, target)
                elif row < count + terms.shape[0]:
                    _combine(own, terms[row - count], share[row - count], left, begin, part, target)
                    _differ(target, centre, shrink, target)
                elif row < before:
                    _differ(messages[row - count - terms.shape[0], left : left + size], centre, shrink, target)
                else:
                    _differ(anchors[row - before, left : left + size], centre, shrink, target)
            padded = (size + lanes - 1) // lanes * lanes
            buffer[:used, size:padded] = kind(0.0)
            buffer[used:] = kind(0.0)
            at = _U(0)
            for row in range(0, used, 2):
                for other in range(0, row + 2, 4):
                    _two_by_four(flat, row, other, _U(padded), sums, at)
                    at += _U(8)
        for i in range(used):
            for j in range(i + 1):
                one, other = held[i], held[j]
                value = sums[_place(i, j)] * scale[index[receiver, one]] * scale[index[receiver, other]]
                out[receiver, one, other] = value
                out[receiver, other, one] = value


@exact
def mix_rows(
    own: Array,
    messages: Array,
    terms: Array,
    share: Array,
    anchors: Array,
    index: Array,
    coefficient: Array,
    out: Array,
) -> None:
    """out[r] = sum_k coefficient[r, k] y_{index[r, k]}, summed as differences from slot 0's row; rows as above.

    A combination enters by its terms, so it is never built.
    """
    slots, count, width = index.shape[1], own.shape[0], _U(own.shape[1])
    before = count + messages.shape[0] + terms.shape[0]
    kind, flat = own.dtype.type, own.ravel()
    row = np.empty(1 + slots * (1 + terms.shape[1]), np.uint64)
    weight = np.empty(row.size, own.dtype)
    for receiver in range(index.shape[0]):
        used, total = 1, coefficient[receiver, 0]
        row[0] = _U(index[receiver, 0]) * width
        for slot in range(1, slots):
            value, source = coefficient[receiver, slot], index[receiver, slot]
            if value == 0.0:
                continue
            if count <= source < count + terms.shape[0]:
                for term in range(terms.shape[1]):
                    part = value * share[source - count, term]
                    if part != 0.0:
                        row[used], weight[used] = _U(terms[source - count, term]) * width, kind(part)
                        total += part
                        used += 1
            else:
                total += value
                if source < count:
                    row[used], weight[used] = _U(source) * width, kind(value)
                    used += 1
        _mix(flat, row, weight, used, kind(total), out[receiver])
        centre = own[index[receiver, 0]]
        for slot in range(1, slots):
            value, source = coefficient[receiver, slot], index[receiver, slot]
            if value != 0.0 and source >= before:
                _add(anchors[source - before], centre, kind(value), out[receiver])
            elif value != 0.0 and source >= count + terms.shape[0]:
                _add(messages[source - count - terms.shape[0]], centre, kind(value), out[receiver])

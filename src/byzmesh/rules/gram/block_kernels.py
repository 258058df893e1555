"""Compiled passes over the rows of a pool of any size: all code that touches D numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import fast
from byzmesh.types import Array

_BLOCK = 512


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


@fast
def combine(own: Array, terms: Array, share: Array, message: int, left: int, size: int, target: Array) -> None:
    """target[:size] = columns left .. left + size of message sum_j share[message, j] own[terms[message, j]]."""
    kind = own.dtype.type
    for column in range(size):
        target[column] = kind(0.0)
    for term in range(terms.shape[1]):
        factor = kind(share[message, term])
        if factor != kind(0.0):
            line = own[terms[message, term], left : left + size]
            for column in range(size):
                target[column] += factor * line[column]


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


@fast
def build_messages(own: Array, terms: Array, share: Array, out: Array) -> None:
    """out[q] = message q of a combination."""
    for message in range(out.shape[0]):
        for left in range(0, out.shape[1], _BLOCK):
            size = min(_BLOCK, out.shape[1] - left)
            combine(own, terms, share, message, left, size, out[message, left : left + size])


@fast
def add_products(basis: Array, size: int, sums: Array) -> None:
    """sums += basis basis^T over the first `size` columns, lower triangle; the number of rows is a multiple of four.

    Two by four dot products at a time, so that each number read from the cache is used several times.
    """
    kind = basis.dtype.type
    for i in range(0, basis.shape[0], 2):
        one, two = basis[i, :size], basis[i + 1, :size]
        for j in range(0, i + 2, 4):
            b0, b1, b2, b3 = basis[j, :size], basis[j + 1, :size], basis[j + 2, :size], basis[j + 3, :size]
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = kind(0.0)
            for column in range(size):
                x, y = one[column], two[column]
                z0, z1, z2, z3 = b0[column], b1[column], b2[column], b3[column]
                s0 += x * z0
                s1 += x * z1
                s2 += x * z2
                s3 += x * z3
                t0 += y * z0
                t1 += y * z1
                t2 += y * z2
                t3 += y * z3
            sums[i, j] += s0
            sums[i, j + 1] += s1
            sums[i, j + 2] += s2
            sums[i, j + 3] += s3
            sums[i + 1, j] += t0
            sums[i + 1, j + 1] += t1
            sums[i + 1, j + 2] += t2
            sums[i + 1, j + 3] += t3


@fast
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

    The rows of a pool are `own`, then `messages` or combinations of own rows (`terms`, `share`), then `anchors`.
    Receivers that are not `needed` get zeros. Blocks of columns of an inbox stay in the cache; their sums are added in
    float64.
    """
    width, slots, count = own.shape[1], index.shape[1], own.shape[0]
    before = count + messages.shape[0] + terms.shape[0]
    kind = own.dtype.type
    buffer = np.zeros(((slots + 3) // 4 * 4, _BLOCK), own.dtype)  # rows of zeros at the end: no remainder
    sums = np.empty((buffer.shape[0], buffer.shape[0]))
    held, same = np.empty(slots, np.int64), np.empty(slots, np.int64)
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
        rows = (used + 3) // 4 * 4
        sums[:rows, :rows] = 0.0
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
                    combine(own, terms, share, row - count, left, size, target)
                    _differ(target, centre, shrink, target)
                elif row < before:
                    _differ(messages[row - count, left : left + size], centre, shrink, target)
                else:
                    _differ(anchors[row - before, left : left + size], centre, shrink, target)
            buffer[used:rows, :size] = kind(0.0)
            add_products(buffer[:rows], size, sums)
        for i in range(used):
            for j in range(i + 1):
                one, other = held[i], held[j]
                value = sums[i, j] * scale[index[receiver, one]] * scale[index[receiver, other]]
                out[receiver, one, other] = value
                out[receiver, other, one] = value


@fast
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

    A combination enters by its terms, so it is never built. Four own rows at a time, which keeps the sums in registers.
    """
    width, slots, count = own.shape[1], index.shape[1], own.shape[0]
    before = count + messages.shape[0] + terms.shape[0]
    kind = own.dtype.type
    row = np.empty(slots * (1 + terms.shape[1]) + 3, np.int64)
    weight = np.empty(row.size, own.dtype)
    for receiver in range(index.shape[0]):
        used, total = 0, coefficient[receiver, 0]
        for slot in range(1, slots):
            value, source = coefficient[receiver, slot], index[receiver, slot]
            if value == 0.0:
                continue
            if count <= source < count + terms.shape[0]:
                for term in range(terms.shape[1]):
                    part = value * share[source - count, term]
                    if part != 0.0:
                        row[used], weight[used] = terms[source - count, term], kind(part)
                        total += part
                        used += 1
            else:
                total += value
                if source < count:
                    row[used], weight[used] = source, kind(value)
                    used += 1
        while used % 4:
            row[used], weight[used] = index[receiver, 0], kind(0.0)
            used += 1
        lead = kind(total)
        for left in range(0, width, _BLOCK):
            size = min(_BLOCK, width - left)
            centre = own[index[receiver, 0], left : left + size]
            target = out[receiver, left : left + size]
            for column in range(size):
                target[column] = lead * centre[column]
            for first in range(0, used, 4):
                b0, b1 = own[row[first], left : left + size], own[row[first + 1], left : left + size]
                b2, b3 = own[row[first + 2], left : left + size], own[row[first + 3], left : left + size]
                w0, w1, w2, w3 = weight[first], weight[first + 1], weight[first + 2], weight[first + 3]
                for column in range(size):
                    c = centre[column]
                    pair = w0 * (b0[column] - c) + w1 * (b1[column] - c)
                    target[column] += pair + (w2 * (b2[column] - c) + w3 * (b3[column] - c))
            for slot in range(1, slots):
                value, source = coefficient[receiver, slot], index[receiver, slot]
                if value != 0.0 and source >= before:
                    _add(anchors[source - before, left : left + size], centre, kind(value), target)
                elif value != 0.0 and source >= count + terms.shape[0]:
                    _add(messages[source - count, left : left + size], centre, kind(value), target)

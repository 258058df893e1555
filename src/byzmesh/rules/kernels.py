"""Compiled passes over the pool: everything in geometry.py that touches D numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import exact, fast

Array = npt.NDArray[Any]

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

    A row with factor 0 is not usable and becomes zero without being read.
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
def neighbourhood_products(
    own: Array, messages: Array, anchors: Array, index: Array, present: Array, factor: Array, scale: Array, out: Array
) -> None:
    """out[r, i, j] = <y_i - own_r, y_j - own_r> for each receiver by itself; zero where a slot is absent."""
    count, received, width = own.shape[0], messages.shape[0], own.shape[1]
    slots = index.shape[1]
    kind = own.dtype.type
    buffer = np.empty((slots, _BLOCK), own.dtype)
    held = np.empty(slots, np.int64)
    for receiver in range(index.shape[0]):
        out[receiver] = 0.0
        used = 0
        for slot in range(1, slots):
            if present[receiver, slot]:
                held[used] = slot
                used += 1
        for left in range(0, width, _BLOCK):
            size = min(_BLOCK, width - left)
            centre = own[index[receiver, 0], left : left + size]
            for place in range(used):
                row = index[receiver, held[place]]
                if row < count:
                    line = own[row, left : left + size]
                elif row < count + received:
                    line = messages[row - count, left : left + size]
                else:
                    line = anchors[row - count - received, left : left + size]
                shrink = kind(factor[row])
                target = buffer[place, :size]
                for column in range(size):
                    target[column] = line[column] * shrink - centre[column] * shrink
            for i in range(used):
                one = buffer[i, :size]
                for j in range(i + 1):
                    other = buffer[j, :size]
                    total = kind(0.0)
                    for column in range(size):
                        total += one[column] * other[column]
                    out[receiver, held[i], held[j]] += total
        for i in range(used):
            for j in range(i + 1):
                a, b = held[i], held[j]
                value = out[receiver, a, b] * scale[index[receiver, a]] * scale[index[receiver, b]]
                out[receiver, a, b] = value
                out[receiver, b, a] = value


@fast
def mix_rows(
    own: Array, messages: Array, anchors: Array, index: Array, coefficient: Array, centred: bool, out: Array
) -> None:
    """out[r] = sum_k coefficient[r, k] y_{index[r, k]}, summed as differences from slot 0's row if `centred`."""
    count, received, width = own.shape[0], messages.shape[0], own.shape[1]
    kind = own.dtype.type
    for receiver in range(index.shape[0]):
        total = 0.0
        for slot in range(index.shape[1]):
            total += coefficient[receiver, slot]
        lead = kind(total) if centred else kind(0.0)
        for left in range(0, width, _BLOCK):
            size = min(_BLOCK, width - left)
            centre = own[index[receiver, 0], left : left + size]
            target = out[receiver, left : left + size]
            for column in range(size):
                target[column] = lead * centre[column]
            for slot in range(1 if centred else 0, index.shape[1]):
                if coefficient[receiver, slot] == 0.0:
                    continue
                factor = kind(coefficient[receiver, slot])
                row = index[receiver, slot]
                if row < count:
                    line = own[row, left : left + size]
                elif row < count + received:
                    line = messages[row - count, left : left + size]
                else:
                    line = anchors[row - count - received, left : left + size]
                if centred:
                    for column in range(size):
                        target[column] += factor * (line[column] - centre[column])
                else:
                    for column in range(size):
                        target[column] += factor * line[column]


@fast
def _row(own: Array, messages: Array, anchors: Array, row: int, left: int, size: int) -> Array:
    """Columns left .. left + size of a dense row, in basis numbering."""
    count, received = own.shape[0], messages.shape[0]
    if row < count:
        return own[row, left : left + size]
    if row < count + received:
        return messages[row - count, left : left + size]
    return anchors[row - count - received, left : left + size]


@fast
def _centre_block(
    own: Array, messages: Array, anchors: Array, left: int, size: int, basis: Array, centre: Array
) -> None:
    """One block of columns: the mean of the own rows, and every dense row minus it."""
    count = own.shape[0]
    kind = own.dtype.type
    share = kind(1.0 / count)
    middle = centre[:size]
    middle[:] = kind(0.0)
    for row in range(count):
        line = own[row, left : left + size]
        for column in range(size):
            middle[column] += share * line[column]
    for row in range(count + messages.shape[0] + anchors.shape[0]):
        line = _row(own, messages, anchors, row, left, size)
        target = basis[row, :size]
        for column in range(size):
            target[column] = line[column] - middle[column]


@fast
def centred_products(
    own: Array, messages: Array, anchors: Array, centre_row: bool, first: int, last: int, total: Array
) -> None:
    """total = Z Z^T over the columns first .. last, Z the basis of finite, not huge rows (centre last if asked).

    Z is never built as a whole.
    Two by four dot products at a time over a block of columns that stays in the cache; blocks are added in float64.
    """
    height = total.shape[0]
    kind = own.dtype.type
    block = _BLOCK if height <= 12 else _BLOCK // 2
    padded = (height + 3) // 4 * 4  # rows of zeros, so that there are no odd ends
    basis = np.zeros((padded, block), own.dtype)
    centre = np.empty(block, own.dtype)
    sums = np.zeros((padded, padded))
    for left in range(first, last, block):
        size = min(block, last - left)
        _centre_block(own, messages, anchors, left, size, basis, centre)
        if centre_row:
            basis[height - 1, :size] = centre[:size]
        for i in range(0, padded, 2):
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
    for i in range(height):
        for j in range(i + 1):
            total[i, j] = sums[i, j]
            total[j, i] = sums[i, j]


@fast
def centred_mix(
    own: Array, messages: Array, anchors: Array, weights: Array, sums: Array, first: int, last: int, out: Array
) -> None:
    """out[r] = sums[r] c + sum_m weights[r, m] (row_m - c) over the columns first .. last, c the mean of the own rows.

    Two receivers and four rows at a time, so that most of the traffic stays in registers.
    """
    receivers = out.shape[0]
    dense = own.shape[0] + messages.shape[0] + anchors.shape[0]
    block = _BLOCK // 2
    basis = np.empty((dense, block), own.dtype)
    centre, spare = np.empty(block, own.dtype), np.empty(block, own.dtype)
    for left in range(first, last, block):
        size = min(block, last - left)
        _centre_block(own, messages, anchors, left, size, basis, centre)
        middle = centre[:size]
        for even in range(0, receivers, 2):
            odd = min(even + 1, receivers - 1)
            one = out[even, left : left + size]
            two = out[odd, left : left + size] if odd > even else spare[:size]  # the last of an odd number comes alone
            lead_one, lead_two = sums[even], sums[odd]
            for column in range(size):
                one[column] = lead_one * middle[column]
                two[column] = lead_two * middle[column]
            for row in range(0, dense - 3, 4):
                b0, b1, b2, b3 = basis[row, :size], basis[row + 1, :size], basis[row + 2, :size], basis[row + 3, :size]
                w0, w1 = weights[even, row], weights[even, row + 1]
                w2, w3 = weights[even, row + 2], weights[even, row + 3]
                v0, v1 = weights[odd, row], weights[odd, row + 1]
                v2, v3 = weights[odd, row + 2], weights[odd, row + 3]
                for column in range(size):
                    x0, x1, x2, x3 = b0[column], b1[column], b2[column], b3[column]
                    one[column] += (w0 * x0 + w1 * x1) + (w2 * x2 + w3 * x3)
                    two[column] += (v0 * x0 + v1 * x1) + (v2 * x2 + v3 * x3)
            for row in range(dense // 4 * 4, dense):
                line = basis[row, :size]
                w0, v0 = weights[even, row], weights[odd, row]
                for column in range(size):
                    one[column] += w0 * line[column]
                    two[column] += v0 * line[column]


@exact
def combination_peaks(index: Array, coefficient: Array, peak: Array) -> Array:
    """(Q,) upper bounds of |message|; infinity where a combined row is not finite."""
    out = np.zeros(index.shape[0])
    for message in range(index.shape[0]):
        for slot in range(index.shape[1]):
            if coefficient[message, slot] != 0.0:
                out[message] += abs(coefficient[message, slot]) * peak[index[message, slot]]
    return out


@exact
def sums_to_one(coefficient: Array) -> bool:
    """Whether every row sums to 1."""
    for message in range(coefficient.shape[0]):
        total = 0.0
        for slot in range(coefficient.shape[1]):
            total += coefficient[message, slot]
        if abs(total - 1.0) > 1e-15:
            return False
    return True


@exact
def gather_blocks(inner: Array, index: Array, present: Array, out: Array) -> None:
    """out[r, i, j] = <y_i - own, y_j - own> from the pool's inner products; zero where a slot is absent."""
    for receiver in range(index.shape[0]):
        own = index[receiver, 0]
        for i in range(index.shape[1]):
            for j in range(index.shape[1]):
                if present[receiver, i] and present[receiver, j]:
                    p, q = index[receiver, i], index[receiver, j]
                    out[receiver, i, j] = (inner[p, q] - inner[p, own]) - (inner[own, q] - inner[own, own])
                else:
                    out[receiver, i, j] = 0.0


@exact
def scatter(index: Array, coefficient: Array, out: Array) -> None:
    """out[r, index[r, k]] += coefficient[r, k]."""
    for receiver in range(index.shape[0]):
        for slot in range(index.shape[1]):
            out[receiver, index[receiver, slot]] += coefficient[receiver, slot]


@exact
def lift_combinations(
    index: Array, coefficient: Array, scale: Array, count: int, centre_row: bool, lift: Array
) -> None:
    """Fill lift (P, M): dense rows on the diagonal (own first, anchors last), combinations over the own rows."""
    messages = index.shape[0]
    for row in range(lift.shape[0]):
        if row < count:
            lift[row, row] = scale[row]
        elif row < count + messages:
            total = 0.0
            for slot in range(index.shape[1]):
                value = coefficient[row - count, slot]
                total += value
                lift[row, index[row - count, slot]] += value * scale[index[row - count, slot]]
            if centre_row:
                lift[row, lift.shape[1] - 1] = total - 1.0
        else:
            lift[row, row - messages] = scale[row - messages]

"""Compiled passes over the rows of a pool of any size: all code that touches D numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import fast
from byzmesh.rules.gram.small_kernels import add_products, pool_row
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
def neighbourhood_products(
    own: Array, messages: Array, anchors: Array, index: Array, present: Array, factor: Array, scale: Array, out: Array
) -> None:
    """out[r, i, j] = <y_i - own_r, y_j - own_r> for each receiver separately; zero where a slot is absent.

    The outer loop runs over blocks of columns, the inner one over receivers: a block of all rows stays in the cache
    while every neighbourhood reads its part of it.
    """
    width, slots = own.shape[1], index.shape[1]
    kind = own.dtype.type
    block = _BLOCK // 2
    padded = (slots + 3) // 4 * 4  # with rows of zeros, so that there is no remainder
    buffer = np.zeros((padded, block), own.dtype)
    sums = np.empty((padded, padded))
    held = np.empty(slots, np.int64)
    out[:] = 0.0
    for left in range(0, width, block):
        size = min(block, width - left)
        for receiver in range(index.shape[0]):
            used = 0
            for slot in range(1, slots):
                if present[receiver, slot]:
                    held[used] = slot
                    used += 1
            centre = own[index[receiver, 0], left : left + size]
            for place in range(used):
                row = index[receiver, held[place]]
                line = pool_row(own, messages, anchors, row, left, size)
                shrink = kind(factor[row])
                target = buffer[place, :size]
                for column in range(size):
                    target[column] = line[column] * shrink - centre[column] * shrink
            rows = (used + 3) // 4 * 4
            buffer[used:rows, :size] = kind(0.0)
            sums[:rows, :rows] = 0.0
            add_products(buffer[:rows], size, sums)
            for i in range(used):
                for j in range(i + 1):
                    out[receiver, held[i], held[j]] += sums[i, j]
    for receiver in range(index.shape[0]):
        for i in range(1, slots):
            for j in range(1, i + 1):
                value = out[receiver, i, j] * scale[index[receiver, i]] * scale[index[receiver, j]]
                out[receiver, i, j] = value
                out[receiver, j, i] = value


@fast
def mix_rows(
    own: Array, messages: Array, anchors: Array, index: Array, coefficient: Array, centred: bool, out: Array
) -> None:
    """out[r] = sum_k coefficient[r, k] y_{index[r, k]}, summed as differences from slot 0's row if `centred`."""
    width = own.shape[1]
    kind = own.dtype.type
    for left in range(0, width, _BLOCK // 2):
        size = min(_BLOCK // 2, width - left)
        for receiver in range(index.shape[0]):
            total = 0.0
            for slot in range(index.shape[1]):
                total += coefficient[receiver, slot]
            lead = kind(total) if centred else kind(0.0)
            centre = own[index[receiver, 0], left : left + size]
            target = out[receiver, left : left + size]
            for column in range(size):
                target[column] = lead * centre[column]
            for slot in range(1 if centred else 0, index.shape[1]):
                if coefficient[receiver, slot] == 0.0:
                    continue
                factor = kind(coefficient[receiver, slot])
                line = pool_row(own, messages, anchors, index[receiver, slot], left, size)
                if centred:
                    for column in range(size):
                        target[column] += factor * (line[column] - centre[column])
                else:
                    for column in range(size):
                        target[column] += factor * line[column]

"""Gram and mixing products of small pools, centred on the fly: no array of the pool's size is built."""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import fast
from byzmesh.types import Array

_BLOCK = 512


@fast
def pool_row(own: Array, messages: Array, anchors: Array, row: int, left: int, size: int) -> Array:
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
    """One block of columns: the mean of the receivers' own rows, and every dense row minus it."""
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
        line = pool_row(own, messages, anchors, row, left, size)
        target = basis[row, :size]
        for column in range(size):
            target[column] = line[column] - middle[column]


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
def centred_products(
    own: Array, messages: Array, anchors: Array, centre_row: bool, first: int, last: int, total: Array
) -> None:
    """total = Z Z^T over the columns first .. last, Z the basis of finite, not huge rows (centre last if asked).

    Z is never built as a whole: one block of columns at a time stays in the cache; blocks are added in float64.
    """
    height = total.shape[0]
    block = _BLOCK if height <= 12 else _BLOCK // 2
    padded = (height + 3) // 4 * 4  # with rows of zeros, so that there is no remainder
    basis = np.zeros((padded, block), own.dtype)
    centre = np.empty(block, own.dtype)
    sums = np.zeros((padded, padded))
    for left in range(first, last, block):
        size = min(block, last - left)
        _centre_block(own, messages, anchors, left, size, basis, centre)
        if centre_row:
            basis[height - 1, :size] = centre[:size]
        add_products(basis, size, sums)
    for i in range(height):
        for j in range(i + 1):
            total[i, j] = sums[i, j]
            total[j, i] = sums[i, j]


@fast
def centred_mix(
    own: Array, messages: Array, anchors: Array, weights: Array, sums: Array, first: int, last: int, out: Array
) -> None:
    """out[r] = sums[r] c + sum_m weights[r, m] (row_m - c) over the columns first .. last, c the receivers' own mean.

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
            two = (
                out[odd, left : left + size] if odd > even else spare[:size]
            )  # the last one has no partner if the number is odd
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

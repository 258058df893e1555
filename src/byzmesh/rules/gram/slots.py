"""Compiled bookkeeping between slots, pool rows and basis rows: small arrays, nothing of size D."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.types import Array


@exact
def combination_peaks(index: Array, coefficient: Array, peak: Array) -> Array:
    """(Q,) upper bounds of |message|; infinity if a combined row is not finite."""
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
    """Fill lift (P, M): dense rows on the diagonal (own first, anchors last), combinations of the first."""
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


MOST = 128
"""`row_sum` adds at most this many numbers."""


@exact
def row_sum(row: Array) -> Any:
    """The sum of at most `MOST` numbers in the order of NumPy's `sum`: eight sums side by side, then what is left."""
    count = row.size
    if count < 8:
        total = -0.0
        for place in range(count):
            total += row[place]
        return total
    a, b, c, d, e, f, g, h = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    whole = count - count % 8
    for place in range(8, whole, 8):
        a += row[place]
        b += row[place + 1]
        c += row[place + 2]
        d += row[place + 3]
        e += row[place + 4]
        f += row[place + 5]
        g += row[place + 6]
        h += row[place + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(whole, count):
        total += row[place]
    return total

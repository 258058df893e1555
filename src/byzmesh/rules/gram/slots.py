"""Compiled bookkeeping between slots, pool rows and basis rows: small arrays, nothing of size D."""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.simd import fma
from byzmesh.types import Array, Booleans, Floats, Integers


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
    base = np.empty(index.shape[1])
    for receiver in range(index.shape[0]):
        own = index[receiver, 0]
        for j in range(index.shape[1]):
            base[j] = inner[own, index[receiver, j]] - inner[own, own]
        for i in range(index.shape[1]):
            row, arrived = inner[index[receiver, i]], present[receiver, i]
            for j in range(index.shape[1]):
                if arrived and present[receiver, j]:
                    out[receiver, i, j] = (row[index[receiver, j]] - row[own]) - base[j]
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


@exact
def lifted_inner(lift: Array, gram: Array, half: Array, inner: Array) -> None:
    """inner (P, P) = lift gram lift^T with half (P, M) = lift gram; sums in order, without the lift's many zeros."""
    half[:] = 0.0
    for row in range(lift.shape[0]):
        for k in range(lift.shape[1]):
            if lift[row, k] != 0.0:
                for column in range(gram.shape[1]):
                    half[row, column] = fma(lift[row, k], gram[k, column], half[row, column])
    inner[:] = 0.0
    for column in range(lift.shape[0]):
        for k in range(lift.shape[1]):
            if lift[column, k] != 0.0:
                for row in range(lift.shape[0]):
                    inner[row, column] = fma(half[row, k], lift[column, k], inner[row, column])


@exact
def lifted_weights(matrix: Array, lift: Array, out: Array) -> None:
    """out (R, M) = matrix (R, P) lift; sums in order, without the zeros."""
    out[:] = 0.0
    for row in range(matrix.shape[0]):
        for k in range(lift.shape[0]):
            if matrix[row, k] != 0.0:
                for column in range(lift.shape[1]):
                    out[row, column] = fma(matrix[row, k], lift[k, column], out[row, column])


def anchored_slots(size: int, index: Integers, weight: Floats, present: Booleans) -> tuple[Integers, Floats, Booleans]:
    """(R, K + 1) slots with one more at the end: each receiver's anchor, after `size` rows, present with weight 0.

    >>> anchored_slots(7, np.array([[0, 2]]), np.full((1, 2), 0.5), np.ones((1, 2), bool))[:2]
    (array([[0, 2, 7]]), array([[0.5, 0.5, 0. ]]))
    """
    receivers = len(index)
    rows = size + np.arange(receivers)[:, None]
    return (
        np.concatenate([index, rows], axis=1),
        np.concatenate([weight, np.zeros((receivers, 1))], axis=1),
        np.concatenate([present, np.ones((receivers, 1), bool)], axis=1),
    )

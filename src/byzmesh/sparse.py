"""Arithmetic on the rows of sparse matrices, given by their entries."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from byzmesh.types import Array, Floats, Integers

A = TypeVar("A", bound=Array)

DENSE = 4096
"""Up to this many rows and columns a matrix may be a dense array: 134 MB of float64."""


def frozen(array: A) -> A:
    """The array, read-only from now on."""
    array.setflags(write=False)
    return array


def spans(start: Integers, length: Integers) -> Integers:
    """All of range(start[0], start[0] + length[0]), range(start[1], ...), ... in a row.

    >>> spans(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    first = np.cumsum(length) - length
    out: Integers = np.arange(int(length.sum())) + np.repeat(start - first, length)
    return out


def row_sums(row: Integers, column: Integers, value: Floats, shape: tuple[int, int]) -> Floats:
    """(R,) sums of the rows of an (R, C) matrix with these entries.

    Matrices of up to `DENSE` squared entries are added as NumPy adds a dense row: the rounding of that order is part of
    published results.
    """
    if shape[0] * shape[1] > DENSE * DENSE:
        return np.bincount(row, value, minlength=shape[0]).astype(np.float64)
    matrix = np.zeros(shape)
    matrix[row, column] = value
    total: Floats = matrix.sum(axis=1)
    return total

"""n vectors to vectors that an aggregator then combines: ByzFL's pre-aggregators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byzmesh.checks import at_least, require, whole
from byzmesh.integrations.byzfl.vectors import back, rows_of
from byzmesh.rules.aggregate import aggregate
from byzmesh.types import Array


class NNM:
    """Pre-aggregation: every vector becomes the mean of its n - f nearest, itself included.

    >>> NNM(1)(np.array([[1.0], [2.0], [4.0]])).tolist()
    [[1.5], [1.5], [3.0]]
    """

    def __init__(self, f: int = 0) -> None:
        self.f = whole("NNM: f", f, 0)

    def __call__(self, vectors: Any) -> Any:
        """(n, D) the mixed vectors."""
        rows, like = rows_of(vectors)
        require(self.f < len(rows), f"NNM: f must be less than n = {len(rows)}, got {self.f}")
        if self.f == len(rows) - 1:
            return back(rows.copy(), like)
        mixed = [
            aggregate("nna", row, np.delete(rows, place, axis=0), f=self.f) if np.isfinite(row).all() else row
            for place, row in enumerate(rows)
        ]
        return back(np.stack(mixed), like)


class Bucketing:
    """Pre-aggregation: the means of random groups of s; the draws are NumPy's or torch's, as their seeds say.

    >>> Bucketing(2)(np.array([[1.0], [1.0], [1.0]])).tolist()
    [[1.0], [1.0]]
    """

    def __init__(self, s: int = 1) -> None:
        self.s = whole("Bucketing: s", s, 1)

    def __call__(self, vectors: Any) -> Any:
        """(ceil(n / s), D) the means."""
        rows, like = rows_of(vectors)
        if isinstance(like, np.ndarray):
            order = np.random.permutation(len(rows))
        else:
            import torch

            order = torch.randperm(len(rows)).numpy()
        groups = [order[start : start + self.s] for start in range(0, len(rows), self.s)]
        return back(np.stack([rows[group].mean(axis=0) for group in groups]), like)


class Clipping:
    """Pre-aggregation: every vector longer than c is shortened to c.

    >>> Clipping(2.5)(np.array([[3.0, 4.0], [0.0, 0.5]])).tolist()
    [[1.5, 2.0], [0.0, 0.5]]
    """

    def __init__(self, c: float = 2.0) -> None:
        self.c = at_least("Clipping: c", c, 0.0)

    def __call__(self, vectors: Any) -> Any:
        """(n, D) the shortened vectors."""
        rows, like = rows_of(vectors)
        return back(shortened(rows, self.c), like)


class ARC:
    """Pre-aggregation: the floor(2 f (n - f) / n) longest vectors are shortened to the next length.

    >>> ARC(1)(np.array([[1.0], [2.0], [90.0]])).tolist()
    [[1.0], [2.0], [2.0]]
    """

    def __init__(self, f: int = 0) -> None:
        self.f = whole("ARC: f", f, 0)

    def __call__(self, vectors: Any) -> Any:
        """(n, D) the shortened vectors."""
        rows, like = rows_of(vectors)
        count = len(rows)
        require(self.f <= count, f"ARC: f must be at most n = {count}, got {self.f}")
        clipped = math.floor(2.0 * self.f / count * (count - self.f))
        lengths = np.sort(np.linalg.norm(rows, axis=1))
        return back(shortened(rows, float(lengths[max(0, count - clipped - 1)])), like)


def shortened(rows: Array, most: float) -> Array:
    """(n, D) the rows, at most as long as `most`; rows that are not finite stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    long = np.isfinite(length) & (length > most)
    return np.where(long, rows * (most / np.where(long, length, 1.0)), rows).astype(rows.dtype)

"""Phocas: per coordinate the mean of the S - f values nearest the trimmed mean (Xie, Koyejo and Gupta 2018).

    x_n,j = the mean of the S - f values y_m,j nearest t_j,    t_j the trimmed mean of the y_m,j

The trimmed mean leaves out the f smallest and the f largest of the S values. The S - f values nearest any point are
adjacent in sorted order: drop the farther end f times. O(S log S) per coordinate, by array operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule
from byzmesh.rules.feasible import BELOW_HALF_OF_ALL
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Array, Booleans, Integers

TIE = 1e-9
"""Relative difference of two distances below which they count as equal."""


def near_trimmed_mean(values: Array, f: int) -> Array:
    """(D,) per coordinate of (S, D), the mean of the S - f values nearest the mean without the f smallest and largest.

    >>> near_trimmed_mean(np.array([[0.0], [1.0], [2.0], [90.0]]), 1)
    array([1.])
    """
    ordered = np.sort(values, axis=0)
    count = len(ordered)
    middle = ordered[f : count - f].mean(axis=0)
    first, columns = np.zeros(ordered.shape[1], np.int64), np.arange(ordered.shape[1])
    for dropped in range(f):
        low, high = ordered[first, columns], ordered[first + count - 1 - dropped, columns]
        first += middle - low > (high - middle) * (1.0 + TIE)
    inside = np.arange(count)[:, None] - first[None, :]
    mean: Array = np.where((inside >= 0) & (inside < count - f), ordered, 0.0).sum(axis=0) / (count - f)
    return mean


@rules.register("Phocas")
def phocas() -> Rule:
    """Phocas: per coordinate the mean of the S - f values nearest the trimmed mean, own included.

    If two values are equally near, the smaller counts as nearer.

    >>> import byzmesh as bm
    >>> bm.aggregate("phocas", [0.0], [[1.0], [2.0], [90.0]], f=1)
    array([1.])
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        rows = to_host(inbox.pool.rows())
        out = [
            near_trimmed_mean(rows[index[there]].astype(np.float64), int(bound))
            for index, there, bound in zip(inbox.index, present, f, strict=True)
        ]
        return from_host(np.array(out), inbox.pool.own)

    return coordinate_rule("Phocas", models, feasible=BELOW_HALF_OF_ALL, symmetric=True)

"""Ranks and signs per coordinate: what coordinate-wise rules need, without building an (R, K, D) array.

    rows     (P, D) the pool, or a pair of consecutive arrays (own models, messages)
    index    (R, K) row of each receiver's slot, slot 0 its own
    present  (R, K) which slots take part; their values are finite

For a receiver and a block of coordinates, the present rows pass through a sorting network that is pruned to the wanted
ranks (sorting_networks.py): each comparator is a vectorised minimum and maximum over the block, which stays in the L1
cache. Much used networks are compiled and then work in registers (selection.py, registers.py). Cost O(R D K log^2 K),
no copies. Means are taken in float64 with the weights first, so that huge values do not
overflow.

Above `LARGEST_NETWORK` values and for arrays on another device, a library sort is used (array_api.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from byzmesh.rules.ranks import array_api, kernels
from byzmesh.rules.ranks.selection import Selection, joined, work_lines
from byzmesh.rules.ranks.sorting_networks import sorting
from byzmesh.types import Booleans, Integers

Rows = Any

LARGEST_NETWORK = 2048
"""Above this many values, building a network costs more than it saves over a library sort."""
TIE = 1e-9
"""Relative difference of two distances below which rounding may have made it."""


def rank_mean(
    rows: Rows, index: Integers, present: Booleans, lower: Integers, upper: Integers, *, apart: bool = False
) -> Any:
    """(R, D) per coordinate the mean of the values of ranks lower .. upper - 1; `lower` and `upper` are (R,).

    With `apart` the receiver's own value is not ranked but counts as one more value of the mean.

    >>> rows = np.array([[0.0], [1.0], [5.0], [100.0]])
    >>> index, present = np.arange(4)[None, :], np.ones((1, 4), bool)
    >>> rank_mean(rows, index, present, np.array([1]), np.array([3]))              # of 0, 1, 5, 100
    array([[3.]])
    >>> rank_mean(rows, index, present, np.array([1]), np.array([2]), apart=True)  # own 0 with the middle of 1, 5, 100
    array([[2.5]])
    """
    first, second = _parts(rows)
    ranked = present.copy()
    ranked[:, 0] &= not apart
    if _elsewhere(first, ranked.sum(axis=1)):
        return array_api.rank_mean(first, second, index, ranked, lower, upper, apart=apart)
    return Selection(index, present, lower, upper, apart=apart).mean(first, second)


def near_median_mean(rows: Rows, index: Integers, present: Booleans, keep: Integers) -> Any:
    """(R, D) per coordinate the mean of the `keep` (R,) values nearest the median.

    The median of an even number of values is the middle of the two; on a tie the smaller value counts as nearer.

    >>> rows = np.array([[0.0], [1.0], [2.0], [4.0], [10.0]])
    >>> near_median_mean(rows, np.arange(5)[None, :], np.ones((1, 5), bool), np.array([3]))    # 0, 1, 2 and not 4
    array([[1.]])
    """
    return _near_middle_mean(rows, index, present, (present.sum(axis=1) - 1) // 2, keep, 1.0)


def near_trimmed_mean(rows: Rows, index: Integers, present: Booleans, f: Integers) -> Any:
    """(R, D) per coordinate the mean of the S - f values nearest the mean without the f least and largest; f is (R,).

    If two are equally near, up to rounding, the smaller counts as nearer.

    >>> rows = np.array([[0.0], [1.0], [2.0], [90.0]])
    >>> near_trimmed_mean(rows, np.arange(4)[None, :], np.ones((1, 4), bool), np.array([1]))
    array([[1.]])
    """
    rounding = 4.0 * float(array_namespace(_parts(rows)[0]).finfo(_parts(rows)[0].dtype).eps)
    return _near_middle_mean(rows, index, present, f, present.sum(axis=1) - f, 1.0 + max(TIE, rounding))


def _near_middle_mean(
    rows: Rows, index: Integers, present: Booleans, trimmed: Integers, keep: Integers, tie: float
) -> Any:
    first, second = _parts(rows)
    sizes = present.sum(axis=1)
    if _elsewhere(first, sizes):
        return array_api.near_middle_mean(first, second, index, present, trimmed, keep, tie)
    out = np.empty((len(index), first.shape[1]), first.dtype)
    kernels.near_middle_mean(
        tie,
        *(first, second, index, present),
        *joined([sorting(size) for size in sizes.tolist()]),
        *(sizes, trimmed, keep, work_lines(int(sizes.max(initial=0)), first), out),
    )
    return out


def sign_sum(rows: Rows, index: Integers, present: Booleans, reference: Any) -> Any:
    """(R, D) per coordinate the sum over the present slots of sign(y - reference); `reference` is (R, D).

    >>> rows = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 0.0]])
    >>> sign_sum(rows, np.array([[0, 1, 2]]), np.ones((1, 3), bool), rows[:1])
    array([[ 2., -1.]])
    """
    first, second = _parts(rows)
    if not isinstance(first, np.ndarray):
        return array_api.sign_sum(first, second, index, present, reference)
    out = np.zeros((len(index), first.shape[1]), first.dtype)
    kernels.sign_sum(first, second, index, present, np.ascontiguousarray(reference, first.dtype), out)
    return out


def sign_histogram(rows: Rows, index: Integers, present: Booleans, reference: Any) -> Integers:
    """(R, K, 3) how many coordinates of y - reference are negative, zero and positive; zeros where absent.

    >>> rows = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 0.0]])
    >>> sign_histogram(rows, np.array([[0, 1, 2]]), np.ones((1, 3), bool), rows[:1]).tolist()
    [[[0, 2, 0], [1, 0, 1], [0, 1, 1]]]
    """
    first, second = _parts(rows)
    if not isinstance(first, np.ndarray):
        return array_api.sign_histogram(first, second, index, present, reference)
    out = np.zeros((*index.shape, 3), np.int64)
    kernels.sign_histogram(first, second, index, present, np.ascontiguousarray(reference, first.dtype), out)
    return out


def _parts(rows: Rows) -> tuple[Any, Any]:
    first, second = rows if isinstance(rows, tuple) else (rows, rows[:0])
    if isinstance(first, np.ndarray):
        return np.ascontiguousarray(first), np.ascontiguousarray(second)
    return first, second


def _elsewhere(first: Any, sizes: Integers) -> bool:
    return not isinstance(first, np.ndarray) or int(sizes.max(initial=0)) > LARGEST_NETWORK

"""Medians and trimmed means of each coordinate by weights: a sort of the S values per coordinate.

    median    the value at which the weights below reach one half; the middle of two values if they reach it exactly
    trimmed   the weighted mean of own and the neighbours' values, without `cut` of the weight at each end

Values are read in blocks of coordinates, because a receiver's vectors are rows. O(R D S log S) with insertion sort, for
the short inboxes of networks; nothing is allocated per coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING
from byzmesh.types import Array, Booleans, Floats, Integers

HALF = 0.5


def weighted_median(rows: Array, index: Integers, present: Booleans, weight: Floats) -> Array:
    """(R, D) the weighted median of the present slots' values; `weight` (R, K).

    >>> rows = np.array([[0.0], [1.0], [5.0]])
    >>> weighted_median(rows, np.arange(3)[None], np.ones((1, 3), bool), np.array([[0.2, 0.2, 0.6]]))
    array([[5.]])
    """
    out = np.empty((len(index), rows.shape[1]), rows.dtype)
    _median(np.ascontiguousarray(rows), index, present, weight, out)
    return out


def weighted_trimmed_mean(rows: Array, index: Integers, present: Booleans, weight: Floats, cut: Floats) -> Array:
    """(R, D) the weighted mean of own (slot 0) and what is left of the neighbours; `cut` (R,) is what either end loses.

    >>> rows = np.array([[0.0], [1.0], [5.0], [9.0]])
    >>> weighted_trimmed_mean(rows, np.arange(4)[None], np.ones((1, 4), bool), np.full((1, 4), 0.25), np.array([0.25]))
    array([[2.5]])
    """
    out = np.empty((len(index), rows.shape[1]), rows.dtype)
    _trimmed(np.ascontiguousarray(rows), index, present, weight, cut, out)
    return out


@exact
def _sorted_slots(rows: Any, index: Any, held: Any, count: Any, column: Any, value: Any, place: Any) -> None:
    """Fill `value` and `place` with the values of these slots, ascending, and whose they are; ties by slot."""
    for i in range(count):
        new = np.float64(rows[index[held[i]], column])
        before = i - 1
        while before >= 0 and value[before] > new:
            value[before + 1], place[before + 1] = value[before], place[before]
            before -= 1
        value[before + 1], place[before + 1] = new, held[i]


@exact
def _slots(present: Any, weight: Any, first: Any, held: Any) -> Any:
    count = 0
    for slot in range(first, len(present)):
        if present[slot] and weight[slot] > 0.0:
            held[count] = slot
            count += 1
    return count


@exact
def _median(rows: Any, index: Any, present: Any, weight: Any, out: Any) -> None:
    slots = index.shape[1]
    held, place, value = np.empty(slots, np.int64), np.empty(slots, np.int64), np.empty(slots)
    for n in range(index.shape[0]):
        count = _slots(present[n], weight[n], 0, held)
        total = 0.0
        for i in range(count):
            total += weight[n, held[i]]
        for d in range(out.shape[1]):
            if count == 0:
                out[n, d] = rows[index[n, 0], d]
                continue
            _sorted_slots(rows, index[n], held, count, d, value, place)
            below, i = 0.0, 0
            while i < count - 1 and below + weight[n, place[i]] < HALF * total * (1.0 - ROUNDING):
                below += weight[n, place[i]]
                i += 1
            even = i < count - 1 and below + weight[n, place[i]] <= HALF * total * (1.0 + ROUNDING)
            out[n, d] = 0.5 * value[i] + 0.5 * value[i + 1] if even else value[i]


@exact
def _trimmed(rows: Any, index: Any, present: Any, weight: Any, cut: Any, out: Any) -> None:
    slots = index.shape[1]
    held, place, value = np.empty(slots, np.int64), np.empty(slots, np.int64), np.empty(slots)
    for n in range(index.shape[0]):
        count = _slots(present[n], weight[n], 1, held)
        total, own = 0.0, weight[n, 0]
        for i in range(count):
            total += weight[n, held[i]]
        low, high = cut[n], total - cut[n]
        kept = own + max(0.0, high - low)
        for d in range(out.shape[1]):
            mine = np.float64(rows[index[n, 0], d])
            if high - low <= ROUNDING or kept <= 0.0:
                out[n, d] = mine
                continue
            _sorted_slots(rows, index[n], held, count, d, value, place)
            below, mean = 0.0, (own / kept) * mine
            for i in range(count):
                above = below + weight[n, place[i]]
                part = min(above, high) - max(below, low)
                if part > 0.0:
                    mean += (part / kept) * value[i]
                below = above
            out[n, d] = mean

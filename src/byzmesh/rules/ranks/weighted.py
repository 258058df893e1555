"""Medians and trimmed means of each coordinate by weights: a sort of the S values per coordinate.

    median    the value at which the weights below reach one half; the middle of two values if they reach it exactly
    trimmed   the weighted mean of own and the neighbours' values, without `cut` of the weight at each end

A block of coordinates is sorted at once, one line per slot, by comparing neighbouring lines; every value takes its
weight along, and equal values keep the order of their slots. O(R D S^2) without a branch, for the short inboxes of
networks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING
from byzmesh.types import Array, Booleans, Floats, Integers

HALF = 0.5
_BLOCK = 128
"""Coordinates at a time: the lines of fifteen slots stay in the first cache."""


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
def _read(row: Any, weight: Any, value: Any, share: Any) -> None:
    for lane in range(row.size):
        value[lane], share[lane] = row[lane], weight


@exact
def _exchange(low: Any, high: Any, low_share: Any, high_share: Any) -> None:
    for lane in range(low.size):
        x, y, v, w = low[lane], high[lane], low_share[lane], high_share[lane]
        swap = x > y
        low[lane], high[lane] = (y if swap else x), (x if swap else y)
        low_share[lane], high_share[lane] = (w if swap else v), (v if swap else w)


@exact
def _sort(rows: Any, slots: Any, weight: Any, left: Any, size: Any, value: Any, share: Any) -> None:
    """Fill the first lines of `value` and `share` with these slots' values, ascending, and their weights."""
    for line in range(len(slots)):
        row = rows[slots[line], left : left + size]
        _read(row, weight[line], value[line, :size], share[line, :size])
        for last in range(line, 0, -1):
            _exchange(value[last - 1, :size], value[last, :size], share[last - 1, :size], share[last, :size])


@exact
def _heard(index: Any, present: Any, weight: Any, first: Any, slots: Any, heard: Any) -> Any:
    """Fill `slots` and `heard` with the rows and the weights of the slots that count, from `first` on; how many."""
    count = 0
    for slot in range(first, len(index)):
        if present[slot] and weight[slot] > 0.0:
            slots[count], heard[count] = index[slot], weight[slot]
            count += 1
    return count


@exact
def _take_middle(value: Any, share: Any, reach: Any, half: Any, out: Any) -> None:
    """`out`: the line with which the weight reaches one half. `reach`, zeros before, is the weight below a line."""
    least, most = half * (1.0 - ROUNDING), half * (1.0 + ROUNDING)
    count = len(value)
    for line in range(count):
        above = value[min(line + 1, count - 1)]
        last = line == count - 1
        for lane in range(out.size):
            before, x = reach[lane], value[line, lane]
            after = before + share[line, lane]
            middle = x if last or after > most else 0.5 * x + 0.5 * above[lane]
            here = (line == 0 or before < least) and (last or after >= least)
            out[lane] = middle if here else out[lane]
            reach[lane] = after


@exact
def _median(rows: Any, index: Any, present: Any, weight: Any, out: Any) -> None:
    places = index.shape[1]
    slots, heard, reach = np.empty(places, np.int64), np.empty(places), np.empty(_BLOCK)
    value, share = np.empty((places, _BLOCK)), np.empty((places, _BLOCK))
    for n in range(len(index)):
        count = _heard(index[n], present[n], weight[n], 0, slots, heard)
        if count == 0:
            out[n] = rows[index[n, 0]]
            continue
        total = 0.0
        for i in range(count):
            total += heard[i]
        for left in range(0, out.shape[1], _BLOCK):
            size = min(_BLOCK, out.shape[1] - left)
            _sort(rows, slots[:count], heard, left, size, value, share)
            reach[:] = 0.0
            _take_middle(value[:count], share, reach, HALF * total, out[n, left : left + size])


@exact
def _add_between(value: Any, share: Any, low: Any, high: Any, kept: Any, reach: Any, mean: Any) -> None:
    """Add the part of a line's weight that lies between `low` and `high`; `reach` is the weight below the line."""
    for lane in range(mean.size):
        below = reach[lane]
        above = below + share[lane]
        part = (above if above < high else high) - (below if below > low else low)
        mean[lane] = mean[lane] + (part / kept) * value[lane] if part > 0.0 else mean[lane]
        reach[lane] = above


@exact
def _trimmed(rows: Any, index: Any, present: Any, weight: Any, cut: Any, out: Any) -> None:
    places = index.shape[1]
    slots, heard = np.empty(places, np.int64), np.empty(places)
    value, share = np.empty((places, _BLOCK)), np.empty((places, _BLOCK))
    reach, mean = np.empty(_BLOCK), np.empty(_BLOCK)
    for n in range(len(index)):
        count = _heard(index[n], present[n], weight[n], 1, slots, heard)
        total, own = 0.0, weight[n, 0]
        for i in range(count):
            total += heard[i]
        low, high = cut[n], total - cut[n]
        kept = own + max(0.0, high - low)
        if high - low <= ROUNDING or kept <= 0.0:
            out[n] = rows[index[n, 0]]
            continue
        for left in range(0, out.shape[1], _BLOCK):
            size = min(_BLOCK, out.shape[1] - left)
            _sort(rows, slots[:count], heard, left, size, value, share)
            reach[:] = 0.0
            for lane in range(size):
                mean[lane] = (own / kept) * np.float64(rows[index[n, 0], left + lane])
            for line in range(count):
                _add_between(value[line], share[line], low, high, kept, reach, mean[:size])
            for lane in range(size):
                out[n, left + lane] = mean[lane]

"""Means of ranks of many values: sorted runs of 16 in vector registers, then merged, as far as the ranks need it.

Networks of more values than registers hold are not compiled one by one. Here the lines of a receiver's values, a few
vectors of coordinates long, stay in the L1 cache in blocks of 16, and a program of four operations on these is read:

    sort x         the 16 lines of a block, in registers
    fold x, y      line i of x with line 15 - i of y: separates the smaller from the larger half of two sorted runs
    clean x, y     line i of x with line i of y: the same for a run that rises, then falls (bitonic)
    finish x       sort a bitonic block

The last merge descends only where one of the two cuts is: the values between the cuts, and beyond, stay unsorted. A
block that is not full ends with lines of infinity, which rank last.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact, fast, inner
from byzmesh.rules.gram.small_kernels import aligned
from byzmesh.rules.ranks.kernels import collect, store_mean
from byzmesh.rules.ranks.sorting_networks import Program, merging
from byzmesh.simd import VECTOR, chunk, lanes_of, store
from byzmesh.simd_networks import comparing
from byzmesh.types import Array

_U = np.uint64
ROWS = 16
"""Lines of a block."""
_VECTORS = 4
"""Vectors of a line."""
_SORT, _FOLD, _CLEAN, _FINISH = range(4)
_MISSING = -1
"""A block of nothing but infinities, which is not stored."""


class _Merge:
    """The operations that sort blocks as far as the ranks lower .. upper - 1 need it; a run is a list of blocks."""

    def __init__(self, size: int, lower: int, upper: int) -> None:
        self._cuts = lower, upper
        runs = [[block] for block in range(-(-size // ROWS))]
        self.steps = [(_SORT, block, block) for block in range(len(runs))]
        while len(runs) > 1:
            pairs, final = [runs[place : place + 2] for place in range(0, len(runs), 2)], len(runs) == 2
            runs = [self._merged(pair[0], pair[1], final) if len(pair) == 2 else pair[0] for pair in pairs]
        self.order = runs[0]

    def _merged(self, one: list[int], two: list[int], final: bool) -> list[int]:
        two = two + [_MISSING] * (len(one) - len(two))
        self.steps += [(_FOLD, x, y) for x, y in zip(one, two[::-1]) if y != _MISSING]
        return self._sorted(one, 0, final) + self._sorted(two, ROWS * len(one), final)

    def _sorted(self, run: list[int], first: int, final: bool) -> list[int]:
        """A bitonic run in order, or unchanged if it is the last one and no cut is inside."""
        if final and not any(first < cut < first + ROWS * len(run) for cut in self._cuts):
            return run
        half = len(run) // 2
        if half == 0:
            self.steps += [(_FINISH, block, block) for block in run if block != _MISSING]
            return run
        pairs = [(y, x) if x == _MISSING else (x, y) for x, y in zip(run[:half], run[half:])]
        self.steps += [(_CLEAN, x, y) for x, y in pairs if y != _MISSING]
        low, high = ([pair[side] for pair in pairs] for side in (0, 1))
        return self._sorted(low, first, final) + self._sorted(high, first + ROWS * half, final)


@lru_cache(maxsize=1024)
def merged(size: int, lower: int, upper: int) -> Program:
    """(M, 3) operations and blocks, and the lines that then hold the ranks lower .. upper - 1 of `size` values.

    >>> merged(20, 0, 18)[0].tolist()
    [[0, 0, 0], [0, 1, 1], [1, 0, 1], [3, 1, 1]]
    """
    merge = _Merge(size, lower, upper)
    places = [ROWS * merge.order[rank // ROWS] + rank % ROWS for rank in range(lower, upper)]
    return np.array(merge.steps, np.int64), np.array(places, np.int64)


_sort = comparing(list(merging(ROWS)), _VECTORS)
_fold = comparing([(i, 2 * ROWS - 1 - i) for i in range(ROWS)], _VECTORS)
_clean = comparing([(i, ROWS + i) for i in range(ROWS)], _VECTORS)
_finish = comparing([(i, i + gap) for gap in (8, 4, 2, 1) for i in range(ROWS) if i // gap % 2 == 0], _VECTORS)


@inner
def _copy(rows: Array, start: Any, size: Any, lines: Array, at: Any) -> None:
    """lines[at : at + size] = rows[start : start + size]."""
    lanes = lanes_of(lines, VECTOR)
    if size == _U(_VECTORS) * lanes:
        for vector in range(_U(_VECTORS)):
            store(lines, at + vector * lanes, chunk(rows, start + vector * lanes, VECTOR))
        return
    for column in range(size):
        lines[at + column] = rows[start + column]


@inner
def _operate(steps: Array, start: int, stop: int, lines: Array) -> None:
    """The operations start .. stop of a program on every vector of the lines."""
    lanes = lanes_of(lines, VECTOR)
    block = _U(ROWS * _VECTORS) * lanes
    for step in range(start, stop):
        kind, x, y = steps[step, 0], _U(steps[step, 1]) * block, _U(steps[step, 2]) * block
        for vector in range(_U(_VECTORS)):
            at = vector * lanes
            if kind == _SORT:
                _sort(lines, x + at, y + at)
            elif kind == _FOLD:
                _fold(lines, x + at, y + at)
            elif kind == _CLEAN:
                _clean(lines, x + at, y + at)
            else:
                _finish(lines, x + at, y + at)


@fast
def _mean(lines: Array, width: int, own: int, places: Array, first: int, last: int, total: Array) -> None:
    """total = the mean of line `own`, unless it is negative, and of the lines places[first : last]."""
    weight = 1.0 / (last - first + (own >= 0))
    for lane in range(width):
        total[lane] = weight * lines[own * width + lane] if own >= 0 else 0.0
    whole = first + (last - first) // 4 * 4
    for place in range(first, whole, 4):
        a, b, c, d = places[place], places[place + 1], places[place + 2], places[place + 3]
        for lane in range(width):
            low = weight * lines[a * width + lane] + weight * lines[b * width + lane]
            total[lane] += low + (weight * lines[c * width + lane] + weight * lines[d * width + lane])
    for place in range(whole, last):
        for lane in range(width):
            total[lane] += weight * lines[places[place] * width + lane]


@exact
def run_mean(
    first: Array,
    second: Array,
    index: Array,
    ranked: Array,
    steps: Array,
    step_start: Array,
    step_stop: Array,
    places: Array,
    place_start: Array,
    counts: Array,
    apart: bool,
    out: Array,
) -> None:
    """Mean of the ranks at `places`, with its own value where `apart`, as `kernels.rank_mean` of fewer values."""
    width: Any = np.int64(lanes_of(first, VECTOR)) * _VECTORS
    columns = _U(first.shape[1])
    last = (index.shape[1] + ROWS - 1) // ROWS * ROWS  # the line of its own value, which may not be ranked
    lines, total, held = aligned((last + 1) * width, first), np.empty(width), np.empty(last + 1, np.int64)
    one, two = first.ravel(), second.ravel()
    largest = first.dtype.type(np.finfo(first.dtype).max)
    for left in range(0, first.shape[1], width):
        size = _U(min(width, first.shape[1] - left))
        for receiver in range(index.shape[0]):
            values = collect(index, ranked, receiver, held)
            held[values] = index[receiver, 0]
            for value in range(values + 1):
                row, at = held[value], _U((value if value < values else last) * width)
                if row < first.shape[0]:
                    _copy(one, _U(row) * columns + _U(left), size, lines, at)
                else:
                    _copy(two, _U(row - first.shape[0]) * columns + _U(left), size, lines, at)
            lines[values * width : (values + ROWS - 1) // ROWS * ROWS * width] = np.inf
            _operate(steps, step_start[receiver], step_stop[receiver], lines)
            begin, end = place_start[receiver], place_start[receiver] + counts[receiver]
            _mean(lines, width, last if apart or begin == end else -1, places, begin, end, total)
            store_mean(total[:size], out[receiver, left : left + np.int64(size)], largest)

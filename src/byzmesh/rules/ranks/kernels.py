"""Compiled passes of this package: sorting networks, means of ranks and counts of signs, block by block.

The outer loops run over blocks of coordinates, the inner ones over receivers, so that a block of a small pool is read
from memory once. `held` are the pool rows of a receiver's present slots; `lines` is the work buffer of the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact, fast
from byzmesh.types import Array

_BLOCK = 512


@exact
def _line(first: Array, second: Array, row: int, left: int, size: int) -> Array:
    if row < first.shape[0]:
        return first[row, left : left + size]
    return second[row - first.shape[0], left : left + size]


@exact
def _exchange(a: Array, b: Array, low: Array, high: Array) -> None:
    for lane in range(a.size):
        x, y = a[lane], b[lane]
        low[lane] = x if x < y else y
        high[lane] = x if x > y else y


@exact
def _least(a: Array, b: Array, low: Array) -> None:
    for lane in range(a.size):
        x, y = a[lane], b[lane]
        low[lane] = x if x < y else y


@exact
def _largest(a: Array, b: Array, high: Array) -> None:
    for lane in range(a.size):
        x, y = a[lane], b[lane]
        high[lane] = x if x > y else y


@exact
def _run(
    first: Array, second: Array, held: Array, steps: Array, start: int, stop: int, left: int, size: int, lines: Array
) -> None:
    """One receiver's network on one block; `held` are the rows of its present slots."""
    for step in range(start, stop):
        source_a, source_b, low, high = steps[step, 0], steps[step, 1], steps[step, 2], steps[step, 3]
        a = lines[source_a, :size] if source_a >= 0 else _line(first, second, held[-1 - source_a], left, size)
        b = lines[source_b, :size] if source_b >= 0 else _line(first, second, held[-1 - source_b], left, size)
        if low >= 0 and high >= 0:
            _exchange(a, b, lines[low, :size], lines[high, :size])
        elif low >= 0:
            _least(a, b, lines[low, :size])
        else:
            _largest(a, b, lines[high, :size])


@exact
def _wire(first: Array, second: Array, held: Array, place: int, left: int, size: int, lines: Array) -> Array:
    """The values at a place of a program: a line of the work buffer, or an untouched input."""
    if place >= 0:
        return lines[place, :size]
    return _line(first, second, held[-1 - place], left, size)


@exact
def collect(index: Array, present: Array, receiver: int, held: Array) -> int:
    """held[:count] = the rows of a receiver's present slots; their count."""
    count = 0
    for slot in range(index.shape[1]):
        if present[receiver, slot]:
            held[count] = index[receiver, slot]
            count += 1
    return count


@fast
def _add(total: Array, weight: float, a: Array) -> None:
    for lane in range(a.size):
        total[lane] += weight * a[lane]


@fast
def _add_three(total: Array, weight: float, more: float, most: float, a: Array, b: Array, c: Array) -> None:
    for lane in range(a.size):
        total[lane] += weight * a[lane] + (more * b[lane] + most * c[lane])


@exact
def store_mean(total: Array, result: Array, largest: Any) -> None:
    """The mean in the result's precision; rounding near the largest number must not make it infinite."""
    kind = result.dtype.type
    for lane in range(result.size):
        value = kind(total[lane])
        value = value if value < largest else largest
        result[lane] = value if value > -largest else -largest


@exact
def rank_mean(
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
    lines: Array,
    out: Array,
) -> None:
    """Mean of the ranks at `places`, with its own value where `apart`."""
    width = lines.shape[1]
    largest = first.dtype.type(np.finfo(first.dtype).max)
    held = np.empty(index.shape[1], np.int64)
    total = np.empty(width)
    for left in range(0, first.shape[1], width):
        size = min(width, first.shape[1] - left)
        for receiver in range(index.shape[0]):
            collect(index, ranked, receiver, held)
            _run(first, second, held, steps, step_start[receiver], step_stop[receiver], left, size, lines)
            result = out[receiver, left : left + size]
            count, place = counts[receiver], place_start[receiver]
            own = _line(first, second, index[receiver, 0], left, size)
            if count == 0:
                result[:] = own
                continue
            last = _wire(first, second, held, places[place + count - 1], left, size, lines)
            if not apart and count == 1:
                result[:] = last
                continue
            weight = 1.0 / (count + int(apart))
            for lane in range(size):
                total[lane] = weight * own[lane] if apart else 0.0
            for rank in range(0, count, 3):
                # past the end the last rank is read again, with weight 0
                more, most = weight if rank + 1 < count else 0.0, weight if rank + 2 < count else 0.0
                a = _wire(first, second, held, places[place + rank], left, size, lines)
                b = _wire(first, second, held, places[place + min(rank + 1, count - 1)], left, size, lines)
                c = _wire(first, second, held, places[place + min(rank + 2, count - 1)], left, size, lines)
                _add_three(total, weight, more, most, a, b, c)
            store_mean(total, result, largest)


@exact
def _middle(a: Array, b: Array, middle: Array) -> None:
    half = a.dtype.type(0.5)
    for lane in range(a.size):
        middle[lane] = half * a[lane] + half * b[lane]


@exact
def _nearer(middle: Array, a: Array, b: Array, tie: float, chosen: Array) -> None:
    """Of a <= b the one nearer the middle, a on a tie: where the one distance is at most `tie` times the other."""
    factor = a.dtype.type(tie)
    for lane in range(a.size):
        x, y = a[lane], b[lane]
        chosen[lane] = x if middle[lane] - x <= factor * (y - middle[lane]) else y


@exact
def near_middle_mean(
    tie: float,
    first: Array,
    second: Array,
    index: Array,
    present: Array,
    steps: Array,
    step_start: Array,
    step_stop: Array,
    places: Array,
    place_start: Array,
    sizes: Array,
    trimmed: Array,
    keep: Array,
    lines: Array,
    out: Array,
) -> None:
    """Mean of the `keep` values nearest the mean without the `trimmed` smallest and largest: the median if at most two
    are left.

    They are a window of the sorted values, and a window of `keep` ranks contains exactly one of l, l + keep, l + 2
    keep, ... for every l < keep: the one nearest the middle. So there is no need to search for the window, nor to
    subtract values from a sum (which would lose everything next to a huge value).
    """
    width = lines.shape[1]
    largest = first.dtype.type(np.finfo(first.dtype).max)
    held = np.empty(index.shape[1], np.int64)
    total = np.empty(width)
    middle = np.empty(width, first.dtype)
    chosen = np.empty((2, width), first.dtype)
    for left in range(0, first.shape[1], width):
        size = min(width, first.shape[1] - left)
        for receiver in range(index.shape[0]):
            collect(index, present, receiver, held)
            _run(first, second, held, steps, step_start[receiver], step_stop[receiver], left, size, lines)
            count, place = sizes[receiver], place_start[receiver]
            inner = count - 2 * trimmed[receiver]
            if inner <= 2:
                low = _wire(first, second, held, places[place + (count - 1) // 2], left, size, lines)
                high = _wire(first, second, held, places[place + count // 2], left, size, lines)
                _middle(low, high, middle[:size])
            else:
                total[:size] = 0.0
                for rank in range(trimmed[receiver], count - trimmed[receiver]):
                    _add(total, 1.0 / inner, _wire(first, second, held, places[place + rank], left, size, lines))
                store_mean(total, middle[:size], largest)
            total[:size] = 0.0
            for residue in range(keep[receiver]):
                current = _wire(first, second, held, places[place + residue], left, size, lines)
                turn = 0
                for rank in range(residue + keep[receiver], count, keep[receiver]):
                    rival = _wire(first, second, held, places[place + rank], left, size, lines)
                    _nearer(middle, current, rival, tie, chosen[turn, :size])
                    current = chosen[turn, :size]
                    turn = 1 - turn
                _add(total, 1.0 / keep[receiver], current)
            store_mean(total, out[receiver, left : left + size], largest)


@exact
def _add_signs(a: Array, reference: Array, total: Array) -> None:
    kind = total.dtype.type
    for lane in range(a.size):
        x, y = a[lane], reference[lane]
        total[lane] += kind(x > y) - kind(x < y)


@exact
def sign_sum(first: Array, second: Array, index: Array, present: Array, reference: Array, out: Array) -> None:
    """Add the signs of the present rows minus the reference to `out`."""
    for left in range(0, first.shape[1], _BLOCK):
        size = min(_BLOCK, first.shape[1] - left)
        for receiver in range(index.shape[0]):
            for slot in range(index.shape[1]):
                if present[receiver, slot]:
                    a = _line(first, second, index[receiver, slot], left, size)
                    _add_signs(a, reference[receiver, left : left + size], out[receiver, left : left + size])


@exact
def _count_signs(a: Array, reference: Array) -> tuple[np.int32, np.int32]:
    negative, positive = np.int32(0), np.int32(0)
    for lane in range(a.size):
        negative += np.int32(a[lane] < reference[lane])
        positive += np.int32(a[lane] > reference[lane])
    return negative, positive


@exact
def sign_histogram(first: Array, second: Array, index: Array, present: Array, reference: Array, out: Array) -> None:
    """Add the counts of negative, zero and positive differences to `out`."""
    for left in range(0, first.shape[1], _BLOCK):
        size = min(_BLOCK, first.shape[1] - left)
        for receiver in range(index.shape[0]):
            for slot in range(index.shape[1]):
                if present[receiver, slot]:
                    a = _line(first, second, index[receiver, slot], left, size)
                    negative, positive = _count_signs(a, reference[receiver, left : left + size])
                    out[receiver, slot, 0] += negative
                    out[receiver, slot, 1] += size - negative - positive
                    out[receiver, slot, 2] += positive

"""Means of ranks by a sorting network in vector registers: one compiled function for each network.

`kernels.rank_mean` reads a network from an array, and every comparator loads and stores its lines. Here a network is
part of the code: a few coordinates of all values are loaded, pass every comparator in registers and leave as their
mean. That is several times as fast and gives the same bits, but each network must be compiled, so only those that are
much used are (selection.py). The compiled code is kept on disk like every kernel's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.ranks.sorting_networks import selecting
from byzmesh.simd import VECTOR
from byzmesh.simd_networks import select
from byzmesh.types import Array

LARGEST = 32
"""Networks of more values are left to the interpreter: few of their values would stay in registers."""

_U = np.uint64
_COLUMNS = 256  # so that a block of a small pool stays in the L1 cache
_RECEIVERS = 32


def written(size: int, lower: int, upper: int, apart: bool) -> str:
    """A network as text, which Numba takes as a constant: values, own value apart or not, places, steps.

    >>> written(3, 1, 2, False)
    '3|0|0|-1 -2 0 1 0 -3 -1 2 2 1 0 -1'
    """
    steps, places = (" ".join(map(str, part.ravel().tolist())) for part in selecting(size, lower, upper))
    return f"{size}|{int(apart)}|{places}|{steps}"


@cache
def kernel(network: str) -> Any:
    """run(first, second, slots (G, K + 1), receivers (G,), out): out[receiver] of each group of slots, own value last.

    The rows have at least a vector of coordinates.
    """

    @exact
    def run(first: Array, second: Array, slots: Array, receivers: Array, out: Array) -> None:
        columns, itemsize = first.shape[1], first.itemsize
        lanes, slot_count = VECTOR // itemsize, slots.shape[1]
        address = np.empty(slots.size, np.uint64)
        for group in range(slots.shape[0]):
            for slot in range(slot_count):
                row = slots[group, slot]
                near = row < first.shape[0]
                base = first.ctypes.data if near else second.ctypes.data
                row = row if near else row - first.shape[0]
                address[group * slot_count + slot] = _U(base) + _U(row * columns * itemsize)
        target = _U(out.ctypes.data)
        for begin in range(0, slots.shape[0], _RECEIVERS):
            for left in range(0, columns, _COLUMNS):
                for group in range(begin, min(begin + _RECEIVERS, slots.shape[0])):
                    line = target + _U(receivers[group] * columns * itemsize)
                    for start in range(left, min(left + _COLUMNS, columns), lanes):
                        at = _U(min(start, columns - lanes))  # the last vector may overlap the one before
                        select(first, address, _U(group * slot_count), at, line + at * _U(itemsize), network)

    return run

"""Means of ranks for inboxes that are filled in one way: what does not depend on the vectors is worked out once.

A network is read from an array at first (kernels.py). One that has compared `WORTH` pairs of numbers is compiled
(registers.py): many times as fast, the same bits. Which of the two computes a round depends on nothing but how much has
been computed before, and never shows in a result.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np

from byzmesh.rules.ranks import kernels, registers
from byzmesh.rules.ranks.runs import merged, run_mean
from byzmesh.rules.ranks.sorting_networks import Program, selecting
from byzmesh.simd import VECTOR
from byzmesh.types import Array, Booleans, Integers

WORTH = 5e8
"""Compared pairs of numbers, about 0.1 seconds, after which a network is compiled: a second, once on a machine."""

_BLOCK_BYTES = 2048
_compared: Counter[tuple[int, int, int, bool, str]] = Counter()


class Selection:
    """Per coordinate and receiver, the mean of the values of some ranks; see `rank_mean`.

    >>> every = Selection(np.array([[0, 1, 2]]), np.ones((1, 3), bool), np.array([1]), np.array([2]), apart=False)
    >>> rows = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 9.0]])
    >>> every.mean(rows, rows[:0])
    array([[2., 5.]])
    """

    def __init__(self, index: Integers, present: Booleans, lower: Integers, upper: Integers, *, apart: bool) -> None:
        ranked = present.copy()
        ranked[:, 0] &= not apart
        sizes = ranked.sum(axis=1)
        self._apart, self._index, self._ranked = apart, index, ranked
        self._counts, self._largest = upper - lower, int(sizes.max(initial=0))
        self._keys = list(zip(sizes.tolist(), lower.tolist(), upper.tolist()))
        self._many = self._largest > registers.LARGEST
        self._joined = joined([(merged if self._many else selecting)(*key) for key in self._keys])
        self._uses = Counter(self._keys)

    @cached_property
    def _networks(self) -> list[tuple[str, Integers, Integers]]:
        """Every network as text, its receivers (G,), and their slots (G, size + 1), own one last."""
        networks = []
        for key in self._uses:
            receivers = np.flatnonzero([key == other for other in self._keys])
            index, ranked = self._index[receivers], self._ranked[receivers]
            slots = np.concatenate([index[ranked].reshape(len(receivers), key[0]), index[:, :1]], axis=1)
            networks.append((registers.written(*key, self._apart), receivers, slots))
        return networks

    def mean(self, first: Array, second: Array, out: Array | None = None) -> Array:
        """(R, D) the means over the rows of two contiguous arrays, one after the other; written to `out` if given."""
        out = np.empty((len(self._index), first.shape[1]), first.dtype) if out is None else out
        slots = (first, second, self._index, self._ranked, *self._joined, self._counts, self._apart)
        if self._many:
            run_mean(*slots, out)
            return out
        if first.shape[1] * first.itemsize >= VECTOR and self._worth(first):
            for network, receivers, places in self._networks:
                registers.kernel(network)(first, second, places, receivers, out)
            return out
        kernels.rank_mean(*slots, work_lines(self._largest, first), out)
        return out

    def _worth(self, first: Array) -> bool:
        """Whether the networks have compared enough, on average, to be compiled."""
        kinds = {key: (*key, self._apart, first.dtype.char) for key in self._uses}
        if sum(_compared[kind] for kind in kinds.values()) > WORTH * len(kinds):
            return True
        for key, receivers in self._uses.items():
            _compared[kinds[key]] += len(selecting(*key)[0]) * receivers * first.shape[1]
        return False


def joined(programs: list[Program]) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Distinct programs end to end: steps, each receiver's start and stop in them, places, its start in them."""
    spans: dict[int, tuple[int, int, int]] = {}
    steps, places = [], []
    step_count = place_count = 0
    for program in programs:
        if id(program) not in spans:
            spans[id(program)] = (step_count, step_count + len(program[0]), place_count)
            step_count, place_count = step_count + len(program[0]), place_count + len(program[1])
            steps.append(program[0])
            places.append(program[1])
    # contiguous: otherwise kernels are compiled twice, for one receiver and for several
    first, last, place = np.array([spans[id(program)] for program in programs], np.int64).reshape(-1, 3).T.copy()
    return np.concatenate(steps), first, last, np.concatenate(places), place


def work_lines(largest: int, first: Array) -> Array:
    """The work buffer: two lines more than the largest number of values, as long as fits into the L1 cache."""
    count = largest + 2
    width = max(_BLOCK_BYTES if count <= 24 else _BLOCK_BYTES // 4, 64 * first.itemsize) // first.itemsize
    lines: Array = np.empty((count, width), first.dtype)
    return lines

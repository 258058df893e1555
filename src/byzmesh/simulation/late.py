"""Messages that are late: what workers sent in earlier rounds, and the slots in which it arrives now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Floats, Integers

_NAME = "process/past"


class Past:
    """What was sent in the last rounds, for as long as a message may be late.

    A ring of that many rounds and this one, an array (oldest + 1, N, D): old messages are rows of it, by their numbers.
    `begin` names the place of a round, into which its half steps are written; after `remember` they are the past.

    >>> past = Past(oldest=2)
    >>> for k in range(4):
    ...     past.begin(k, np.zeros((3, 1)))[:] = float(k)
    ...     past.remember(past.place, None)
    >>> past.begin(4, np.zeros((3, 1))).shape, past.turn, past.flat.ravel()
    ((3, 1), 1, array([3., 3., 3., 1., 1., 1., 2., 2., 2.]))
    """

    def __init__(self, oldest: int) -> None:
        self.oldest = oldest
        self.named = False
        """Whether the rule reads rows by their numbers: then a large network's old messages are never copied."""
        self.forget()

    def forget(self) -> None:
        """Go back to round 0."""
        self.count, self.turn = 0, 0
        """How many rounds are remembered, at most `oldest`, and where in the ring this one is."""
        self.ring: Any = None
        self.flat: Any = None
        """(S N, D) the ring; the rows of rounds that are not remembered mean nothing."""
        self.place: Any = None
        """(N, D) of the ring: what is sent in this round."""
        self.peak: Floats | None = None
        """(S N,) `peaks` of the ring's rows; None: nobody knows them."""
        self._taken: Any = None

    def begin(self, round: int, like: Any) -> Any:
        """(N, D) where the half steps of a round belong; what was sent in it more than `oldest` rounds ago is lost."""
        if self.ring is None:
            shape = (self.oldest + 1, *like.shape)
            self.ring = np.zeros(shape, like.dtype) if isinstance(like, np.ndarray) else like.new_zeros(shape)
            self.flat, self.peak = self.ring.reshape(-1, shape[2]), np.zeros(shape[0] * shape[1])
        self.turn = round % (self.oldest + 1)
        self.place = self.ring[self.turn]
        return self.place

    def remember(self, sent: Any, peak: Floats | None) -> None:
        """End a round in which these (N, D) were sent; they are copied unless they are what `begin` returned.

        peak  (N,) their `peaks`, None if nobody knows them
        """
        if sent is not self.place:
            self.place[...] = sent
        if peak is None:
            self.peak = None
        elif self.peak is not None:
            self.peak[self.turn * len(peak) : (self.turn + 1) * len(peak)] = peak
        self.count = min(self.count + 1, self.oldest)

    def went_on(self, round: int, count: int) -> None:
        """End so many rounds, up to this one, of which everything was written to its place."""
        if self.oldest:
            self.turn = round % (self.oldest + 1)
            self.place, self.count = self.ring[self.turn], min(self.count + count, self.oldest)

    def rows(self, numbers: Integers, behind: Any = None) -> Any:
        """(Q, D) these rows of the ring after those of `behind`; the next call overwrites them."""
        ring = to_host(self.flat)
        first = 0 if behind is None else len(behind)
        total = first + len(numbers)
        if self._taken is None or len(self._taken) < total:
            self._taken = np.empty((total + total // 2, ring.shape[1]), ring.dtype)
        taken = self._taken[:total]
        if behind is not None:
            taken[:first] = to_host(behind)
        ring.take(numbers, axis=0, out=taken[first:], mode="clip")
        return from_host(taken, self.ring)

    def arrays(self, round: int) -> dict[str, Any]:
        """For a checkpoint before a round: what was sent, the latest first."""
        if not self.count:
            return {}
        return {_NAME: to_host(self.ring)[(round - 1 - np.arange(self.count)) % (self.oldest + 1)]}

    def resume(self, arrays: Mapping[str, Any], round: int, like: Any) -> None:
        """Continue from what `arrays` returned before a round."""
        self.forget()
        for age, sent in reversed(list(enumerate(arrays.get(_NAME, ()), 1))):
            self.begin(round - age, like)
            self.remember(from_host(sent, like), peaks(sent))

    def like(self, other: Past, round: int) -> None:
        """Remember what another one does, before a round."""
        self.resume(other.arrays(round), round, None if other.ring is None else other.ring[0])


def late_slots(
    start: Integers,
    age: Integers,
    receiver: Integers,
    lying: Any,
    honest_row: Integers,
    oldest: int,
    turn: int,
    before: int,
    index: Integers,
) -> Integers:
    """(Q,) rows of the ring of all older messages that arrive, by age; their slots in `index` (R, K) are set.

    start, age  links of the round and the age (E,) of the message on each, at most `oldest`
    turn        where in the ring the round is
    before      rows of the pool in front of the older messages
    """
    found, spot = np.empty(len(age), np.int64), np.empty((oldest, len(receiver)), np.int64)
    return found[: _late(start, age, receiver, lying, honest_row, turn, before, spot, found, index)]


@exact
def _late(
    start: Any,
    age: Any,
    receivers: Any,
    lying: Any,
    honest_row: Any,
    turn: Any,
    before: Any,
    spot: Any,
    found: Any,
    index: Any,
) -> Any:
    """`spot` (oldest, N) becomes the place of each message among those found."""
    oldest, workers = spot.shape
    count = 0
    spot[:] = -1
    for visit in range(2):
        for r in range(len(receivers)):
            first = start[receivers[r]]
            for slot in range(1, start[receivers[r] + 1] - first + 1):
                old = age[first + slot - 1]
                if old > 0 and not lying[r, slot]:
                    if visit == 0:
                        spot[old - 1, honest_row[r, slot]] = 0
                    else:
                        index[r, slot] = before + spot[old - 1, honest_row[r, slot]]
        for old in range(oldest if visit == 0 else 0):
            for row in range(workers):
                if spot[old, row] == 0:
                    spot[old, row] = count
                    found[count] = (turn + oldest - old) % (oldest + 1) * workers + row
                    count += 1
    return count

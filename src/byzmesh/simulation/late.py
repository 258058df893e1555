"""Messages that are late: what workers sent in earlier rounds, and the slots in which it arrives now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Integers

_NAME = "process/past"


class Past:
    """What was sent in the last rounds, the latest first, for as long as a message may be late.

    >>> past = Past(oldest=2)
    >>> for k in range(4):
    ...     past.remember(np.full((3, 1), float(k)))
    >>> past.rows(np.array([1, 2]), np.array([0, 2]), np.zeros((3, 1)))
    array([[3.],
           [2.]])
    """

    def __init__(self, oldest: int) -> None:
        self.oldest = oldest
        self.sent: list[Any] = []

    def remember(self, sent: Any) -> None:
        """Keep what was sent in this round (N, D), an array that nobody writes to any more."""
        self.sent = [sent, *self.sent[: self.oldest - 1]]

    def rows(self, age: Integers, row: Integers, like: Any) -> Any:
        """(Q, D) what these workers sent so many rounds ago, 1 or more; ages ascending."""
        edges = np.searchsorted(age, np.arange(1, len(self.sent) + 2))
        parts = [to_host(sent)[row[low:high]] for sent, low, high in zip(self.sent, edges, edges[1:]) if high > low]
        return from_host(parts[0] if len(parts) == 1 else np.concatenate(parts), like)

    def arrays(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {_NAME: np.stack([to_host(sent) for sent in self.sent])} if self.sent else {}

    def resume(self, arrays: Mapping[str, Any], like: Any) -> None:
        """Continue from what `arrays` returned."""
        self.sent = [from_host(sent, like) for sent in arrays.get(_NAME, ())]


def late_slots(
    start: Integers,
    age: Integers,
    receiver: Integers,
    lying: Any,
    honest_row: Integers,
    oldest: int,
    before: int,
    index: Integers,
) -> tuple[Integers, Integers]:
    """Age and row of every older message that arrives, in this order; their slots in `index` (R, K) are set.

    start, age  links of the round and the age (E,) of the message on each, at most `oldest`
    before      rows of the pool in front of the older messages
    """
    found = np.empty((2, len(age)), np.int64)
    spot = np.full((oldest, len(receiver)), -1, np.int64)
    count = _late(start, age, receiver, lying, honest_row, before, spot, found, index)
    return found[0, :count], found[1, :count]


@exact
def _late(
    start: Any,
    age: Any,
    receivers: Any,
    lying: Any,
    honest_row: Any,
    before: Any,
    spot: Any,
    found: Any,
    index: Any,
) -> Any:
    """`spot` (oldest, N) becomes the place of each message among those found."""
    count = 0
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
        for old in range(spot.shape[0] if visit == 0 else 0):
            for row in range(spot.shape[1]):
                if spot[old, row] == 0:
                    spot[old, row] = count
                    found[0, count], found[1, count] = old + 1, row
                    count += 1
    return count

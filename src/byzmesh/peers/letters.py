"""The messages that a peer keeps for its rounds, and which one of a neighbour counts in a round.

Of a neighbour that sent nothing of this round, the newest message that came too late counts; if there is none, the
oldest that came early. So whoever sent something new takes part, however many rounds it is ahead or behind, and nothing
counts twice.

Kept per neighbour: its messages of this round and the next, the two newest beyond (which a peer needs after moving up),
and the newest late one.

On a network that changes, a message of a round in which its sender is not due is dropped, messages up to `APART` rounds
ahead are kept, and one that comes early waits for its round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.types import Array

APART = 8
"""Rounds that peers of a changing network may be apart."""
ENDLESS = 1 << 64
"""Later than any round that a message can name."""
_BEYOND = 2
Letter = tuple[Array, float]
"""The vector of a message, and its largest absolute value."""
Due = Callable[[int], Sequence[int]]
"""Round -> the neighbours whose messages belong to it."""


class Letters:
    """The messages of the neighbours that may still count.

    >>> letters = Letters([3, 5])
    >>> letters.place(3, 0, (np.zeros(1), 0.0)), letters.place(5, 1, (np.ones(1), 1.0))
    ('current', 'early')
    >>> letters.take(3), letters.take(5), letters.take(5)
    (((array([0.]), 0.0), True), ((array([1.]), 1.0), True), (None, False))
    """

    def __init__(self, neighbours: Collection[int], due: Due | None = None) -> None:
        self.round = 0
        self._due_in = due
        self.held: dict[int, dict[int, Letter]] = {neighbour: {} for neighbour in neighbours}
        """Per neighbour: round -> message, from this round on."""
        self.used = dict.fromkeys(neighbours, -1)
        """The round of the message of each neighbour that counted last."""
        self._late: dict[int, tuple[int, Letter]] = {}

    def keep(self, neighbours: Collection[int], strange: Collection[int]) -> None:
        """Go on with other neighbours; nothing is kept of those who are gone, nor of the `strange` ones."""
        known = self.used.keys() & set(neighbours) - set(strange)
        self.held = {j: self.held[j] if j in known else {} for j in neighbours}
        self.used = {j: self.used[j] if j in known else -1 for j in neighbours}
        self._late = {j: late for j, late in self._late.items() if j in known}

    def begin(self, round: int) -> None:
        """Go on to a round; messages of earlier ones are late."""
        self.round = round
        for neighbour, held in self.held.items():
            if held and min(held) < round:
                for old in sorted(number for number in held if number < round):
                    self._keep_late(neighbour, old, held.pop(old))

    def place(self, sender: int, round: int, letter: Letter) -> str:
        """Keep a message ("current", "early" or "late") or drop it ("repeated" or "not due")."""
        held = self.held[sender]
        # who is due in a round far away is not asked: to find that out takes long, and its message would not count
        if self._due_in is not None and (abs(round - self.round) > APART or sender not in self._due_in(round)):
            return "not due"
        if round < self.round:
            return "late" if self._keep_late(sender, round, letter) else "repeated"
        if round in held or round <= self.used[sender]:
            return "repeated"
        held[round] = letter
        if len(held) > _BEYOND and self._due_in is None:
            for beyond in sorted(number for number in held if number > self.round + 1)[:-_BEYOND]:
                del held[beyond]
        return "current" if round == self.round else "early"

    def _keep_late(self, sender: int, round: int, letter: Letter) -> bool:
        newest = self._late[sender][0] if sender in self._late else -1
        if round <= max(newest, self.used[sender]):
            return False
        self._late[sender] = round, letter
        return True

    def forget_beyond(self, last: int, *, newest: bool) -> None:
        """Forget messages of rounds beyond the last, which will not be reached; all, or but the `newest` of each."""
        for held in self.held.values():
            if held and max(held) > last:
                for round in sorted(number for number in held if number > last)[: -1 if newest else None]:
                    del held[round]

    def take(self, sender: int) -> tuple[Letter | None, bool]:
        """What counts of a neighbour in this round, None if nothing does; and whether it came in time."""
        held = self.held[sender]
        in_time = held.pop(self.round, None)
        late = self._late.pop(sender, None) if self._late else None
        if in_time is not None:
            self.used[sender] = self.round
            return in_time, True
        if late is not None:
            self.used[sender], letter = late
            return letter, False
        if held and self._due_in is None:
            # it is ahead, and this peer may never reach its round: what it said counts now, the oldest first
            oldest = self.used[sender] = min(held)
            return held.pop(oldest), True
        return None, False

    @property
    def newest(self) -> dict[int, Array]:
        """The newest vector of each neighbour that sent one lately."""
        late = {j: letter[0] for j, (_, letter) in self._late.items()}
        return late | {j: held[max(held)][0] for j, held in self.held.items() if held}

    def scale_down(self, largest: float) -> None:
        """Scale messages with larger values than this down to it."""
        for held in self.held.values():
            held |= {round: _scaled(letter, largest) for round, letter in held.items()}
        self._late = {j: (round, _scaled(letter, largest)) for j, (round, letter) in self._late.items()}


def _scaled(letter: Letter, largest: float) -> Letter:
    vector, top = letter
    return (vector * vector.dtype.type(largest / top), 2.0 * largest) if largest < top < np.inf else letter


def stacked(
    vectors: Sequence[Array | None], dimension: int, dtype: Any = np.float64
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Messages (d, D), zero if missing, and which there are (d,)."""
    came = np.array([vector is not None for vector in vectors], bool)
    silent = np.zeros(dimension, dtype)
    rows = [silent if vector is None else vector for vector in vectors]
    messages = np.concatenate(rows, dtype=dtype) if rows else silent[:0]
    return messages.reshape(len(vectors), dimension), came

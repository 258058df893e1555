"""Rounds without a shared clock: which messages count, how long to wait, and when to move up. Pure logic, no I/O.

With d neighbours of which at most f lie, a round ends as soon as

    all expected neighbours have sent their message of the round, or
    a grace period has passed since d - f messages arrived, or
    the timeout has passed.

A neighbour that missed three rounds in a row is not expected until one of its messages counts again, unless more than f
of the neighbours that send anything are missing: then this peer is ahead, and waits. So f liars that are silent or send
garbage cost nothing, f late ones a grace period, a dead neighbour a few timeouts, and no round lasts forever.

The grace period follows the usual spread: twice the ninth decile, over the last rounds, of the time from the first to
the (d - f)-th arrival. That time ends with an honest message at the latest, so liars cannot stretch it, and a decile
ignores the few rounds in which something broke.

A peer that fell behind moves up to the (f + 1)-th largest round that it has seen from its neighbours: at least one
honest neighbour has reached it, so f liars can neither drag the peer ahead nor hold it back. Honest neighbours are
often one round apart, so a difference of one moves nobody.

Kept per neighbour: its messages of this round and the next, and the two newest beyond (which a peer needs after moving
up: neighbours are one round apart). Late messages, and all but the first of a round, are dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.types import Array

SILENT_AFTER = 3
"""After this many missed rounds a neighbour is no longer expected."""
_BEYOND = 2
_MEMORY = 64  # rounds


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    timeout: float = 5.0
    """For the messages of a round."""
    start: float = 30.0
    """For the first round after a start: neighbours may not be up yet."""
    grace: float = 0.01
    """Shortest grace period after d - f messages."""
    start_grace: float = 3.0
    """The same in the first rounds, while connections are being opened."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < 1e6:
                raise ConfigError(f"timeouts: {name} must be a positive number of seconds, got {value!r}")


class Rounds:
    """The messages of this round and of later ones, and the decision when a round ends.

    >>> rounds = Rounds([3, 5, 8], f=1, patience=Patience(timeout=5.0, start=5.0, start_grace=0.5))
    >>> rounds.begin(0, now=0.0)
    >>> rounds.offer(3, 0, np.zeros(2), now=0.1), rounds.offer(5, 0, np.ones(2), now=0.2), rounds.ready(0.3)
    ('current', 'current', False)
    >>> rounds.ready(0.8), rounds.gather(2)[1]
    (True, array([ True,  True, False]))
    """

    def __init__(self, neighbours: Sequence[int], f: int, patience: Patience) -> None:
        self.neighbours = sorted(neighbours)
        self.f = f
        self.patience = patience
        self.round = 0
        self.spreads: deque[float] = deque(maxlen=_MEMORY)
        """Seconds from the first to the (d - f)-th arrival, of the last rounds."""
        self.seen = dict.fromkeys(self.neighbours, -1)
        """Largest round of a message of each neighbour."""
        self.verdicts: dict[int, Counter[str]] = {neighbour: Counter() for neighbour in self.neighbours}
        self._held: dict[int, dict[int, Array]] = {neighbour: {} for neighbour in self.neighbours}
        self._heard = dict.fromkeys(self.neighbours, 0)
        self._missed = dict.fromkeys(self.neighbours, 0)
        self._begun = 0
        self._moved = False
        self._started = 0.0
        self._arrivals: list[float] = []

    def begin(self, round: int, now: float) -> None:
        """Start waiting for the messages of `round`; those that came early count at once."""
        self._moved = self._moved or (self._begun > 0 and round > self.round + 1)
        self.round = round
        self._begun += 1
        self._started = now
        for held in self._held.values():
            for old in [number for number in held if number < round]:
                del held[old]
        self._arrivals = [now for held in self._held.values() if round in held]

    def offer(self, sender: int, round: int, vector: Array, now: float) -> str:
        """Accept a message ("current" or "early") or drop it ("late" or "repeated")."""
        self._heard[sender] = self._begun
        self.seen[sender] = max(self.seen[sender], round)
        verdict = self._place(sender, round, vector)
        self.verdicts[sender][verdict] += 1
        if verdict == "current":
            self._arrivals.append(now)
        return verdict

    def _place(self, sender: int, round: int, vector: Array) -> str:
        held = self._held[sender]
        if round < self.round:
            return "late"
        if round in held:
            return "repeated"
        held[round] = vector
        for beyond in sorted(number for number in held if number > self.round + 1)[:-_BEYOND]:
            del held[beyond]
        return "current" if round == self.round else "early"

    @property
    def expected(self) -> list[int]:
        """The neighbours whose messages usually arrive in time."""
        return [neighbour for neighbour in self.neighbours if self._missed[neighbour] < SILENT_AFTER]

    @property
    def _speaking(self) -> int:
        """How many neighbours recently sent anything, even if late."""
        return sum(self._begun - heard < SILENT_AFTER for heard in self._heard.values())

    @property
    def spread(self) -> float:
        """The usual spread of arrivals, in seconds."""
        return sorted(self.spreads)[len(self.spreads) * 9 // 10] if self.spreads else 0.0

    @property
    def grace(self) -> float:
        """Seconds to wait for the rest after d - f messages."""
        least = self.patience.start_grace if self._starting else self.patience.grace
        return min(max(least, 2.0 * self.spread), self._timeout)

    @property
    def _starting(self) -> bool:
        """Whether connections may still be opening: in the first rounds, unless the others are further ahead."""
        return self._begun <= SILENT_AFTER and not self._moved

    @property
    def _timeout(self) -> float:
        return self.patience.start if self._begun <= 1 else self.patience.timeout

    @property
    def _quorum(self) -> int:
        return max(1, len(self.neighbours) - self.f)

    def ready(self, now: float) -> bool:
        """Whether to end the round with what arrived."""
        if not self.neighbours or now >= self.deadline:
            return True
        arrived = len(self._arrivals)
        if arrived == 0 or self._speaking - arrived > self.f:
            return arrived == len(self.neighbours)
        return all(self.round in self._held[neighbour] for neighbour in self.expected)

    @property
    def deadline(self) -> float:
        """When the round ends if no further message arrives."""
        limit = self._started + self._timeout
        if len(self._arrivals) < self._quorum:
            return limit
        return min(limit, self._arrivals[self._quorum - 1] + self.grace)

    @property
    def ahead(self) -> int | None:
        """The round to move up to, if this peer fell behind."""
        if len(self.neighbours) <= self.f:
            return None
        trusted = self.trusted
        return trusted if trusted > self.round + 1 else None

    @property
    def trusted(self) -> int:
        """The (f + 1)-th largest round seen: some honest neighbour has reached it. -1 before any message."""
        order = sorted(self.seen.values(), reverse=True)
        return order[self.f] if self.f < len(order) else -1

    def gather(self, dimension: int, dtype: Any = np.float64) -> tuple[Array, npt.NDArray[np.bool_]]:
        """End the round: messages (d, D) by sender id, zero if missing, and which arrived (d,)."""
        if len(self._arrivals) >= self._quorum and not self._starting:
            self.spreads.append(self._arrivals[self._quorum - 1] - self._arrivals[0])
        messages = np.zeros((len(self.neighbours), dimension), dtype)
        present = np.zeros(len(self.neighbours), bool)
        for slot, neighbour in enumerate(self.neighbours):
            vector = self._held[neighbour].get(self.round)
            if vector is not None:
                messages[slot] = vector
                present[slot] = True
                self._missed[neighbour] = 0
            else:
                self.verdicts[neighbour]["silent"] += 1
                self._missed[neighbour] += 1
        return messages, present

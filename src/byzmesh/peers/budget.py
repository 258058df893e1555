"""How much a neighbour may send, and for how long it is cut off when it sends more.

An honest neighbour sends one message per round, and up to four more to a peer that reconnects to it. So the budget
grows by `PER_ROUND` for each round that the network has certainly made (the (f + 1)-th largest round seen, which liars
cannot move, or the round that the peer itself has reached, if that is larger: of f neighbours or fewer there is no
(f + 1)-th) and by `PER_SECOND` with time, up to a burst. A neighbour with no budget left is flooding.
"""

from __future__ import annotations

from collections.abc import Iterable

PER_ROUND = 6.0
PER_SECOND = 50.0
BURST = 200.0
FIRST_CUT, LONGEST_CUT = 10.0, 3600.0
"""Seconds of the first cut-off; each further one lasts twice as long as the one before, up to an hour."""


class Budget:
    """Message budgets of the neighbours.

    >>> budget = Budget([4], now=0.0)
    >>> sum(budget.spend(4, round=0, now=0.1) for _ in range(1000)) == BURST
    True
    >>> budget.spend(4, round=0, now=1.1)
    True
    """

    def __init__(self, neighbours: Iterable[int], now: float) -> None:
        self._accounts = {neighbour: [BURST, now, -1] for neighbour in neighbours}
        """What is left, when it was counted, and up to which round."""

    def spend(self, neighbour: int, round: int, now: float, cost: float = 1.0) -> bool:
        """Count one message, or a part of one at its part of the cost; False if the neighbour had no budget left."""
        account = self._accounts[neighbour]
        left = account[0] + PER_SECOND * (now - account[1])
        account[1] = now
        if round > account[2]:
            left += PER_ROUND * (round - account[2])
            account[2] = round
        if left > BURST:
            left = BURST
        account[0] = left - cost if left > cost else 0.0
        return left >= cost

    def keep(self, neighbours: Iterable[int], now: float) -> None:
        """Forget all others; who is new gets a full budget."""
        self._accounts = {j: self._accounts.get(j, [BURST, now, -1]) for j in neighbours}

    def renew(self, neighbour: int, now: float) -> None:
        """A full budget again."""
        self._accounts[neighbour][:2] = [BURST, now]


class CutOffs:
    """Who is cut off, and until when.

    >>> cuts = CutOffs()
    >>> cuts.begin(7, now=0.0), 7 in cuts, cuts.ended(now=9.0), cuts.ended(now=10.0), 7 in cuts
    (10.0, True, [], [7], False)
    >>> cuts.begin(7, now=20.0), cuts.times
    (20.0, {7: 2})
    """

    def __init__(self) -> None:
        self.times: dict[int, int] = {}
        """How often each neighbour was cut off."""
        self.until: dict[int, float] = {}
        """Whose time is not over, and when it is."""

    def __contains__(self, neighbour: int) -> bool:
        return neighbour in self.until

    def begin(self, neighbour: int, now: float) -> float:
        """Cut a neighbour off; for how many seconds."""
        self.times[neighbour] = self.times.get(neighbour, 0) + 1
        seconds: float = min(LONGEST_CUT, FIRST_CUT * 2.0 ** min(20, self.times[neighbour] - 1))
        self.until[neighbour] = now + seconds
        return seconds

    def forget(self, neighbours: Iterable[int]) -> None:
        """These are others now: nothing is held against them."""
        for neighbour in neighbours:
            self.times.pop(neighbour, None)
            self.until.pop(neighbour, None)

    def ended(self, now: float) -> list[int]:
        """The neighbours whose time is over; they are no longer cut off."""
        over = [neighbour for neighbour, until in self.until.items() if until <= now]
        for neighbour in over:
            del self.until[neighbour]
        return over

"""How much a neighbour may send, and for how long it is cut off when it sends more.

An honest neighbour sends one message per round, and up to four more to a peer that reconnects to it. So the budget
grows by `PER_ROUND` for each round that the network has certainly made (the (f + 1)-th largest round seen, which liars
cannot move, or the round that the peer itself has reached, if that is larger: of f neighbours or fewer there is no
(f + 1)-th). A neighbour may also be far quicker than all others, so it grows with time by more rounds than anybody
makes, as long as these cost the peer little. What a peer that was paused finds waiting is what a link holds: so much
comes in a burst. A neighbour with no budget left is flooding.
"""

from __future__ import annotations

from collections.abc import Iterable

PER_ROUND = 6.0
QUICKEST, BYTES_PER_SECOND, SLOWEST = 1000.0, 32e6, 50.0
"""Messages per second: so many bytes, but no more than the first and no fewer than the last."""
BURST, HELD = 200.0, 1 << 21
"""Messages at once: so many, or as many as fit into the buffers at both ends of a link, in bytes."""
FIRST_CUT, LONGEST_CUT = 10.0, 3600.0
"""Seconds of the first cut-off; each further one lasts twice as long as the one before, up to an hour. After an hour
without one, the next is a first one."""


class Budget:
    """Message budgets of the neighbours.

    size  bytes of a message

    >>> budget = Budget([4], now=0.0, size=1 << 20)
    >>> sum(budget.spend(4, round=0, now=0.1) for _ in range(1000)) == BURST
    True
    >>> budget.spend(4, round=0, now=1.1)
    True
    """

    def __init__(self, neighbours: Iterable[int], now: float, size: int) -> None:
        self.per_second = max(SLOWEST, min(QUICKEST, BYTES_PER_SECOND / size))
        self.burst = max(BURST, HELD / size)
        self._accounts: dict[int, list[float]] = {}
        """What is left, when it was counted, and up to which round."""
        self.keep(neighbours, now)

    def spend(self, neighbour: int, round: int, now: float, cost: float = 1.0) -> bool:
        """Count one message, or a part of one at its part of the cost; False if the neighbour had no budget left."""
        account = self._accounts[neighbour]
        left = account[0] + self.per_second * (now - account[1])
        account[1] = now
        if round > account[2]:
            left += PER_ROUND * (round - account[2])
            account[2] = round
        if left > self.burst:
            left = self.burst
        account[0] = left - cost if left > cost else 0.0
        return left >= cost

    def keep(self, neighbours: Iterable[int], now: float) -> None:
        """Forget all others; who is new gets a full budget."""
        self._accounts = {j: self._accounts.get(j, [self.burst, now, -1]) for j in neighbours}

    def renew(self, neighbour: int, now: float) -> None:
        """A full budget again."""
        self._accounts[neighbour][:2] = [self.burst, now]


class CutOffs:
    """Who is cut off, and until when.

    >>> cuts = CutOffs()
    >>> cuts.begin(7, now=0.0), 7 in cuts, cuts.ended(now=9.0), cuts.ended(now=10.0), 7 in cuts
    (10.0, True, [], [7], False)
    >>> cuts.begin(7, now=20.0), cuts.ended(now=40.0), cuts.begin(7, now=4000.0), cuts.times
    (20.0, [7], 10.0, {7: 3})
    """

    def __init__(self) -> None:
        self.times: dict[int, int] = {}
        """How often each neighbour was cut off."""
        self.until: dict[int, float] = {}
        """Whose time is not over, and when it is."""
        self._last: dict[int, tuple[float, float]] = {}
        """How long each neighbour's last one was, and when it ended."""

    def __contains__(self, neighbour: int) -> bool:
        return neighbour in self.until

    def begin(self, neighbour: int, now: float) -> float:
        """Cut a neighbour off; for how many seconds."""
        self.times[neighbour] = self.times.get(neighbour, 0) + 1
        seconds, ended = self._last.get(neighbour, (0.0, now))
        seconds = FIRST_CUT if not seconds or now - ended > LONGEST_CUT else min(LONGEST_CUT, 2.0 * seconds)
        self.until[neighbour] = now + seconds
        self._last[neighbour] = seconds, now + seconds
        return seconds

    def forget(self, neighbours: Iterable[int]) -> None:
        """These are others now: nothing is held against them."""
        for neighbour in neighbours:
            for held in (self.times, self.until, self._last):
                held.pop(neighbour, None)

    def ended(self, now: float) -> list[int]:
        """The neighbours whose time is over; they are no longer cut off."""
        over = [neighbour for neighbour, until in self.until.items() if until <= now]
        for neighbour in over:
            del self.until[neighbour]
        return over

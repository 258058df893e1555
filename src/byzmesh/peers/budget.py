"""How many messages a neighbour may send: a budget that grows with honest progress, not with the neighbour's own.

An honest neighbour sends one message per round, and one more when this peer (re)connects. So the budget grows by
`PER_ROUND` for each round that the network has certainly made (the (f + 1)-th largest round seen, which liars cannot
move) and by `PER_SECOND` with time, up to a burst. A neighbour with no budget left is flooding.
"""

from __future__ import annotations

from collections.abc import Iterable

PER_ROUND = 2.0
PER_SECOND = 50.0
BURST = 200.0


class Budget:
    """Message budgets of the neighbours.

    >>> budget = Budget([4], now=0.0)
    >>> sum(budget.spend(4, round=0, now=0.1) for _ in range(1000)) == BURST
    True
    >>> budget.spend(4, round=0, now=1.1)
    True
    """

    def __init__(self, neighbours: Iterable[int], now: float) -> None:
        self._left = dict.fromkeys(neighbours, BURST)
        self._when = dict.fromkeys(self._left, now)
        self._round = dict.fromkeys(self._left, -1)

    def spend(self, neighbour: int, round: int, now: float) -> bool:
        """Count one message; False if the neighbour had no budget left."""
        gained = PER_SECOND * (now - self._when[neighbour]) + PER_ROUND * max(0, round - self._round[neighbour])
        left = min(BURST, self._left[neighbour] + gained)
        self._when[neighbour], self._round[neighbour] = now, max(round, self._round[neighbour])
        self._left[neighbour] = max(0.0, left - 1.0)
        return left >= 1.0

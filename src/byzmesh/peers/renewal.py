"""When to reopen a connection through which nothing comes.

ZeroMQ does not retry by itself after a garbled or refused handshake, or after a frame above the size limit. A link that
has just changed (a new neighbour, a new key, a new address) is tried again soon, since the other end may change a
moment later; then less and less often.
"""

from __future__ import annotations

from collections.abc import Iterable

RENEW = 10.0
"""Seconds of listening without a message after which a connection is reopened. Local work does not count: nobody
listens meanwhile."""
SOON = 0.25
"""The same for a link that has just changed; it doubles each time."""


class Renewal:
    """Since when each neighbour is silent, in seconds spent listening.

    >>> renewal = Renewal([3, 4])
    >>> renewal.due(9.0), renewal.heard(3, 9.0), renewal.due(10.5), renewal.due(10.6)
    ([], None, [4], [])
    >>> renewal.hurry([3], 11.0), renewal.due(11.3), renewal.due(11.7), renewal.due(11.9)
    (None, [3], [], [3])
    """

    def __init__(self, neighbours: Iterable[int]) -> None:
        self._since = dict.fromkeys(neighbours, 0.0)
        self._wait = dict.fromkeys(self._since, RENEW)
        self._next = RENEW

    def heard(self, neighbour: int, listened: float) -> None:
        """A message came."""
        self._since[neighbour] = listened
        self._wait[neighbour] = RENEW

    def hurry(self, neighbours: Iterable[int], listened: float) -> None:
        """These links are new."""
        for neighbour in neighbours:
            self._since[neighbour], self._wait[neighbour] = listened, SOON
        self._next = listened

    def keep(self, neighbours: Iterable[int]) -> None:
        """Forget all others."""
        for gone in self._since.keys() - set(neighbours):
            del self._since[gone], self._wait[gone]

    def due(self, listened: float) -> list[int]:
        """The links to reopen now."""
        if listened < self._next:
            return []
        due = [j for j, since in self._since.items() if listened - since > self._wait[j]]
        for neighbour in due:
            self._since[neighbour] = listened
            self._wait[neighbour] = min(RENEW, 2.0 * self._wait[neighbour])
        self._next = min((since + self._wait[j] for j, since in self._since.items()), default=listened + RENEW)
        return due

"""Which sockets are ready: epoll where there is one, because `selectors` makes three objects for each of them."""

from __future__ import annotations

import select
import selectors
import socket
import sys
from typing import Protocol

READ, WRITE = 1, 4
"""What to wait for, as epoll writes it."""


class Readiness(Protocol):
    """What is waited for."""

    def register(self, link: socket.socket, events: int, /) -> None:
        """Wait for `READ`, or for `READ | WRITE`."""

    def modify(self, link: socket.socket, events: int, /) -> None:
        """Wait for something else."""

    def unregister(self, link: socket.socket, /) -> None:
        """Do not wait any more."""

    def poll(self, seconds: float, /) -> list[tuple[int, int]]:
        """File number and events of whatever is ready, after so many seconds at the latest."""

    def fileno(self) -> int:
        """The file that is readable when anything is ready."""

    def close(self) -> None:
        """Forget everything."""


class _Elsewhere:
    """The same where there is no epoll."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.close = self._selector.close
        self.unregister = self._selector.unregister

    def register(self, link: socket.socket, events: int) -> None:
        self._selector.register(link, _as_selected(events))

    def modify(self, link: socket.socket, events: int) -> None:
        self._selector.modify(link, _as_selected(events))

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        return [(key.fd, events) for key, events in self._selector.select(seconds)]

    def fileno(self) -> int:
        return self._selector.fileno()  # type: ignore[attr-defined, no-any-return]


def _as_selected(events: int) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if events & WRITE else 0)


def readiness() -> Readiness:
    """A new one.

    >>> ours, theirs = socket.socketpair()
    >>> ready = readiness()
    >>> ready.register(theirs, READ)
    >>> before, _, after = ready.poll(0.0), ours.send(b"!"), ready.poll(1.0)
    >>> len(before), [file == theirs.fileno() for file, _ in after]
    (0, [True])
    >>> for one in (ready, ours, theirs):
    ...     one.close()
    """
    return select.epoll() if sys.platform == "linux" else _Elsewhere()

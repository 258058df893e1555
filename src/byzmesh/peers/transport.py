"""What a peer needs of the outside: messages, and time. Two worlds provide it.

    sockets.py  TCP between processes, and the clock of this machine
    virtual.py  all peers in one process, and a clock that jumps from event to event

A peer is the same code in both: it asks its world for a transport, for the time, and waits in `receive` or `sleep`,
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from byzmesh.peers.identity import Keys

Received = tuple[list[tuple[int, Any]], list[int]]
"""(neighbour, bytes) of what arrived, and the neighbours that have just joined."""
QUEUE = 8
"""Messages queued per neighbour and direction."""
AFTER_GARBAGE = 10.0
"""Seconds until a link that carried what cannot be a message is opened again."""

OPEN_LINKS = 64
"""Neighbours that a peer of a changing network listens to besides those due in the rounds to come."""


@dataclass(frozen=True)
class Remote:
    """A neighbour's address and public key."""

    address: str
    public_key: str


class Transport(Protocol):
    """A peer's links to its neighbours."""

    @property
    def guarding(self) -> bool:
        """Whether the guards of the transport are alive."""

    @property
    def strangers(self) -> int:
        """Handshakes refused."""

    @property
    def connected(self) -> list[int]:
        """The neighbours listened to."""

    @property
    def linked(self) -> list[int]:
        """Those of them whose link is open."""

    def change(self, address: str, keys: Keys, neighbours: Mapping[int, Remote]) -> None:
        """Other neighbours, or addresses, or keys. Links that stay as they are stay open; keys that are no longer
        anybody's are shut out at once."""

    def connect(self, neighbour: int) -> None:
        """Listen to a neighbour (again)."""

    def disconnect(self, neighbour: int) -> None:
        """Stop listening to a neighbour; whatever it still sends is lost."""

    def send(self, data: bytes | bytearray) -> None:
        """Publish a message; its first bytes say who reads it. Never blocks. Whoever joined gets nothing until
        `receive` told of it: what was sent before goes first."""

    def receive(self, seconds: float) -> Received:
        """Wait up to `seconds` for messages or joins."""

    def close(self, linger: float = 1.0) -> None:
        """End all links; queued messages may still be sent for `linger` seconds."""


class World(Protocol):
    """Where a peer lives."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait without listening."""

    def open(
        self,
        me: int,
        address: str,
        keys: Keys,
        neighbours: Mapping[int, Remote],
        size: int,
        log: Callable[..., None],
        parts: int = 1,
    ) -> Transport:
        """A transport that listens at `address`, for frames of up to `size` bytes, of which a message has `parts`."""

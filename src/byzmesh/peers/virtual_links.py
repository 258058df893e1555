"""A peer's links in the virtual world: they do what sockets do, on the world's clock."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byzmesh.peers.identity import Keys
from byzmesh.peers.transport import AFTER_GARBAGE, QUEUE, Received, Remote
from byzmesh.peers.wire import EVERYONE

if TYPE_CHECKING:
    from byzmesh.peers.virtual import Process, VirtualWorld

_REDIAL = 0.2
"""Seconds until a connection that failed is tried again."""
_BUFFERS = 1 << 20
"""Bytes that wait in a link for a peer that does not read."""


class VirtualTransport:
    """One peer's links in the virtual world."""

    def __init__(
        self,
        world: VirtualWorld,
        me: int,
        keys: Keys,
        neighbours: Mapping[int, Remote],
        size: int,
        process: Process | None,
        parts: int = 1,
    ) -> None:
        self.world, self.me, self.keys, self.neighbours, self.size = world, me, keys, dict(neighbours), size
        self._queue = max(QUEUE * parts, _BUFFERS // size)
        self.strangers = 0
        self.guarding = True
        self.readers: set[int] = set()
        """Neighbours that receive what is sent."""
        self._listens: set[int] = set()
        self._messages: dict[int, list[Any]] = defaultdict(list)
        """What arrived, by sender: links are read one after another."""
        self._joined: list[int] = []
        self._last: dict[int, float] = {}
        self._deaf: dict[int, float] = {}
        """Until when a link that ended for its garbage stays closed."""
        self._process = process
        self._closed = False
        world.transports[me] = self
        if process is not None:
            process.transports.append(self)
        for neighbour in self.neighbours:
            self.connect(neighbour)

    @property
    def connected(self) -> list[int]:
        return sorted(self._listens)

    @property
    def linked(self) -> list[int]:
        there = self.world.transports
        return [j for j in self.connected if j in there and self.me in there[j].readers]

    def connect(self, neighbour: int) -> None:
        if neighbour not in self._listens:
            self._listens.add(neighbour)
            self._dial(neighbour)

    def _dial(self, neighbour: int) -> None:
        if self._closed or neighbour not in self._listens:
            return
        other = self.world.transports.get(neighbour)
        delay = self.world.link(self.world.random, self.me, neighbour, self.world.time)
        if other is None or delay is None:
            self.world.at(self.world.time + _REDIAL, lambda: self._dial(neighbour))
        else:
            self.world.at(self.world.time + delay, lambda: other._join(self))

    def _knows(self, other: VirtualTransport) -> bool:
        """Whether the other's key is that of the neighbour it says it is."""
        return other.me in self.neighbours and self.neighbours[other.me].public_key == other.keys.public

    def _join(self, reader: VirtualTransport) -> None:
        """The handshake; a failed one is tried again."""
        if self._closed:
            reader._dial(self.me)
        elif not (self._knows(reader) and reader._knows(self)):
            self.strangers += not self._knows(reader)
            self.world.at(self.world.time + _REDIAL, lambda: reader._dial(self.me))
        elif not reader._closed and self.me in reader._listens:
            self.readers.add(reader.me)
            self._joined.append(reader.me)
            self._wake()

    def change(self, address: str, keys: Keys, neighbours: Mapping[int, Remote]) -> None:
        former, self.neighbours = self.neighbours, dict(neighbours)
        anew = keys != self.keys
        for neighbour in self.connected:
            if anew or former[neighbour] != neighbours.get(neighbour):
                self.disconnect(neighbour)
        self.keys = keys
        kept = {i: remote.public_key for i, remote in neighbours.items()}
        if anew or any(kept.get(i) != remote.public_key for i, remote in former.items()):
            self._hang_up()
        for neighbour in self.neighbours:
            self.connect(neighbour)

    def _hang_up(self) -> None:
        """Every reader notices that its link is gone and dials until somebody answers."""
        for reader in sorted(self.readers):
            other = self.world.transports.get(reader)
            if other is not None:
                self.world.at(self.world.time + _REDIAL, lambda other=other: other._dial(self.me))  # type: ignore[misc]
        self.readers.clear()

    def disconnect(self, neighbour: int) -> None:
        self._listens.discard(neighbour)
        self._hang_up_on(neighbour)

    def _hang_up_on(self, neighbour: int) -> None:
        self._messages.pop(neighbour, None)
        if neighbour in self.world.transports:
            self.world.transports[neighbour].readers.discard(self.me)

    def send(self, data: bytes | bytearray) -> None:
        """Carry a copy to every reader it is meant for."""
        world = self.world
        (destination,) = struct.unpack("<H", data[:2])
        for reader in sorted(self.readers.difference(self._joined)):  # who joined is told first what was sent before
            other = world.transports.get(reader)
            if destination not in (EVERYONE, reader) or other is None or not self._knows(other):
                continue
            delay = world.link(world.random, self.me, reader, world.time)
            if delay is not None:
                due = world.time + delay
                if not world.reorder:
                    due = self._last[reader] = max(due, self._last.get(reader, 0.0))
                letter = self.me, self.keys.public, bytes(data)
                world.at(due, lambda other=other, letter=letter: other._deliver(*letter))  # type: ignore[misc]

    def _deliver(self, sender: int, key: str, data: bytes) -> None:
        """Frames above the exact size end a connection for a while, full queues lose what is newest: like sockets."""
        if self._closed or sender not in self._listens or self.neighbours[sender].public_key != key:
            return
        if self.world.time < self._deaf.get(sender, 0.0):
            return
        if len(data) > self.size:
            self._hang_up_on(sender)
            self._deaf[sender] = self.world.time + AFTER_GARBAGE
            self.world.at(self._deaf[sender], lambda: self._dial(sender))
            return
        if len(self._messages[sender]) < self._queue:
            self._messages[sender].append(data)
            self._wake()

    def _wake(self) -> None:
        if self._process is not None and self._process.listening:
            self._process.resume()

    def receive(self, seconds: float) -> Received:
        if not self._messages and not self._joined and seconds > 0.0:
            until = max(self.world.time + seconds, math.nextafter(self.world.time, math.inf))
            self.world._process.wait(until, listening=True)
        messages = [(sender, data) for sender, sent in self._messages.items() for data in sent]
        joined = list(dict.fromkeys(self._joined))
        self._messages.clear()
        self._joined.clear()
        return messages, joined

    def close(self, linger: float = 0.0) -> None:
        if self._closed:
            return
        self._closed = True
        if self.world.transports.get(self.me) is self:
            del self.world.transports[self.me]
        self._hang_up()

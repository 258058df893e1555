"""A virtual world: all peers in one process, on a clock that jumps from event to event.

Peers run their ordinary code, each in a thread, but only one thread runs at a time: a peer that waits in `receive` or
`sleep` hands over to the world, which moves the clock to the next event. So a run depends on nothing but its seed,
takes as long as its computation, and may be stopped, looked at and disturbed between any two events.

    world = VirtualWorld(seed=1, link=lambda random, sender, receiver, now: random.uniform(0.001, 0.002))
    world.start(lambda: train(Peer(..., me=0, world=world)))
    world.at(3.0, lambda: world.kill(process))
    world.run(60.0)

A link says how long a message takes, or None if it is lost. Links keep the order of messages, as TCP does, unless the
world is told to reorder. Whoever sends nothing well-formed is a script: any function that opens a transport and sends.
"""

from __future__ import annotations

import heapq
import math
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.peers.identity import Keys
from byzmesh.peers.transport import QUEUE, Received, Remote
from byzmesh.peers.wire import EVERYONE

Link = Callable[[random.Random, int, int, float], float | None]
"""(random, sender, receiver, now) -> seconds on the way, or None if lost."""
_REDIAL = 0.2
"""Seconds until a connection that failed is tried again."""


class Killed(BaseException):
    """Raised inside a process of the virtual world that is ended by force."""


class Process:
    """Code that runs in the world, one piece at a time between two waits."""

    def __init__(self, world: VirtualWorld, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self.ended = False
        self.transports: list[VirtualTransport] = []
        self._world, self._work, self._doomed = world, work, False
        self._go = threading.Semaphore(0)
        self._turn = 0
        self.listening = False
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        self._go.acquire()
        try:
            if not self._doomed:
                self._work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.ended = True
        self._close()
        self._world._back.release()

    def wait(self, until: float, listening: bool) -> None:
        """Let the others run until then, or, if listening, until something arrives."""
        self.listening = listening
        self._turn += 1
        turn = self._turn
        self._world.at(until, lambda: self.resume(turn))
        self._world._back.release()
        self._go.acquire()
        self.listening = False
        if self._doomed:
            raise Killed

    def resume(self, turn: int | None = None) -> None:
        """Run until the next wait; a turn that is over already is ignored."""
        if self.ended or (turn is not None and turn != self._turn):
            return
        self._turn += 1
        self._world._running = self
        self._go.release()
        self._world._back.acquire()
        self._world._running = None

    def kill(self) -> None:
        """End at once, wherever it waits."""
        self._doomed = True
        self._close()
        self.resume()
        self._thread.join()

    def _close(self) -> None:
        for transport in self.transports:
            transport.close()


class VirtualWorld:
    """Clock, links and processes."""

    def __init__(self, seed: int = 0, link: Link = lambda *_: 0.001, reorder: bool = False) -> None:
        self.random = random.Random(seed)
        self.link, self.reorder = link, reorder
        self.time = 0.0
        self.events = 0
        self.transports: dict[int, VirtualTransport] = {}
        self.processes: list[Process] = []
        self.checks: list[Callable[[], None]] = []
        """Called after every event."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._back = threading.Semaphore(0)
        self._running: Process | None = None

    def __enter__(self) -> VirtualWorld:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if not process.ended:
                process.kill()

    def now(self) -> float:
        """Seconds since the beginning of the world."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Local work: whatever arrives meanwhile waits in the queue."""
        if seconds > 0.0:
            self._process.wait(self.time + seconds, listening=False)

    @property
    def _process(self) -> Process:
        if self._running is None:
            raise RuntimeError("only code started with VirtualWorld.start may wait")
        return self._running

    def open(
        self,
        me: int,
        address: str,
        keys: Keys,
        neighbours: Mapping[int, Remote],
        size: int,
        log: Callable[..., None],
        parts: int = 1,
    ) -> VirtualTransport:
        """The transport of peer `me`; addresses do not matter here, and keys are compared as they are."""
        return VirtualTransport(self, me, keys, neighbours, size, self._running, parts)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at that time."""
        self._scheduled += 1
        heapq.heappush(self._queue, (max(time, self.time), self._scheduled, action))

    def start(self, work: Callable[[], object], at: float = 0.0) -> Process:
        """A process that begins at that time."""
        process = Process(self, work)
        self.processes.append(process)
        self.at(at, process.resume)
        return process

    def run(self, until: float = math.inf, done: Callable[[], bool] = lambda: False) -> None:
        """Run until then, or until `done`, or until all processes ended; an error in a process is raised here."""
        while self._queue and self._queue[0][0] <= until and not done():
            if all(process.ended for process in self.processes):
                return
            self.time, _, action = heapq.heappop(self._queue)
            self.events += 1
            action()
            for process in self.processes:
                if process.error is not None:
                    raise process.error
            for check in self.checks:
                check()


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
        self._queue = QUEUE * parts
        self.hoarding: set[int] = set()
        self.strangers = 0
        self.guarding = True
        self.readers: set[int] = set()
        """Neighbours that receive what is sent."""
        self._listens: set[int] = set()
        self._messages: list[tuple[int, Any]] = []
        self._joined: list[int] = []
        self._last: dict[int, float] = {}
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
        """The handshake: a failed one is not tried again by itself, as with ZeroMQ."""
        if self._closed:
            reader._dial(self.me)
        elif not (self._knows(reader) and reader._knows(self)):
            self.strangers += not self._knows(reader)
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
        self._messages = [message for message in self._messages if message[0] != neighbour]
        if neighbour in self.world.transports:
            self.world.transports[neighbour].readers.discard(self.me)

    def send(self, data: bytes | bytearray) -> None:
        """Carry a copy to every reader it is meant for."""
        world = self.world
        (destination,) = struct.unpack("<H", data[:2])
        for reader in sorted(self.readers):
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
        """Frames above the exact size end a connection, full queues lose what is newest: as with ZeroMQ."""
        if self._closed or sender not in self._listens or self.neighbours[sender].public_key != key:
            return
        if len(data) > self.size:
            self.disconnect(sender)
            return
        if Counter(origin for origin, _ in self._messages)[sender] < self._queue:
            self._messages.append((sender, data))
            self._wake()

    def _wake(self) -> None:
        if self._process is not None and self._process.listening:
            self._process.resume()

    def receive(self, seconds: float) -> Received:
        if not self._messages and not self._joined and seconds > 0.0:
            until = max(self.world.time + seconds, math.nextafter(self.world.time, math.inf))
            self.world._process.wait(until, listening=True)
        messages, joined = self._messages, self._joined
        self._messages, self._joined = [], []
        return messages, list(dict.fromkeys(joined))

    def close(self, linger: float = 0.0) -> None:
        if self._closed:
            return
        self._closed = True
        if self.world.transports.get(self.me) is self:
            del self.world.transports[self.me]
        self._hang_up()

"""A virtual world: all peers in one process, on a clock that jumps from event to event.

Peers run their ordinary code, each as a greenlet, one at a time: a peer that waits in `receive` or `sleep` hands over
to the world, which moves the clock to the next event. So a run depends on nothing but its seed, takes as long as its
computation, and may be stopped, looked at and disturbed between any two events.

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
from collections.abc import Callable, Mapping

from greenlet import getcurrent, greenlet

from byzmesh.peers.identity import Keys
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual_links import VirtualTransport

Link = Callable[[random.Random, int, int, float], float | None]
"""(random, sender, receiver, now) -> seconds on the way, or None if lost."""


class Killed(BaseException):
    """Raised inside a process of the virtual world that is ended by force."""


class Process:
    """Code that runs in the world, one piece at a time between two waits."""

    def __init__(self, world: VirtualWorld, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self.ended = False
        self.transports: list[VirtualTransport] = []
        self._world, self._work, self._doomed = world, work, False
        self._turn = 0
        self.listening = False
        self._greenlet = greenlet(self._main)

    def _main(self) -> None:
        try:
            if not self._doomed:
                self._work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.ended = True
        self._close()

    def wait(self, until: float, listening: bool) -> None:
        """Let the others run until then, or, if listening, until something arrives."""
        self.listening = listening
        self._turn += 1
        turn = self._turn
        self._world.at(until, lambda: self.resume(turn))
        self._greenlet.parent.switch()
        self.listening = False
        if self._doomed:
            raise Killed

    def resume(self, turn: int | None = None) -> None:
        """Run until the next wait; a turn that is over already is ignored."""
        if self.ended or (turn is not None and turn != self._turn):
            return
        self._turn += 1
        self._world._running = self
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()
        self._world._running = None

    def kill(self) -> None:
        """End at once, wherever it waits."""
        self._doomed = True
        self._close()
        self.resume()

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

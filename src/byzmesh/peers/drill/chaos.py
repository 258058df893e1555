"""Faults of a drill: one at a time, on honest peers drawn by a seed.

kill       kill -9, restarted after a second
pause      stopped for a second (SIGSTOP), then continued
slow       20 ms of delay in every round, for two seconds
partition  the honest peers are split into two halves that cannot reach each other, for two seconds
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Sequence

import numpy as np

from byzmesh.checks import choice
from byzmesh.files import write
from byzmesh.peers.drill.drill import Drill

KINDS = ("kill", "pause", "slow", "partition")
_REST = 1.0
"""Seconds between two faults."""


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise `ConfigError` for an unknown kind of fault."""
    for kind in kinds:
        choice("chaos", kind, KINDS)


class Chaos:
    """Call `tick` often; it starts and ends the faults on time."""

    def __init__(self, drill: Drill, kinds: Sequence[str], seed: int = 0) -> None:
        check_kinds(kinds)
        self.drill, self.kinds = drill, list(kinds)
        self.events: list[tuple[str, list[int]]] = []
        """Each fault and the peers it hit."""
        self._random = np.random.default_rng(seed)
        self._next = time.monotonic() + _REST
        self._undo: Callable[[], None] | None = None

    def tick(self) -> None:
        """Start and end the faults that are due."""
        now = time.monotonic()
        if not self.kinds or now < self._next:
            return
        if self._undo is not None:
            self._undo()
            self._undo, self._next = None, now + _REST
            return
        running = self.drill.running()
        if running:
            kind = self.kinds[len(self.events) % len(self.kinds)]
            self._next = now + (1.0 if kind in ("kill", "pause") else 2.0)
            self._undo = getattr(self, f"_{kind}")(running)

    @property
    def pending(self) -> bool:
        """Whether a fault is active."""
        return self._undo is not None

    def end(self) -> None:
        """Undo the faults that are still active."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _one(self, kind: str, running: list[int]) -> int:
        peer = int(self._random.choice(running))
        self.events.append((kind, [peer]))
        return peer

    def _kill(self, running: list[int]) -> Callable[[], None]:
        peer = self._one("kill", running)
        self.drill.signal(peer, signal.SIGKILL)
        return lambda: self.drill.start_peer(peer)

    def _pause(self, running: list[int]) -> Callable[[], None]:
        peer = self._one("pause", running)
        self.drill.signal(peer, signal.SIGSTOP)
        return lambda: self.drill.signal(peer, signal.SIGCONT)

    def _slow(self, running: list[int]) -> Callable[[], None]:
        peer = self._one("slow", running)
        path = self.drill.faults(peer)
        write(path, json.dumps({"delay": 0.02}))
        return lambda: path.unlink(missing_ok=True)

    def _partition(self, running: list[int]) -> Callable[[], None]:
        shuffled = [int(peer) for peer in self._random.permutation(self.drill.honest)]
        halves = shuffled[::2], shuffled[1::2]
        for half, other in (halves, halves[::-1]):
            for peer in half:
                write(self.drill.faults(peer), json.dumps({"blocked": other}))
        self.events.append(("partition", sorted(halves[0])))

        def heal() -> None:
            for peer in shuffled:
                self.drill.faults(peer).unlink(missing_ok=True)

        return heal

"""Computes the runs of a sweep in this process, one after another, as `byzmesh run` does with one."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from byzmesh.simulation.engine import Simulation
from byzmesh.sweeps.leases import Leases
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.run import GoOn
from byzmesh.sweeps.worker import LOOK_SECONDS, Orders, latest, work


def run_here(backlog: Backlog, orders: Orders) -> None:
    """Compute all runs of the backlog; if stopped, write a checkpoint and raise `KeyboardInterrupt`."""
    with Leases(backlog.store, orders.lease_seconds) as leases:
        while backlog.open:
            key = backlog.next()
            if key is None:
                time.sleep(LOOK_SECONDS)
                backlog.look()
                continue
            with _Stop() as stop:
                go_on = _watch(backlog, leases, key, stop)
                word, _, *status = work(key, orders, backlog.store, leases, go_on, backlog.note)
            backlog.hear(word, key, *status)
            if stop.asked and backlog.open:
                raise KeyboardInterrupt


class _Stop:
    """Stops on Ctrl-C or SIGTERM between rounds, never within one: a checkpoint needs a whole state. Twice: at once."""

    def __init__(self) -> None:
        self.computing = False
        """Whether a round has been computed: before that there is nothing to save, so it stops at once."""
        self.asked = False

    def __enter__(self) -> _Stop:
        self.former: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self.former = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.former.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self.computing:
            raise KeyboardInterrupt
        self.asked = True


def _watch(backlog: Backlog, leases: Leases, key: str, stop: _Stop) -> GoOn:
    looked = 0.0

    def go_on(simulation: Simulation) -> bool:
        nonlocal looked
        stop.computing = True
        if stop.asked:
            return False
        now = time.monotonic()
        if now - looked >= LOOK_SECONDS:
            looked = now
            backlog.at(key, simulation.round, latest(simulation))
            backlog.look()
        return key not in leases.lost

    return go_on

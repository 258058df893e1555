"""Whom a peer wants to connect to, where, and when it tries again.

A neighbour that cannot be reached, or whose link ends, is tried again after 20 ms, then less and less often. Names of
hosts are looked up in threads of their own: a name server may take as long as it likes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from byzmesh.peers.tcp import places

FIRST_REDIAL, LAST_REDIAL = 0.02, 1.0
"""Seconds until a link is dialled again: the first time, and at most."""


@dataclass
class Dial:
    """A neighbour to connect to."""

    address: str
    certificate: bytes
    due: float
    _: KW_ONLY
    wait: float = FIRST_REDIAL
    busy: bool = False
    """Whether it is under way, or done."""
    places: list[tuple[int, Any]] = field(default_factory=list)
    """Family and socket address of where it may be and was not tried yet."""


class Dials:
    """All dials of a peer, by neighbour; `rouse` is called when one may be due earlier than was known."""

    def __init__(self, rouse: Callable[[], None]) -> None:
        self._rouse = rouse
        self._lock = threading.Lock()
        self._of: dict[int, Dial] = {}

    def add(self, neighbour: int, address: str, certificate: bytes, after: float = 0.0, again: bool = False) -> None:
        """Open a link to a neighbour after so many seconds; `again` if one has just failed: then not too often."""
        with self._lock:
            former = self._of.get(neighbour)
            dial = Dial(address, certificate, time.monotonic() + after)
            if again and former is not None:
                dial.wait = min(LAST_REDIAL, 2.0 * former.wait)
                dial.due += former.wait
            self._of[neighbour] = dial
        self._rouse()

    def settle(self, neighbour: int) -> None:
        """A link to this neighbour has lasted: if it ends, it is dialled again at once."""
        with self._lock:
            if neighbour in self._of:
                self._of[neighbour].wait = FIRST_REDIAL

    def remove(self, neighbour: int) -> None:
        """Do not dial a neighbour any more."""
        with self._lock:
            self._of.pop(neighbour, None)

    def wants(self, dial: Dial) -> bool:
        """Whether nobody has thought better of it."""
        with self._lock:
            return any(dial is other for other in self._of.values())

    def next_due(self) -> float:
        """When there is something to do."""
        with self._lock:
            return min((dial.due for dial in self._of.values() if not dial.busy), default=float("inf"))

    def take_due(self) -> list[Dial]:
        """Those to connect to now; each is at the first of its places."""
        now = time.monotonic()
        with self._lock:
            due = [dial for dial in self._of.values() if not dial.busy and dial.due <= now]
        known = []
        for dial in due:
            dial.busy = True
            try:
                dial.places = dial.places or places(dial.address, numeric=True)
                known.append(dial)
            except OSError:
                threading.Thread(target=self._look_up, args=(dial,), name="byzmesh-names", daemon=True).start()
        return known

    def _look_up(self, dial: Dial) -> None:
        try:
            dial.places = places(dial.address, numeric=False)
            dial.busy = False
        except OSError:
            self.failed(dial)
        self._rouse()

    def failed(self, dial: Dial) -> None:
        """It could not be reached, or was refused: the next of its places is tried at once, all of them again later."""
        if not dial.places:
            dial.due = time.monotonic() + dial.wait
            dial.wait = min(LAST_REDIAL, 2.0 * dial.wait)
        dial.busy = False

"""One nursery for all drills of the room: peers start in milliseconds, and nothing survives the session.

Tests that are marked `real` use sockets, sleep or start processes: these, and no others, may depend on how busy the
machine is, and `scripts/repeat_peers` repeats them. All others run in virtual time, where a second run shows nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from byzmesh import compiled
from byzmesh.peers import doorkeeper
from byzmesh.peers.drill.drill import Nursery
from tests.peers.networks import LONG

_used: set[str] = set()
"""What the current test used of the real world."""


def _note(event: str, facts: tuple[object, ...]) -> None:
    # the address of a unix socket, through which commands are forked, is no pair
    if event == "subprocess.Popen" or (event in ("socket.bind", "socket.connect") and isinstance(facts[1], tuple)):
        _used.add(event)


sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def _marked_real_if_it_is(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    marked = request.node.get_closest_marker("real") is not None
    # a handshake may have to wait for a processor longer than for a stranger
    monkeypatch.setattr(doorkeeper, "HANDSHAKE_SECONDS", LONG)
    sleep = time.sleep

    def noted(seconds: float) -> None:
        # whoever needs a kernel that another test process compiles waits for it, in any test
        if sys._getframe(1).f_globals["__name__"] != compiled.__name__:
            _used.add("time.sleep")
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", noted)
    _used.clear()
    yield
    assert marked or not _used, f"a test that uses {', '.join(sorted(_used))} must be marked real"
    assert _used or not marked, "marked real, but in virtual time"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()

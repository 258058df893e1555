"""One nursery for all drills of the room: peers start in milliseconds, and nothing survives the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from byzmesh.peers.drill.drill import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()

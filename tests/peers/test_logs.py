"""What others can provoke does not fill the disk: row 12 of issue 18."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from byzmesh.peers import logs
from byzmesh.peers.logs import BURST, PROVOKED, SECONDS, bounded, json_log


@pytest.mark.parametrize("event", sorted(PROVOKED))
def test_an_hour_of_provocation_is_a_few_hundred_lines(event: str) -> None:
    clock, written = [0.0], Counter[int]()
    log = bounded(lambda event, **facts: written.update([facts["neighbour"]]), now=lambda: clock[0])
    for _ in range(36_000):
        for neighbour in (1, 2):
            log(event, neighbour=neighbour)
        clock[0] += 0.1
    assert all(BURST < count <= BURST + 3600 / SECONDS for count in written.values()) and len(written) == 2


def test_one_loud_neighbour_does_not_hide_another() -> None:
    stream = io.StringIO()
    log = json_log(0, stream)
    for _ in range(1000):
        log("refused", neighbour=7, reason="size")
    log("refused", neighbour=8, reason="run")
    for _ in range(100):
        log("evaluated", round=1)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert Counter(line.get("neighbour") for line in lines) == {7: BURST, 8: 1, None: 100}


def test_every_event_that_a_neighbour_can_cause_is_bounded() -> None:
    """The events of peer, sockets and doorkeeper; all others are a node's own."""
    assert {"refused", "moved up", "cut off", "shut down", "guard failed"} <= logs.PROVOKED

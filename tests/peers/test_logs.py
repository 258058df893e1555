"""What others can provoke does not fill the disk: row 12 of issue 18."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path

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


def test_strangers_do_not_hide_what_is_wrong_with_a_file() -> None:
    """Both are `refused`, and neither has a neighbour."""
    stream = io.StringIO()
    log = json_log(0, stream)
    for _ in range(1000):
        log("refused", address="10.0.0.9", reason="not a neighbour")
    log("refused", reason="file", path="network.yaml")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert Counter(line["reason"] for line in lines) == {"not a neighbour": BURST, "file": 1}


OWN = {
    "joining",
    *("evaluated", "resumed", "left", "removed", "joined", "damaged", "not moved", "ready", "warning"),
    *("epoch known", "epoch in force", "epoch tried", "conflict"),
}
"""Events that follow from this peer's own rounds and disk, or from files that the operator signed."""


def test_every_event_that_a_neighbour_can_cause_is_bounded() -> None:
    """Every event that the code logs is either bounded or known to be a node's own."""
    text = "".join(path.read_text() for path in Path(logs.__file__).parent.rglob("*.py"))
    logged = set(re.findall(r'\b_?log\(\s*"([^"]+)"', text))
    logged |= {f"neighbour {how}" for how in ("lost", "back") if re.search(rf'log\(f"neighbour .*{how}', text)}
    assert logged == PROVOKED | OWN

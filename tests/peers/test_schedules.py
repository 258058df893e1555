"""Seeded faults on a virtual network of real nodes with a liar: invariants hold after every event, and all recover.

A seed that fails is shrunk, printed and added to kept_schedules.json, whose schedules run for ever: commit it with the
repair.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from byzmesh.peers.links import Links
from byzmesh.peers.rounds import Rounds
from tests.peers.schedules import Fault, broken, drawn, find, keep, kept, shrunk

SEEDS = range(3)
ONE_KILL = 69
"""The seed of a schedule of two faults, one of them a kill."""


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_schedules(tmp_path: Path, seed: int) -> None:
    how = find(tmp_path, seed)
    assert how is None, how


@pytest.mark.parametrize("case", kept(), ids=lambda case: case["how"])
def test_schedules_that_failed_once(tmp_path: Path, case: dict[str, Any]) -> None:
    assert broken(tmp_path, case["seed"], case["faults"]) is None


def test_a_peer_that_believes_the_largest_round_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rounds, "trusted", property(lambda rounds: max(rounds.seen.values())))
    assert "dragged" in str(broken(tmp_path, 0, []))


def test_shrinking_keeps_what_is_needed() -> None:
    faults: list[Fault] = [[kind, 0.0, 1.0, [0]] for kind in ("kill", "loss", "slow", "partition")]
    small = shrunk(lambda some: {"loss", "partition"} <= {fault[0] for fault in some}, faults)
    assert [fault[0] for fault in small] == ["loss", "partition"]


def test_a_schedule_that_fails_is_shrunk_kept_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: whoever connects again, as a peer that was killed does, is taken for a flood."""
    path, joins = tmp_path / "kept.json", Counter[tuple[Links, int]]()
    path.write_text("[]")

    def wary(links: Links, neighbour: int) -> None:
        joins[links, neighbour] += 1
        if joins[links, neighbour] > 1:
            links._cut(neighbour, "again")

    with monkeypatch.context() as mutant:
        mutant.setattr(Links, "_send_again", wary)
        how = find(tmp_path, ONE_KILL, path)
        (case,) = kept(path)
        assert how is not None and "cut off" in case["how"] and case["how"] in how
        assert case["faults"] == [fault for fault in drawn(ONE_KILL) if fault[0] == "kill"]
        assert broken(tmp_path, case["seed"], case["faults"]) is not None
    keep(case["seed"], case["faults"], "again", path)
    assert kept(path) == [case]

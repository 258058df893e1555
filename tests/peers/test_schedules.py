"""Seeded faults on a virtual network of real nodes with a liar: invariants hold after every event, and all recover.

A seed that fails is shrunk and printed; `schedules.keep` adds it to kept_schedules.json, whose schedules run for ever.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.peers.rounds import Rounds
from tests.peers.schedules import Fault, broken, drawn, kept, shrunk

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_schedules(tmp_path: Path, seed: int) -> None:
    faults = drawn(seed)
    how = broken(tmp_path, seed, faults)
    if how is not None:
        small = shrunk(lambda fewer: broken(tmp_path, seed, fewer) is not None, faults)
        pytest.fail(f"seed {seed}: {how}; shrunk to {small}")


@pytest.mark.parametrize("case", kept(), ids=lambda case: case["how"])
def test_schedules_that_failed_once(tmp_path: Path, case: dict[str, object]) -> None:
    faults = case["faults"]
    assert isinstance(faults, list) and isinstance(case["seed"], int)
    assert broken(tmp_path, case["seed"], faults) is None


def test_a_peer_that_believes_the_largest_round_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rounds, "trusted", property(lambda rounds: max(rounds.seen.values())))
    assert "dragged" in str(broken(tmp_path, 0, []))


def test_shrinking_keeps_what_is_needed() -> None:
    faults: list[Fault] = [[kind, 0.0, 1.0, [0]] for kind in ("kill", "loss", "slow", "partition")]
    small = shrunk(lambda some: {"loss", "partition"} <= {fault[0] for fault in some}, faults)
    assert [fault[0] for fault in small] == ["loss", "partition"]

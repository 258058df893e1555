"""More rounds of a stored run: bit for bit the long run, or computed from round 0 with the reason said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byzmesh.config.schema import resolve
from byzmesh.store import RunRecord
from byzmesh.sweeps.models import models_file
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.sweep import sweep
from tests.processes import results


def config(samples: Path, rounds: int, **more: Any) -> dict[str, Any]:
    base = {"problem": {"name": "softmax", "dataset": str(samples)}, "network": "paper/two-castle", "attack": "alie"}
    return resolve({**base, "evaluate_every": 7, "rounds": rounds, **more})


def computed(store: Path, config: dict[str, Any], **options: Any) -> tuple[str, list[str]]:
    """The key of the computed run, and the notes printed."""
    said: list[str] = []

    def show(backlog: Backlog, record: RunRecord | None) -> None:
        said.extend(text for text in backlog.notes if text not in said)

    (key,) = sweep([config], store, workers=0, show=show, **options).statuses
    return key, said


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rule": "cc", "local": {"momentum": "heavy-ball"}},
        {"attack": "label-flipping"},
        {"rule": {"name": "BALANCE", "kappa": 0.0}},
        {"local": {"variance": "saga"}},
    ],
    ids=str,
)
def test_a_longer_run_continues_bit_for_bit(samples: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    """30 is no multiple of 7: the short run has an evaluation that the long one has not."""
    computed(tmp_path / "a.db", config(samples, 30, **more), keep_models="final")
    long = config(samples, 60, **more)
    key, said = computed(tmp_path / "a.db", long, keep_models="final")
    assert said == ["30 of 60 rounds are stored: the run continues from there"]
    assert computed(tmp_path / "b.db", long, keep_models="final") == (key, [])
    assert results(tmp_path / "a.db")[key] == results(tmp_path / "b.db")[key]
    assert models_file(tmp_path / "a.db", key).read_bytes() == models_file(tmp_path / "b.db", key).read_bytes()


def test_a_run_that_cannot_continue_exactly_starts_again_and_says_why(samples: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    computed(store, config(samples, 10, rule="balance"), keep_models="final")
    _, said = computed(store, config(samples, 20, rule="balance"))
    assert said == [
        "10 of 20 rounds are stored, but rule BALANCE depends on the number of rounds: the run starts at round 0"
    ]
    computed(store, config(samples, 10))
    _, said = computed(store, config(samples, 20))
    assert said == [
        "10 of 20 rounds are stored, but their last state was not kept (--keep-models final keeps it): "
        "the run starts at round 0"
    ]
    assert computed(store, config(samples, 30, seed=1))[1] == []


def test_recomputing_starts_at_round_0(samples: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    computed(store, config(samples, 10), keep_models="final")
    computed(store, config(samples, 20))
    assert computed(store, config(samples, 20), recompute=True)[1] == []

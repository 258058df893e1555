"""Suspects of a stored run: who was cut, beside the truth of its config, drawn on the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.store import open_store
from byzmesh.sweeps.forensics import grade, suspects
from byzmesh.sweeps.sweep import sweep
from tests.simulation.small import config, write_data


def test_suspects_of_a_stored_run(tmp_path: Path) -> None:
    data = write_data(tmp_path)
    raw = [
        config(data, attack=attack, rule=rule, rounds=24)
        for attack, rule in (("gaussian", "ios"), ("none", "ios"), ("alie", "tm"))
    ]
    outcome = sweep([resolve(one) for one in raw], tmp_path / "runs.db", workers=1)
    attacked, calm, median = outcome.statuses
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        found = suspects(store, attacked, tmp_path / "cuts.png")
        assert found.named == (7, 9)
        assert found.precision == found.recall == found.caught == 1.0 and found.mistaken == ()
        assert (tmp_path / "cuts.png").stat().st_size > 5000
        nobody = suspects(store, calm)
        assert nobody.precision is nobody.recall is None and len(nobody.network) == 10
        grades = grade(store, outcome.statuses)
        assert (grades.runs, grades.naming, grades.framing, grades.named, grades.right, grades.liars) == (
            1,
            1,
            0,
            2,
            2,
            2,
        )
        assert grades.precision == grades.recall == 1.0
        assert grades.framing_at_most == pytest.approx(0.793, abs=1e-3)
        with pytest.raises(ConfigError, match="no cut counts"):
            suspects(store, median)

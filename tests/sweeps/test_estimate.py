"""How long a sweep will take."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.config.cell import Cell, make_cell
from byzmesh.config.grid import expand, read_grid
from byzmesh.sweeps.estimate import Planned, plan, total_seconds


def test_estimates_grow_with_rounds_and_evaluations(filled: Path) -> None:
    point = read_grid(filled / "grid.yaml")[0]
    short, long, often = (
        make_cell({**point.config, "rounds": rounds, "evaluate_every": every})
        for rounds, every in ((1000, 1000), (100_000, 100_000), (1000, 1))
    )
    a, b, c = (run.seconds or 0.0 for run in plan([short, long, often]))
    assert a > 0.0
    assert 20 * a < b
    assert c > a


def test_a_plan_of_many_classes_times_some_and_checks_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byzmesh.sweeps.estimate.BUDGET", 0.0)
    raw = {
        "base": {"problem": "quadratic", "network": {"name": "complete", "n": 5}, "attack": "none", "rounds": 10},
        "axes": {"rule": ["IOS", "FABA", {"name": "TriMean"}], "f": [1, 3]},
    }
    told: list[str] = []
    first, *rest = plan(expand(raw), tell=told.append)
    assert told[-1] == "timing a few rounds of each kind of run: 5 of 6 runs planned"
    assert first.seconds and all(run.seconds == first.seconds for run in rest if run.problem is None)
    refused = {run.cell.config["rule"]["name"]: run.problem for run in rest if run.problem is not None}
    assert "f = 3 is infeasible for rule TriMean" in refused["TriMean"]
    assert sum(run.cell.config["f"] == 1 for run in rest if run.problem is None) == 2


def test_the_total_is_shared_work_but_no_less_than_the_longest_run() -> None:
    cell = Cell(config={}, code={}, key="x", labels={})
    runs = [Planned(cell=cell, status="planned", seconds=seconds) for seconds in (1.0, 2.0, 9.0, None)]
    assert total_seconds(runs, 1) == 12.0
    assert total_seconds(runs, 4) == 9.0

"""`byzmesh sweep --plan`: what it prints."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import as_json, run
from tests.cli.test_runs import STATUSES


def test_a_plan_lists_all_runs_with_status_and_time_and_writes_nothing(filled: Path, tmp_path: Path) -> None:
    rows = as_json("sweep", filled / "grid.yaml", "--plan", "--store", filled / "runs.db")
    assert [row["status"] for row in rows] == STATUSES
    assert [row["seconds"] for row in rows[:5]] == [0.0] * 5
    assert rows[5]["seconds"] is None and "infeasible" in rows[5]["problem"]
    fresh = as_json("sweep", filled / "grid.yaml", "--plan", "--store", tmp_path / "new.db")
    assert [row["status"] for row in fresh] == ["planned"] * 6
    assert [row["labels"] for row in fresh][:2] == [{"case": "good", "seed": 0}, {"case": "good", "seed": 1}]
    assert all(row["seconds"] > 0 for row in fresh[:4])
    assert not (tmp_path / "new.db").exists()
    shown = run("sweep", filled / "grid.yaml", "--plan", "--store", tmp_path / "new.db", "--workers", 2).stdout
    assert "6 runs, 6 to compute" in shown and "cannot run" in shown and "on 2 processes" in shown

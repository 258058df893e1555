"""`byzmesh sweep --plan`: what it prints."""

from __future__ import annotations

from pathlib import Path

import yaml

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


def test_a_baseline_without_liars_is_announced(tmp_path: Path) -> None:
    base = {"problem": "quadratic", "network": {"name": "complete", "n": 5}, "rounds": 2}
    axes = {"attack": ["alie", "zero"], "network.byzantine": [0, 1]}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump({"base": base, "axes": axes}))
    words = ("sweep", tmp_path / "grid.yaml", "--store", tmp_path / "runs.db", "--workers", 0)
    for done in (run(*words, "--plan"), run(*words)):
        assert done.exit_code == 0, done.output
        assert "1 of 3 runs: nobody lies: run with attack none" in done.stderr
    assert "3 runs, 3 to compute" in run(*words[:-4], "--store", tmp_path / "new.db", "--workers", 0, "--plan").stdout
    shown = as_json("runs", "list", "--store", tmp_path / "runs.db")
    assert [row["config"]["attack"]["name"] for row in shown] == ["none", "ALIE", "zero"]

"""`byzmesh arena`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzmesh.studies.arena.grid import Selection, bouts
from byzmesh.studies.paper.cells import configs
from byzmesh.sweeps.sweep import sweep
from tests.cli.commands import run


def test_arena_shows_what_the_store_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = bouts(Selection(rules=("Reprieve",), attacks=("alie",), rounds=2))
    assert sweep(configs(cells), tmp_path / "runs.db", workers=0).computed == 1
    chosen = ("--rules", "Reprieve", "--attacks", "alie", "--rounds", "2", "--store", "runs.db", "--out", "out")
    shown = run("arena", "--no-run", *chosen)
    assert shown.exit_code == 0, shown.output
    assert "Leaderboard" in shown.stdout and "Reprieve" in shown.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "leaderboard.md",
        "leaderboard.tex",
        "arena.csv",
        "report.html",
    }


def test_the_command_explains_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would be broken over two lines
    wrong = run("arena", "tables", "--against", "missing.csv")
    assert wrong.exit_code == 2 and "missing.csv" in wrong.stderr

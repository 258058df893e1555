"""Leaderboards and what an arena writes, from made-up results."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import ConfigError
from byzmesh.reports.text_table import to_markdown
from byzmesh.store import open_store
from byzmesh.studies.arena.report import (
    COLUMNS,
    accuracy_grid,
    best_of,
    compare_columns,
    disagreement_grid,
    in_columns,
    leaderboard,
    leaderboard_grid,
    values_of,
    write_arena,
    write_columns,
)
from byzmesh.studies.readings import Reading, collect
from tests.studies.paper.stores import made_up


def reading(rule: str, attack: str, accuracy: float, **more: Any) -> Reading:
    known: dict[str, Any] = {"target": "table-3", "seed": 0, "rounds": 50_000, "disagreement": 1e-5, **more}
    return Reading(rule=rule, attack=attack, accuracy=accuracy, **known)


READINGS = [
    reading("Ours", "alie", 91.0),
    reading("Ours", "alie", 90.0, seed=1),
    reading("Ours", "isolation", 91.5),
    reading("IOS", "alie", 82.8, disagreement=3e-5),
    reading("IOS", "isolation", 91.6),
    reading("CC", "alie", 91.2),
    reading("CC", "isolation", math.nan, status="diverged"),
    reading("Krum", "alie", math.nan, status="failed"),
]


def test_values_are_means_over_seeds_and_a_diverged_run_counts_nothing() -> None:
    values = values_of(READINGS)
    assert values["Ours", "table-3, alie"] == pytest.approx(90.5)
    assert values["CC", "table-3, isolation"] == 0.0
    assert not any(rule == "Krum" for rule, _ in values), "a failed run is no result"
    assert best_of(values) == {"table-3, alie": ("CC", 91.2), "table-3, isolation": ("IOS", 91.6)}


def test_the_leaderboard_ranks_by_worst_regret() -> None:
    board = leaderboard(values_of(READINGS))
    assert [score.rule for score in board] == ["Ours", "IOS", "CC"]
    ours, ios, cc = board
    assert (ours.regret, ours.worst) == pytest.approx((0.7, 90.5)) and ours.regret_column == "table-3, alie"
    assert ios.regret == pytest.approx(8.4) and ios.worst_column == "table-3, alie"
    assert (cc.worst, cc.columns) == (0.0, 2)
    text = to_markdown(leaderboard_grid(board))
    assert "| Ours | 0.70 (table-3, alie) | 90.50 (table-3, alie) | 2 |" in text


def test_grids_show_every_column_once() -> None:
    grid = accuracy_grid(values_of(READINGS))
    assert grid.columns == ("Ours", "IOS", "CC") and [row for row, _ in grid.rows] == [
        "table-3, alie",
        "table-3, isolation",
    ]
    tones = [[cell.tone for cell in cells] for _, cells in grid.rows]
    assert tones == [["", "", "same"], ["same", "same", ""]]
    assert "3.0e-05" in to_markdown(disagreement_grid(READINGS))


def test_columns_file(tmp_path: Path) -> None:
    ours = [r for r in READINGS if r.rule == "Ours"]
    theirs = [r for r in READINGS if r.rule != "Ours"]
    lines = compare_columns(ours, theirs)
    path = write_columns(tmp_path / "columns.csv", lines)
    with path.open() as file:
        found = list(csv.reader(file))
    assert found == [
        list(COLUMNS),
        ["table-3", "alie", "CC", "91.20", "90.50", "0.70"],
        ["table-3", "isolation", "IOS", "91.60", "91.50", "0.10"],
    ]
    with pytest.raises(ConfigError, match="has no column 'table-3, isolation'"):
        compare_columns(ours, theirs[:1])


def test_an_arena_leaves_its_files(tmp_path: Path) -> None:
    entries = made_up(tmp_path / "runs.db", "table-3", rules=("IOS", "FABA", "DRSA"))
    entries = [entry for entry in entries if entry.labels["attack"] != "none"]
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        readings = collect(store, entries)
        ours = [r for r in readings if r.rule == "IOS"]
        lines = compare_columns(ours, readings)
        written = write_arena(store, readings, tmp_path / "out", lines)
    assert [path.name for path in written] == [
        "leaderboard.md",
        "leaderboard.tex",
        "arena.csv",
        "columns.csv",
        "report.html",
    ]
    html = (tmp_path / "out" / "report.html").read_text()
    assert "Leaderboard" in html and "FABA" in html and "within 0.5 points" in html
    assert (tmp_path / "out" / "arena.csv").read_text().count("\n") == 1 + len(readings)


def test_an_empty_arena_does_not_crash(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        written = write_arena(store, [reading("IOS", "alie", math.nan, status="not run")], tmp_path / "out")
    assert written[-1].name == "report.html"


def test_a_rule_is_ranked_against_the_reproduction_and_not_against_itself() -> None:
    """Regret 0.00 of a rule alone was the mistake; runs with other rounds are no rivals."""
    ours = [reading for reading in READINGS if reading.rule == "Ours"]
    others = [reading for reading in READINGS if reading.rule in ("IOS", "CC")]
    alone = leaderboard_grid(leaderboard(values_of(ours)))
    assert alone.rows[0][1][0].text == "" and "alone has no regret" in alone.note
    board = leaderboard(values_of(in_columns(ours, others)))
    assert (board[0].rule, round(board[0].regret, 2), len(board)) == ("Ours", 0.7, 3)
    short = [replace(reading, rounds=1_000) for reading in ours]
    assert {one.rule for one in in_columns(short, others)} == {"Ours"}

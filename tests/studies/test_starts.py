"""The study of starts: rows, intervals, and cells that are not whole."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from byzmesh.studies.seeds import over_seeds
from byzmesh.studies.starts import COLUMNS, draw, rows_of, table

REPORT = Path(__file__).parents[2] / "reports/starts"


def config(seed: int, start: str = "zero") -> dict[str, Any]:
    problem = {"name": "softmax", "init": start, "partition": {"name": "dirichlet", "alpha": 0.3}}
    network, attack = {"name": "paper/er-12"}, {"name": "reflection", "reference": "start"}
    return {"network": network, "attack": attack, "rule": {"name": "IOS"}, "problem": problem, "seed": seed}


def test_a_cell_with_all_seeds_has_an_interval_and_others_do_not(tmp_path: Path) -> None:
    rows = rows_of([(config(0), 0.4), (config(1), 0.6), (config(0, "normal"), 0.9)])
    told = over_seeds(rows, COLUMNS[:5], seeds=2)
    whole = told["er-12", "reflection (start)", "IOS", "zero", "Dirichlet(0.3)"]
    assert whole[0] == 50.0 and math.isclose(whole[1], 12.706 * 10.0, rel_tol=1e-3)
    text = table(told)
    assert "| IOS | all at zero |  |  | 50.0 ± 127.1 |  |" in text
    assert "| IOS | published |  |  | (90.0) |  |" in text
    assert draw(told, tmp_path / "figure.png").stat().st_size > 1000


def test_the_tables_are_those_of_the_committed_runs() -> None:
    with (REPORT / "runs.csv").open(encoding="utf-8") as file:
        rows = [{**row, "accuracy": float(row["accuracy"])} for row in csv.DictReader(file)]
    assert table(over_seeds(rows, COLUMNS[:5], seeds=5)) + "\n" == (REPORT / "tables.md").read_text(encoding="utf-8")

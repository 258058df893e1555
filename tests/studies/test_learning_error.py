"""The study of the learning error: its plan, a small run of it, and that the committed tables follow from the runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from byzmesh.config.yaml import read_yaml
from byzmesh.studies.learning_error import cells, exponent, main, points, report

FOLDER = Path(__file__).parents[2] / "reports" / "learning-error"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The runs of a study as it wrote them."""
    with (folder / "runs.csv").open() as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row |= {name: float(row[name]) for name in ("x", "error", "rho", "chi2")}
        row |= {name: int(row[name]) for name in ("seed", "honest")}
    return rows


def small() -> dict[str, Any]:
    """The committed plan with fewer and shorter runs."""
    plan = read_yaml(FOLDER / "plan.yaml")
    base = {**plan["base"], "rounds": 400, "step": 0.05}
    methods = {name: plan["noise"]["methods"][name] for name in ("SGD", "L-SVRG")}
    noise = {**plan["noise"], "attacks": ["min-max"], "delta_in": [0.5, 2.0], "methods": methods}
    liars = {**plan["liars"], "attacks": ["min-max"], "counts": [1, 3], "sizes": [[10, 2]]}
    mixing = {**plan["mixing"], "uneven": [0.4, 0.8]}
    return {**plan, "seeds": [100, 101], "base": base, "noise": noise, "liars": liars, "mixing": mixing}


def test_the_plan_covers_every_method_and_attack() -> None:
    plan = read_yaml(FOLDER / "plan.yaml")
    made = list(cells(plan))
    assert len(made) == 4 * 2 * 6 + 2 * (4 + 3) + 4
    assert len(plan["seeds"]) >= 5
    assert {cell.series for cell in made if cell.panel.startswith("noise")} == {
        *plan["noise"]["methods"],
        "SGD, nobody lies",
    }


def test_a_small_study(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(small()))
    assert main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"plan.yaml", "runs.csv", "tables.md", "figure.png"}
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    rows = rows_of(tmp_path)
    told = {(point.panel, point.series, point.x): point for point in points(rows)}
    assert len(told) == 2 * 3 + 2 + 1 + 2
    loud = told["noise, min-max", "SGD", 2.0].mean
    assert loud > 4.0 * told["noise, min-max", "SGD", 0.5].mean
    quiet = [told["noise, min-max", "L-SVRG", delta].mean for delta in (0.5, 2.0)]
    assert quiet[0] == pytest.approx(quiet[1], rel=1e-6), "without noise, delta_out is left, whatever delta_in"
    assert quiet[1] < 0.1 * loud
    even, uneven = (told["mixing", "WeiMean, nobody lies", x].excess for x in (0.4, 0.8))
    assert uneven == pytest.approx(4.0 * even, rel=0.2)
    assert exponent(rows, "liars", "min-max, N = 10")[0] > 0.0


def test_the_committed_tables_follow_from_the_committed_runs() -> None:
    rows, plan = rows_of(FOLDER), read_yaml(FOLDER / "plan.yaml")
    assert len(rows) == len(list(cells(plan))) * len(plan["seeds"])
    assert (FOLDER / "tables.md").read_text().startswith(report(points(rows)))

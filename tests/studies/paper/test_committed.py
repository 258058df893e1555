"""What README.md and reports/paper say follows from the committed results."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from byzmesh.reports.text_table import to_markdown
from byzmesh.studies.paper.agreement import compare, count
from byzmesh.studies.paper.published import outside
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.results import read_results
from byzmesh.studies.paper.tables import START, claims_grid
from byzmesh.studies.readings import FORMS, Reading
from byzmesh.studies.seeds import over_seeds, shown

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "reports" / "paper"


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return read_results(PAPER / "results.csv")


def test_report_readme(readings: list[Reading]) -> None:
    others = read_results(PAPER / "seeds.csv") + read_results(PAPER / "outside.csv")
    notes = (PAPER / "notes.md").read_text("utf-8")
    assert readme(readings + others, notes) == (PAPER / "README.md").read_text("utf-8")


def test_every_cell_from_outside_is_committed() -> None:
    cells = read_results(PAPER / "outside.csv")
    assert {(cell.variant, cell.attack) for cell in cells} == set(outside())
    assert all(cell.rounds == 50_000 for cell in cells if cell.status == "finished")


def rows_of(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_claims_are_those_of_the_committed_runs_and_of_the_study_of_starts() -> None:
    told = []
    for row in rows_of(PAPER / "claims.csv"):
        numbers: dict[str, Any] = {name: float(row.pop(name) or "nan") for name in FORMS if name in row}
        told.append(Reading(**{**row, "rounds": int(row["rounds"]), "seed": int(row["seed"])}, **numbers))
    assert to_markdown(claims_grid(told)).strip() == (PAPER / "claims.md").read_text("utf-8").strip()
    runs = [{**row, "accuracy": float(row["accuracy"])} for row in rows_of(ROOT / "reports/starts/runs.csv")]
    cells = over_seeds(runs, ("network", "attack", "rule", "start", "data"), seeds=5)
    for network, start in (("two-castle", "normal"), ("two-castle", "zero"), ("er-12", "normal"), ("er-12", "zero")):
        said = shown(cells[network, "sign-flipping", "IOS", start, "one class"])
        assert said in START, (network, start, said)
    for name in ("claims.tex", "report.html"):
        assert "five seeds: 81.1 " in (PAPER / name).read_text("utf-8")


def test_counts_in_the_readme(readings: list[Reading]) -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    counts = count(compare(readings))
    said = re.search(
        r"all (\d+) published cells, ours beside theirs. Of the (\d+) published above 80%, (\d+) agree within 0.5 "
        r"points and all within 1.0; all (\d+) published below 60% are below 60% here",
        text,
    )
    assert said is not None
    assert [int(number) for number in said.groups()] == [
        len(readings),
        counts.stable,
        counts.stable_close,
        counts.collapsed,
    ]
    assert counts.stable_near == counts.stable
    assert counts.collapsed_same == counts.collapsed

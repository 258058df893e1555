"""What README.md and reports/paper say follows from the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from byzmesh.studies.paper.agreement import compare, count
from byzmesh.studies.paper.published import outside
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.results import read_results
from byzmesh.studies.readings import Reading

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

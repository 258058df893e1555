"""What README.md and reports/paper say follows from the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from byzmesh.studies.paper.agreement import compare, count
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.results import Reading, read_results

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "reports" / "paper"


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return read_results(PAPER / "results.csv")


def test_report_readme(readings: list[Reading]) -> None:
    others = read_results(PAPER / "seeds.csv")
    notes = (PAPER / "notes.md").read_text("utf-8")
    assert readme(readings + others, notes) == (PAPER / "README.md").read_text("utf-8")


def test_counts_in_the_readme(readings: list[Reading]) -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    counts = count(compare(readings))
    said = re.search(
        r"All (\d+) published cells were computed. Of (\d+) cells with a published accuracy above 80%, (\d+) agree "
        r"within 0.5 points and (\d+) within 1.0; all (\d+) cells published below 60% are below 60% here",
        text,
    )
    assert said is not None
    assert [int(number) for number in said.groups()] == [
        len(readings),
        counts.stable,
        counts.stable_close,
        counts.stable_near,
        counts.collapsed,
    ]
    assert counts.collapsed_same == counts.collapsed


def test_table_3_in_the_readme(readings: list[Reading]) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for rule in ("WeiMean", "CooMed", "GeoMed", "Krum", "TriMean", "SimRew", "DRSA", "CC", "SCC", "FABA", "IOS"):
        cells = [cell for cell in compare(readings) if cell.reading.target == "table-3" and cell.reading.rule == rule]
        shown = (f"{cell.reading.accuracy:.2f} ({cell.theirs.accuracy:.2f})" for cell in cells)
        assert f"| {rule} | {' | '.join(shown)} |" in text

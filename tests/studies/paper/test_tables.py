"""The paper's tables and its README as they are written (golden files: tests/golden.py)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import DataError
from byzmesh.reports.text_table import GridCell, to_latex, to_markdown
from byzmesh.store import open_store
from byzmesh.studies.paper import table1_grid
from byzmesh.studies.paper import tables as paper_tables
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.results import COLUMNS, other_seeds, read_results, write_results
from byzmesh.studies.readings import Reading, collect, labels_of
from tests.golden import check, terminal
from tests.studies.paper.stores import made_up

GOLDEN = Path(__file__).parent / "golden"

RULES = ("NoComm", "WeiMean", "GeoMed", "Krum", "SimRew", "DRSA", "IOS")


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    path = tmp_path_factory.mktemp("readings") / "runs.db"
    entries = made_up(path, rules=RULES)
    with open_store(path, readonly=True) as opened:
        return collect(opened, entries)


def test_accuracy_table(readings: list[Reading]) -> None:
    grid = paper_tables.accuracy_grid("table-3", readings)
    check(GOLDEN / "table-3.md", to_markdown(grid))
    check(GOLDEN / "table-3.tex", to_latex(grid))
    check(GOLDEN / "table-3.txt", terminal(grid))


def test_consensus_error_table(readings: list[Reading]) -> None:
    check(GOLDEN / "table-3-ce.md", to_markdown(paper_tables.error_grid("table-3", readings)))


def test_cells_from_outside(tmp_path: Path) -> None:
    entries = made_up(tmp_path / "runs.db", "outside")
    with open_store(tmp_path / "runs.db", readonly=True) as opened:
        accuracy, error = paper_tables.outside_grids(collect(opened, entries))
    assert [row for row, _ in accuracy.rows] == [f"{liars} liars" for liars in (2, 4, 6, 8, 10)]
    assert accuracy.columns == ("alie", "gaussian", "isolation", "sample-duplicating", "sign-flipping")
    assert accuracy.rows[0][1][1].text == "91.80" and accuracy.rows[0][1][1].detail == "pub. 91.68, +0.12"
    assert error.rows[-1][1][2].detail == "pub. 4e+91, H 2e+93"


def test_the_readme_lists_cells_from_outside_that_differ(tmp_path: Path, readings: list[Reading]) -> None:
    def cell(liars: int, attack: str, accuracy: float, error: float, status: str = "finished") -> Reading:
        labels = labels_of("outside", "IOS", attack, f"{liars} liars")
        return Reading(
            **labels, seed=0, rounds=50_000, accuracy=accuracy, consensus_error=error, disagreement=1.0, status=status
        )

    ours = [
        cell(2, "alie", 89.49, 4.6e-08),  # published 89.09
        cell(6, "alie", 65.0, 2.3e-07),  # published 66.4
        cell(8, "isolation", 67.69, 3.5e-02),  # the same accuracy, another CE
        cell(10, "isolation", math.nan, math.nan, "diverged"),  # published 8.92, CE 3.8e+91
    ]
    again = read_results(write_results(tmp_path / "outside.csv", ours))
    assert [(r.place, r.variant, r.status) for r in again] == [(r.place, r.variant, r.status) for r in ours]
    text = readme(readings + again)
    assert [line for line in text.partition("## From outside")[2].splitlines() if line[2:3].isdigit()] == [
        "| 6 | alie | 66.40 | 65.00 | -1.400 | between | 2e-07 | 2.3e-07 |",
        "| 8 | isolation | 67.69 | 67.69 | +0.000 | between | 3e-05 | 3.5e-02 |",
        "| 10 | isolation | 8.92 | diverged |  | both collapsed | 4e+91 |  |",
    ]
    counts = next(line for line in text.splitlines() if line.startswith("| from outside")).split(" | ")
    assert counts[1:4] == ["4", "2 (50%)", "2 (50%)"] and counts[7:9] == ["1", "1 (100%)"]
    assert text.count("isolation |") > 3 and "Cells without a number" not in text.partition("## From outside")[2]


def test_readme(readings: list[Reading]) -> None:
    check(GOLDEN / "README.md", readme(readings, "## Why\n\nBecause.\n"))


def test_other_seeds_that_the_store_holds_stand_beside_the_first(tmp_path: Path) -> None:
    entries = made_up(tmp_path / "runs.db", rules=("WeiMean", "Krum"), seeds=3)
    with open_store(tmp_path / "runs.db", readonly=True) as opened:
        every = collect(opened, entries)
        first = [reading for reading in every if reading.seed == 0]
        beside = other_seeds(opened, first)
        assert other_seeds(opened, every) == []
    finished = [reading for reading in every if reading.seed > 0 and reading.status == "finished"]
    assert sorted(beside, key=lambda reading: (reading.seed, *reading.place)) == sorted(
        finished, key=lambda reading: (reading.seed, *reading.place)
    )
    line = next(line for line in readme(first + beside).splitlines() if "| Krum | none |" in line)
    want = ", ".join(f"{r.accuracy:.2f}" for r in beside if (r.rule, r.attack) == ("Krum", "none"))
    assert line.endswith(f"| {want} |") and "," in want


def test_results_file(readings: list[Reading], tmp_path: Path) -> None:
    path = write_results(tmp_path / "results.csv", readings)
    check(GOLDEN / "results.csv", path.read_text("utf-8"))
    assert path.read_text("utf-8").startswith(
        "table,rule,attack,published_accuracy,accuracy,published_consensus_error,consensus_error,disagreement,"
        "rounds,seed\n"
    )
    again = read_results(path)
    assert [reading.place for reading in again] == [reading.place for reading in readings]
    for one, other in zip(again, readings):
        assert one.accuracy == pytest.approx(other.accuracy, abs=1e-4, nan_ok=True)
        assert one.consensus_error == pytest.approx(other.consensus_error, rel=1e-4, nan_ok=True)
    for word in ("diverged", "failed", "planned"):
        assert f": {word}\n" in readme(readings)
    assert readme(again).count(": not finished\n") == 2 and readme(again).count(": diverged\n") == 1
    assert readme(again).split("## Cells that")[1:] == readme(readings).split("## Cells that")[1:]


def test_results_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="its columns must be table,rule"):
        read_results(path)
    assert len(COLUMNS) == 10


def test_misjudged_and_figure_4_tables() -> None:
    def reading(target: str, variant: str, accuracy: float, **more: Any) -> Reading:
        numbers: dict[str, Any] = {"accuracy": accuracy, "consensus_error": 1e-6, "disagreement": 1e-5}
        return Reading(
            target=target, rule="IOS", attack="alie", variant=variant, seed=0, rounds=50_000, **numbers, **more
        )

    misjudged = [
        reading("misjudged-f", "octopus, f - 1", 40.0),
        reading("misjudged-f", "octopus, exact", 89.5),
        reading("misjudged-f", "octopus, f + 1", float("nan"), status="failed", failure_kind="infeasible"),
        reading("misjudged-f", "octopus, max", 89.2),
    ]
    (grid,) = paper_tables.misjudged_grids(misjudged)
    check(GOLDEN / "misjudged-f.md", to_markdown(grid))
    assert [cell.tone for cell in grid.rows[0][1]] == ["far-below", "same", "infeasible", "same"]
    figure = paper_tables.figure_4_grid([reading("figure-4", "2 liars", 90.0), reading("figure-4", "10 liars", 12.0)])
    check(GOLDEN / "figure-4.md", to_markdown(figure))


def test_table_1() -> None:
    from byzmesh.studies.paper.table1 import table_1

    rows = table_1(10, [0, 1], budget=200)
    grid = table1_grid.table_1_grid(rows)
    assert grid.columns == ("published rho", "mu = 0.000", "mu = 0.100", "RCA", "RDSA")
    by_rule = dict(grid.rows)
    assert list(by_rule) == [row.rule for row in rows]
    assert by_rule["IOS"][-1] == GridCell("proved", "pub. yes", tip=rows[-1].rdsa.reason, tone="same")
    assert by_rule["CooMed"][-2].text == "refuted"
    reasons = table1_grid.table_1_reasons(rows)
    assert rows[0].rca.reason in to_markdown(reasons)

"""The tables of the studies of privacy and of unequal sites, from runs that were made up."""

from __future__ import annotations

from pathlib import Path

from byzmesh.config.grid import read_grid
from byzmesh.studies.messages import COLUMNS, SEEDS, draw, rows_of, table
from byzmesh.studies.seeds import over_seeds

REPORTS = Path(__file__).parents[2] / "reports"


def test_every_run_of_the_plans_has_a_place_of_its_own(tmp_path: Path) -> None:
    for name, groups, columns in (("private", 2, 6), ("unequal", 2, 4)):
        cells = read_grid(REPORTS / name / "plan.yaml")
        rows = rows_of((cell.config, 0.5 + cell.config["seed"] / 100) for cell in cells)
        told = over_seeds(rows, COLUMNS[:3], SEEDS)
        assert len(told) * 5 == len(cells), "five seeds each"
        assert {round(mean, 6) for mean, _ in told.values()} == {52.0}
        assert len({cell[0] for cell in told}) == groups and len({cell[2] for cell in told}) == columns
        assert "52.0 ± 2.0" in table(told)
        few = over_seeds(rows[:-1], COLUMNS[:3], SEEDS)
        assert "(51.5)" in table(few), "of four seeds"
        assert draw(told, tmp_path / f"{name}.png").stat().st_size > 10_000

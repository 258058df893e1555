"""The study of starts: rows, intervals, and cells that are not whole."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.studies import starts
from byzmesh.studies.seeds import over_seeds
from byzmesh.studies.starts import COLUMNS, draw, rows_of, table

REPORT = Path(__file__).parents[2] / "reports/starts"
LIES = ("sign-flipping", "reflection (start)", "reflection (average)")


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


def test_runs_that_the_store_has_not_are_kept_and_those_that_it_has_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = "base: {network: paper/er-12, attack: sign-flipping, problem: softmax}\naxes: {seed: [0, 1, 2]}\n"
    (tmp_path / "plan.yaml").write_text(plan)
    monkeypatch.setattr(starts, "FIGURES", {"plan.yaml": "figure.png"})
    keys = [cell.key for cell in read_grid(tmp_path / "plan.yaml")]

    def accuracies(finished: dict[str, float]) -> list[str]:
        records = [SimpleNamespace(key=key, final={"accuracy": value}) for key, value in finished.items()]
        monkeypatch.setattr(starts, "open_store", lambda *_, **__: SimpleNamespace(list=lambda status: records))
        assert starts.main([str(tmp_path), "runs.db"]) == 0
        return [line.rpartition(",")[2] for line in (tmp_path / "runs.csv").read_text().splitlines()[1:]]

    assert accuracies({keys[0]: 0.25, keys[1]: 0.5}) == ["25.0", "50.0"], "the third has not run"
    assert accuracies({keys[1]: 0.75, keys[2]: 1.0}) == ["25.0", "75.0", "100.0"]
    assert (tmp_path / "figure.png").stat().st_size > 1000


def committed() -> list[dict[str, Any]]:
    with (REPORT / "runs.csv").open(encoding="utf-8") as file:
        return [{**row, "accuracy": float(row["accuracy"])} for row in csv.DictReader(file)]


def test_the_tables_are_those_of_the_committed_runs() -> None:
    rows = committed()
    assert table(over_seeds(rows, COLUMNS[:5], seeds=5)) + "\n" == (REPORT / "tables.md").read_text(encoding="utf-8")


def test_the_report_states_numbers_of_the_tables() -> None:
    tables = (REPORT / "tables.md").read_text(encoding="utf-8")
    told = re.findall(r"\d+\.\d ± \d+\.\d", (REPORT / "README.md").read_text(encoding="utf-8"))
    assert len(told) > 50 and [number for number in told if number not in tables] == []


@pytest.mark.parametrize("mutant", [0.0, 1.0])
def test_the_report_states_the_worst_of_three_lies(mutant: float) -> None:
    """Zero, one random point, published: the lowest mean over two graphs and three lies."""
    told = over_seeds(committed(), COLUMNS[:5], seeds=5)
    text = (REPORT / "README.md").read_text(encoding="utf-8").partition("| worst of three")[2].partition("\n\n")[0]
    heads, _, *lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines()]
    wrong = 0
    for rule, *cells in lines:
        for split, cell in zip(heads[1:], cells, strict=True):
            worst = [
                min(told[net, lie, rule, start, split][0] for net in ("two-castle", "er-12") for lie in LIES) + mutant
                for start in ("zero", "common", "normal")
            ]
            wrong += cell != " / ".join(f"{value:.1f}" for value in worst)
    assert len(lines) == 6 and wrong == (24 if mutant else 0)

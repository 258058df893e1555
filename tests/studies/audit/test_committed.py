"""The worst cases that reports/audit states are those of its committed runs."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

REPORT = Path(__file__).parents[3] / "reports/audit"
ADVICE = REPORT.parents[1] / "docs/recommendation.md"
COLUMNS = {
    "torus": "torus-three-classes",
    "random geometric": "geometric-dirichlet",
    "two worlds": "two-worlds-shards",
    "complete": "complete-dirichlet",
    "scale-free": "scale-free-shards",
    "dumbbell": "dumbbell-dirichlet",
    "7-regular": "regular-dirichlet",
    "small world": "small-world-shards",
    "ring of 16": "circulant-dirichlet",
    "hypercube": "hypercube-shards",
    "random graph": "erdos-dirichlet",
    "three groups": "tripartite-shards",
}
"""How a column's name begins in docs/recommendation.md -> its file."""
T = 2.7764451051977987
"""Student's t at 97.5% with four degrees of freedom, from a table."""


def worst_cases(rows: list[dict[str, str]]) -> dict[tuple[str, str], str]:
    """(column, row) -> the lowest mean over five seeds as the report writes it."""
    groups: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["stage"] == "4" and row["lie"] != "nobody lies":
            groups[row["column"], row["row"]][row["lie"], row["start"]].append(float(row["accuracy"]))
    told = {}
    for name, cases in groups.items():
        values = min(cases.values(), key=np.mean)
        assert len(values) == 5
        told[name] = f"{np.mean(values):.1f} ± {T * np.std(values, ddof=1) / math.sqrt(5):.1f}"
    return told


def stated(text: str) -> dict[str, list[str]]:
    """Row -> the cells of the tables that begin with it, without what is in brackets."""
    cells: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("| ") and "±" in line:
            name, *values = [part.strip() for part in line.strip("|").split("|")]
            cells[name] += [value.split(" (")[0] for value in values]
    return cells


def column(title: str) -> str:
    """The file of a column; empty if the title is of something else."""
    return next((file for name, file in COLUMNS.items() if title.startswith(name)), "")


def advised(text: str) -> list[tuple[str, str, str]]:
    """(column, row, worst case) of every cell of the tables of docs/recommendation.md, the networks below or beside."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        (corner, *heads), _, *lines = [
            [part.strip() for part in line.strip("|").split("|")] for line in table.splitlines()
        ]
        for first, *cells in lines:
            if heads[0] == "worst case":
                found.append((column(first), corner.split(",")[0], cells[0]))
                continue
            rows = [first] if "momentum" in first else first.split(", ")
            found += [(column(head), row, cell.strip("*")) for head, cell in zip(heads, cells) for row in rows]
    return [one for one in found if one[0] and one[2]]


@pytest.mark.parametrize("mutant", [False, True])
def test_the_advice_states_the_worst_cases_of_the_runs(mutant: bool) -> None:
    with (REPORT / "worst-cases.csv").open(encoding="utf-8") as file:
        true = worst_cases(list(csv.DictReader(file)))
    text = ADVICE.read_text(encoding="utf-8")
    if mutant:  # a cell of each table is of another run
        text = text.replace("| 8.7 ± 4.3 |", "| 9.7 ± 4.3 |").replace("| 68.7 ± 1.1 |", "| 69.7 ± 1.1 |")
    told = advised(text)
    assert {name for name, _, _ in told} == set(COLUMNS.values()) and len(told) >= 85
    wrong = {(name, row): cell for name, row, cell in told if true.get((name, row)) != cell}
    expected = {("geometric-dirichlet", "IOS"): "9.7 ± 4.3", ("dumbbell-dirichlet", "Leash"): "69.7 ± 1.1"}
    assert wrong == (expected if mutant else {})


@pytest.mark.parametrize("mutant", [False, True])
@pytest.mark.parametrize("runs", ["worst-cases.csv", "plan.csv"])
def test_the_report_states_the_worst_cases_of_its_runs(runs: str, mutant: bool) -> None:
    with (REPORT / runs).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if mutant:  # one run of the last stage ended otherwise
        last = next(row for row in rows if row["stage"] == "4")
        last["accuracy"] = str(float(last["accuracy"]) + 3.0)
    table = stated((REPORT / "README.md").read_text(encoding="utf-8"))
    wrong = [name for name, value in worst_cases(rows).items() if value not in table[name[1]]]
    assert bool(wrong) == mutant, wrong


def test_the_report_states_what_caution_costs() -> None:
    """The last column of the frontier: the committed runs, digit for digit."""
    lines = (REPORT / "README.md").read_text(encoding="utf-8").splitlines()
    with (REPORT / "caution.csv").open(encoding="utf-8") as file:
        runs = {row["rule"]: f"{float(row['accuracy']):.2f}" for row in csv.DictReader(file)}
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.count("|") == 7]
    told = {row[0]: row[-1] for row in rows}
    shared = told.keys() & runs.keys()
    assert len(shared) >= 8 and {name: told[name] for name in shared} == {name: runs[name] for name in shared}

"""Tables of docs/recommendation.md and reports/audit/README.md that are written by hand state the committed runs."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "reports/audit"
T = 2.7764451051977987
"""Student's t at 97.5% with four degrees of freedom, from a table."""


def runs(name: str) -> list[dict[str, str]]:
    with (REPORT / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(page: Path, head: str) -> list[list[str]]:
    """The cells of the table whose first line begins with `head`, below that line."""
    text = page.read_text(encoding="utf-8")
    lines = text[text.index(f"| {head} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[part.strip() for part in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("mutant", [0.0, 1.0])
def test_what_tolerable_costs(mutant: float) -> None:
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, more in (("f.csv", ""), ("f-momentum.csv", ", momentum 0.99"), ("f-light.csv", ", momentum 0.9")):
        for run in runs(name):
            rule = {"NNM": "NNM before CooMed", "WeiMean": "plain mean"}.get(run["rule"], run["rule"])
            values[rule + more, run["data"]].append(float(run["accuracy"]) + mutant)
    rows = table(ROOT / "docs/recommendation.md", "f: tolerable")
    right = []
    for rule, *cells in rows:
        for data, cell in zip(("one class", "Dirichlet(0.3)"), cells, strict=True):
            seeds = values[rule.partition(" (")[0], data]
            assert len(seeds) == 5
            right.append(cell == f"{np.mean(seeds):.1f} ± {T * np.std(seeds, ddof=1) / math.sqrt(5):.1f}")
    assert len(rows) >= 15 and set(right) == {mutant == 0.0}, rows


@pytest.mark.parametrize("mutant", [0.0, 1.0])
def test_what_rules_take_of_a_single_worker(mutant: float) -> None:
    """Each share is within the range that the table gives its rule, and a lie's is a single worker's."""
    shares = {(run["rule"], run["round"]): run for run in runs("singles.csv")}
    right = []
    for names, *cells in table(REPORT / "README.md", "of a neighbour"):
        for name in names.replace("plain mean", "WeiMean").replace("and on average over who is cut ", "").split(", "):
            for number, cell in zip(("50", "400"), cells, strict=True):
                run = shares.pop((name, number))
                low, _, high = cell.partition(" to ")
                for share in (run["of a single worker"], run["of a lie"]):
                    value, digits = float(share) + mutant, len(low.partition(".")[2])
                    right.append(float(low) <= round(value, digits) <= float(high or low))
    assert not shares and set(right) == {mutant == 0.0}


@pytest.mark.parametrize("mutant", [0.0, 20.0])
def test_where_it_is_better_to_hear_nobody(mutant: float) -> None:
    """IOS falls below workers alone on every network; Leash from zero on three, and from common and normal on none."""
    alone: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs("honest.csv"):
        if run["rule"] == "NoComm":
            alone[run["column"]][run["start"]].append(float(run["accuracy"]))
    told: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs("worst-cases.csv"):
        if run["stage"] == "4" and run["lie"] != "nobody lies":
            told[run["row"], run["column"]][run["start"], run["lie"]].append(float(run["accuracy"]))

    def kept(row: str, column: str, start: str = "") -> float:
        return min(float(np.mean(seeds)) for (at, _), seeds in told[row, column].items() if start in ("", at))

    def start_met(column: str, start: str) -> bool:
        return any(at == start for at, _ in told["Leash", column])

    worst = {column: min(float(np.mean(seeds)) for seeds in starts.values()) for column, starts in alone.items()}
    leash = [column for row, column in told if row == "Leash"]
    assert len(worst) == 20 and len(leash) == 16
    assert all(kept("IOS", column) < level for column, level in worst.items())
    others = [(column, start) for column in leash for start in ("common", "normal") if start_met(column, start)]
    assert all(kept("Leash", column, start) - mutant > np.mean(alone[column][start]) for column, start in others) == (
        mutant == 0.0
    )
    behind = {column for column in leash if kept("Leash", column, "zero") < np.mean(alone[column]["zero"])}
    assert behind == {"dumbbell-dirichlet", "bipartite-dirichlet", "coring-dirichlet"}
    levels = [float(np.mean(seeds)) for starts in alone.values() for seeds in starts.values()]
    assert (round(min(levels)), round(max(levels))) == (30, 85)


@pytest.mark.parametrize("mutant", [0.0, 5.0])
def test_the_ranges_that_pages_state(mutant: float) -> None:
    """Of IOS and Leash under their worst lies, and of IOS if nobody lies."""
    told: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs("worst-cases.csv"):
        if run["stage"] == "4" and run["lie"] != "nobody lies":
            told[run["row"], run["column"]][run["start"], run["lie"]].append(float(run["accuracy"]) + mutant)
    quiet: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs("honest.csv"):
        if run["rule"] == "IOS":
            quiet[run["column"], run["start"]].append(float(run["accuracy"]) + mutant)

    def ends(values: list[float]) -> str:
        return f"{round(min(values))} to {round(max(values))}"

    def kept(rule: str) -> str:
        return ends(
            [min(float(np.mean(seeds)) for seeds in lies.values()) for (row, _), lies in told.items() if row == rule]
        )

    ranges = {"IOS": kept("IOS"), "Leash": kept("Leash"), "quiet": ends([float(np.mean(v)) for v in quiet.values()])}
    assert (ranges == {"IOS": "2 to 30", "Leash": "45 to 72", "quiet": "77 to 91"}) == (mutant == 0.0)
    pages = [
        ROOT / name for name in ("README.md", "docs/recommendation.md", "docs/index.md", "reports/audit/README.md")
    ]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "2 to 30" in text and "45 to 72" in text
        assert "77 to 91" in text or page.name == "index.md"

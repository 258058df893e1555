"""What the start hides: the runs of the plans in reports/starts as tables, a CSV file and a figure for each plan.

    byzmesh sweep reports/starts/plan.yaml --store starts.db
    byzmesh sweep reports/starts/reflections.yaml --store starts.db
    byzmesh sweep reports/starts/er-20.yaml --store starts.db
    python -m byzmesh.studies.starts reports/starts starts.db

Runs that runs.csv already has and the store has not are kept. A cell of which only some seeds are finished has no
interval and stands in parentheses.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from byzmesh.config.grid import read_grid
from byzmesh.files import save_figure, write
from byzmesh.reports.writing import write_csv
from byzmesh.store import open_store
from byzmesh.studies.seeds import Estimate, over_seeds, shown

STARTS = {"zero": "all at zero", "common": "one random point", "normal": "published"}
SPLITS = ("one class", "Dirichlet(0.1)", "Dirichlet(0.3)", "iid")
FIGURES = {"plan.yaml": "figure.png", "reflections.yaml": "reflections.png", "er-20.yaml": "er-20.png"}
TITLES = {
    "er-12": "ER-12",
    "er-20-b2": "ER, 20 honest, 2 lie",
    "er-20-b4": "ER, 20 honest, 4 lie",
    "er-20-b6": "ER, 20 honest, 6 lie",
}
TOLD = {"reflection (start)": "mirrored at the first models", "reflection (average)": "mirrored at a running average"}
SEEDS = 5
COLUMNS = ("network", "attack", "rule", "start", "data", "seed", "accuracy")


def rows_of(records: Iterable[tuple[Mapping[str, Any], float]]) -> list[dict[str, Any]]:
    """One row per finished run from (config, accuracy)."""
    return [
        {
            "network": config["network"]["name"].removeprefix("paper/"),
            "attack": _attack(config["attack"]),
            "rule": config["rule"]["name"],
            "start": config["problem"]["init"],
            "data": _split(config["problem"]["partition"]),
            "seed": config["seed"],
            "accuracy": 100.0 * accuracy,
        }
        for config, accuracy in records
    ]


def _attack(attack: Mapping[str, Any]) -> str:
    return f"{attack['name']} ({attack['reference']})" if "reference" in attack else str(attack["name"])


def _split(partition: Mapping[str, Any]) -> str:
    """How the data is split, as the tables say it.

    >>> _split({"name": "dirichlet", "alpha": 0.1}), _split({"name": "one-class"})
    ('Dirichlet(0.1)', 'one class')
    """
    name = str(partition["name"])
    return f"Dirichlet({partition['alpha']:g})" if "alpha" in partition else name.replace("-", " ")


def table(told: Mapping[tuple[str, ...], Estimate]) -> str:
    """The summaries as one Markdown table per network and attack."""
    lines: list[str] = []
    for network, attack in dict.fromkeys((cell[0], cell[1]) for cell in told):
        lines += [f"### {network}, {attack}", "", "| rule | start | " + " | ".join(SPLITS) + " |"]
        lines.append("| --- | --- |" + " ---: |" * len(SPLITS))
        for rule in dict.fromkeys(cell[2] for cell in told if cell[:2] == (network, attack)):
            for start, name in STARTS.items():
                found = [told.get((network, attack, rule, start, split)) for split in SPLITS]
                if any(found):
                    lines.append(f"| {rule} | {name} | " + " | ".join(map(shown, found)) + " |")
        lines.append("")
    return "\n".join(lines)


def draw(told: Mapping[tuple[str, ...], Estimate], path: Path) -> Path:
    """A panel per network and attack: a row per rule, a column per start and split, the mean accuracy in each cell."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((cell[0], cell[1]) for cell in told))
    rules = [list(dict.fromkeys(cell[2] for cell in told if cell[:2] == panel)) for panel in panels]
    figure = Figure(figsize=(10.0, sum(1.2 + 0.24 * len(names) for names in rules)))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[1.0 + len(names) for names in rules])[:, 0]
    splits = [split for split in SPLITS if any(cell[4] == split for cell in told)]
    starts = {start: name for start, name in STARTS.items() if any(cell[3] == start for cell in told)}
    places = [(start, split) for start in starts for split in splits]
    for axis, panel, names in zip(axes, panels, rules, strict=True):
        means = [[told.get((*panel, rule, *place), (math.nan, 0.0))[0] for place in places] for rule in names]
        axis.imshow(means, cmap="YlGnBu", vmin=0.0, vmax=100.0, aspect="auto")
        for row, values in enumerate(means):
            for column, value in enumerate(values):
                if not math.isnan(value):
                    axis.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=_ink(value))
        for border in range(1, len(starts)):
            axis.axvline(border * len(splits) - 0.5, color="white", linewidth=4)
        axis.set_xticks(range(len(places)), [split.replace("Dirichlet", "Dir") for _, split in places], fontsize=7)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        heads = axis.secondary_xaxis("top")
        heads.set_xticks(
            [len(splits) * (place + 0.5) - 0.5 for place in range(len(starts))],
            [f"start: {name}" for name in starts.values()],
            fontsize=8,
        )
        for part in (axis, heads):
            part.tick_params(length=0)
            part.spines[:].set_visible(False)
        axis.set_title(f"{TITLES.get(panel[0], panel[0])}, {TOLD.get(panel[1], panel[1])}: accuracy (%)", fontsize=10)
    return save_figure(figure, path)


def _ink(value: float) -> str:
    """The colour of a number on the colour of its cell."""
    return "white" if value > 60.0 else "black"


def _which(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in COLUMNS[:-1])


def _committed(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Which run -> its row."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:
        rows = [{**row, "seed": int(row["seed"]), "accuracy": float(row["accuracy"])} for row in csv.DictReader(file)]
    return {_which(row): row for row in rows}


def main(arguments: list[str]) -> int:
    """Write runs.csv, tables.md and a figure per plan beside the plans of a folder, from the runs of a store."""
    folder, store = Path(arguments[0]), open_store(arguments[1], readonly=True)
    finished = {record.key: record.final["accuracy"] for record in store.list(status="finished")}
    before = _committed(folder / "runs.csv")
    rows: list[dict[str, Any]] = []
    for plan, figure in FIGURES.items():
        wanted = read_grid(folder / plan)
        asked = rows_of([(cell.config, finished.get(cell.key, math.nan)) for cell in wanted])
        kept = [before.get(_which(row), row) if math.isnan(row["accuracy"]) else row for row in asked]
        found = [row for row in kept if not math.isnan(row["accuracy"])]
        if found:
            draw(over_seeds(found, COLUMNS[:5], SEEDS), folder / figure)
        rows += found
        print(f"{plan}: {len(found)} of {len(wanted)} runs")
    write_csv(folder / "runs.csv", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
    write(folder / "tables.md", table(over_seeds(rows, COLUMNS[:5], SEEDS)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The studies of privacy and of sites of unequal size: the runs of a plan as tables, a CSV file and a figure.

    byzmesh sweep reports/private/plan.yaml --store private.db
    python -m byzmesh.studies.messages reports/private private.db
    byzmesh sweep reports/unequal/plan.yaml --store unequal.db
    python -m byzmesh.studies.messages reports/unequal unequal.db

A cell of which only some seeds are finished has no interval and stands in parentheses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from byzmesh.config.grid import CASE, read_grid
from byzmesh.files import save_figure, write
from byzmesh.reports.charts import PALETTE
from byzmesh.reports.writing import write_csv
from byzmesh.store import open_store
from byzmesh.studies.seeds import Estimate, over_seeds, shown

SEEDS = 5
COLUMNS = ("group", "row", "column", "seed", "accuracy")


def place_of(config: Mapping[str, Any]) -> tuple[str, str, str]:
    """Where a run stands: the table of its attack or liar, the row of its rule, the column of its noise or data.

    >>> place_of({"labels": {"case": "epsilon 4"}, "rule": {"name": "IOS"}, "attack": {"name": "none"}, "network": {}})
    ('none', 'IOS', 'epsilon 4')
    """
    rule, attack, case = config["rule"]["name"], config["attack"]["name"], config["labels"][CASE]
    partition = config.get("problem", {}).get("partition", {})
    if partition.get("name") != "sizes":
        return attack, rule, case
    share = partition["shares"][config["network"]["byzantine"][0]]
    weighed = "samples" if config.get("objective") == "samples" else "workers"
    return f"data {case}", f"{rule}, {weighed}", f"{share:g}% liar, {attack}"


def rows_of(records: Iterable[tuple[Mapping[str, Any], float]]) -> list[dict[str, Any]]:
    """One row per finished run from (config, accuracy)."""
    found = []
    for config, accuracy in records:
        group, row, column = place_of(config)
        seed = config["seed"]
        found.append({"group": group, "row": row, "column": column, "seed": seed, "accuracy": 100.0 * accuracy})
    return found


def table(told: Mapping[tuple[str, ...], Estimate]) -> str:
    """The summaries as one Markdown table per group."""
    lines: list[str] = []
    for group in dict.fromkeys(cell[0] for cell in told):
        columns = list(dict.fromkeys(cell[2] for cell in told if cell[0] == group))
        lines += [f"### {group}", "", "| rule | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
        for row in dict.fromkeys(cell[1] for cell in told if cell[0] == group):
            cells = [shown(told.get((group, row, column))) for column in columns]
            lines.append(f"| {row} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def draw(told: Mapping[tuple[str, ...], Estimate], path: Path) -> Path:
    """A panel per group, a group of bars per column, a bar per rule."""
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(cell[0] for cell in told))
    figure = Figure(figsize=(11.0, 3.2 * len(groups)))
    figure.set_layout_engine("constrained")
    for axis, group in zip(figure.subplots(len(groups), 1, squeeze=False)[:, 0], groups):
        columns = list(dict.fromkeys(cell[2] for cell in told if cell[0] == group))
        rows = list(dict.fromkeys(cell[1] for cell in told if cell[0] == group))
        width = 0.85 / len(rows)
        for number, row in enumerate(rows):
            found = [told.get((group, row, column), (math.nan, 0.0)) for column in columns]
            axis.bar(
                [place + width * (number - (len(rows) - 1) / 2) for place in range(len(columns))],
                [mean for mean, _ in found],
                0.95 * width,
                yerr=[0.0 if math.isnan(half) else half for _, half in found],
                color=PALETTE[number % len(PALETTE)],
                hatch="///" if number >= len(PALETTE) else None,
                edgecolor="white" if number >= len(PALETTE) else None,
                error_kw={"linewidth": 0.8},
                label=row,
            )
        axis.set_xticks(range(len(columns)), columns, fontsize=8)
        axis.set(ylim=(0, 100), ylabel="accuracy (%)", title=group)
        axis.legend(fontsize=7, ncols=2, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, path)


def main(arguments: list[str]) -> int:
    """Write runs.csv, tables.md and figure.png beside the plan of a folder, from the runs of a store."""
    folder, store = Path(arguments[0]), open_store(arguments[1], readonly=True)
    finished = {record.key: record for record in store.list(status="finished")}
    wanted = read_grid(folder / "plan.yaml")
    rows = rows_of((cell.config, finished[cell.key].final["accuracy"]) for cell in wanted if cell.key in finished)
    print(f"{len(rows)} of {len(wanted)} runs")
    write_csv(folder / "runs.csv", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
    told = over_seeds(rows, COLUMNS[:3], SEEDS)
    write(folder / "tables.md", table(told) + "\n")
    if rows:
        draw(told, folder / "figure.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

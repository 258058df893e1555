"""What the start hides: the runs of the plans in reports/starts as tables, a CSV file and a figure for each plan.

    byzmesh sweep reports/starts/plan.yaml --store starts.db
    byzmesh sweep reports/starts/reflections.yaml --store starts.db
    python -m byzmesh.studies.starts reports/starts starts.db

A cell of which only some seeds are finished has no interval and stands in parentheses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from byzmesh.config.grid import read_grid
from byzmesh.files import save_figure, write
from byzmesh.reports.charts import PALETTE
from byzmesh.reports.writing import write_csv
from byzmesh.store import open_store
from byzmesh.studies.seeds import Estimate, over_seeds, shown

STARTS = {"zero": "all at zero", "common": "one random point", "normal": "published"}
SPLITS = ("one class", "Dirichlet(0.1)", "Dirichlet(0.3)", "iid")
FIGURES = {"plan.yaml": "figure.png", "reflections.yaml": "reflections.png"}
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


def _short(split: str) -> str:
    return split.replace("Dirichlet", "Dir")


def draw(told: Mapping[tuple[str, ...], Estimate], path: Path) -> Path:
    """A panel per network and attack, a group of bars per rule and split, a bar per start."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((cell[0], cell[1]) for cell in told))
    figure = Figure(figsize=(11.0, 2.9 * len(panels)))
    figure.set_layout_engine("constrained")
    for axis, (network, attack) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels):
        rules = list(dict.fromkeys(cell[2] for cell in told if cell[:2] == (network, attack)))
        groups = [(rule, split) for rule in rules for split in SPLITS]
        for number, (start, name) in enumerate(STARTS.items()):
            found = [told.get((network, attack, rule, start, split), (math.nan, 0.0)) for rule, split in groups]
            axis.bar(
                [place + 0.27 * (number - 1) for place in range(len(groups))],
                [mean for mean, _ in found],
                0.25,
                yerr=[0.0 if math.isnan(half) else half for _, half in found],
                color=PALETTE[number],
                error_kw={"linewidth": 0.8},
                label=f"start: {name}",
            )
        axis.set_xticks(range(len(groups)), [f"{_short(split)}\n{rule}" for rule, split in groups], fontsize=7)
        axis.set_ylim(0, 100)
        axis.set_ylabel("accuracy (%)")
        axis.set_title(f"{network}, {attack}", fontsize=10)
        axis.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9, frameon=False)
    return save_figure(figure, path)


def main(arguments: list[str]) -> int:
    """Write runs.csv, tables.md and a figure per plan beside the plans of a folder, from the runs of a store."""
    folder, store = Path(arguments[0]), open_store(arguments[1], readonly=True)
    finished = {record.key: record for record in store.list(status="finished")}
    rows: list[dict[str, Any]] = []
    for plan, figure in FIGURES.items():
        wanted = read_grid(folder / plan)
        done = [(cell.config, finished[cell.key].final["accuracy"]) for cell in wanted if cell.key in finished]
        found = rows_of(done)
        if found:
            draw(over_seeds(found, COLUMNS[:5], SEEDS), folder / figure)
        rows += found
        print(f"{plan}: {len(found)} of {len(wanted)} runs")
    write_csv(folder / "runs.csv", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
    write(folder / "tables.md", table(over_seeds(rows, COLUMNS[:5], SEEDS)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

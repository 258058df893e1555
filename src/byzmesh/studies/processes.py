"""Three studies of networks that change: random pulls, lost messages and sleepers, MoNNA's first responders.

byzmesh sweep reports/processes/pull.yaml --store pull.db       # likewise loss.yaml and monna.yaml
python -m byzmesh.studies.processes reports/processes .         # reads the grids and DB files, writes beside the grids

A study whose DB file is not there keeps its rows of `runs.csv`.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.config.grid import read_grid
from byzmesh.files import save_figure, write
from byzmesh.networks import Network
from byzmesh.networks.processes import Meetings, process
from byzmesh.reports.charts import PALETTE
from byzmesh.reports.writing import write_csv
from byzmesh.store import open_store
from byzmesh.studies.seeds import Estimate, estimate

STUDIES = ("pull", "loss", "monna")
COLUMNS = ("study", "case", "network", "split", "rule", "attack", "seed", "accuracy", "consensus_error", "kilobytes")
NUMBERS = 7850 * 4 / 1000
"""Kilobytes of one model: softmax regression on MNIST in float32."""

Row = Mapping[str, Any]


def rows_of(grid: Path, store: Path) -> list[dict[str, Any]]:
    """Every finished run of a grid."""
    rows = []
    with open_store(store, readonly=True) as opened:
        done = opened.keys()
        for cell in read_grid(grid):
            if cell.key not in done or opened.get(cell.key).status not in ("finished", "diverged"):
                continue
            config, final = cell.config, opened.get(cell.key).final
            partition = config["problem"]["partition"]
            rows.append(
                {
                    "study": grid.stem,
                    "case": cell.labels["case"],
                    "network": config["network"].get("name", "edges"),
                    "split": f"dirichlet {partition['alpha']:g}" if "alpha" in partition else partition["name"],
                    "rule": config["rule"]["name"],
                    "attack": config["attack"]["name"],
                    "seed": config["seed"],
                    "accuracy": round(100 * final.get("accuracy", math.nan), 3),
                    "consensus_error": final.get("consensus_error", math.nan),
                    "kilobytes": round(kilobytes(config), 1),
                }
            )
    return rows


def rows_kept(folder: Path, study: str) -> list[dict[str, Any]]:
    """The rows of a study in `runs.csv`, as they were written."""
    numbers = {"seed": int, "accuracy": float, "consensus_error": float, "kilobytes": float}
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["study"] == study]
    return [{key: numbers.get(key, str)(value) for key, value in line.items()} for line in lines]


def kilobytes(config: Mapping[str, Any], rounds: int = 100) -> float:
    """What an honest worker receives in a round, on average."""
    network = Network.from_spec(config["network"])
    meetings = Meetings(process(config.get("process")), network.links, network.lies, config["seed"])
    return NUMBERS * float(np.mean([meetings.at(k).links.degree[network.honest].mean() for k in range(rounds)]))


def interval(rows: Sequence[Row], column: str = "accuracy") -> Estimate:
    """Mean over the seeds and half the width of its 95% interval."""
    return estimate([row[column] for row in rows])


def chosen(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def table(rows: Sequence[Row], line: str, column: str, **wanted: Any) -> str:
    """A Markdown table of mean accuracies with intervals."""
    some = chosen(rows, **wanted)
    lines, columns = (list(dict.fromkeys(row[key] for row in some)) for key in (line, column))
    text = [f"| {line} | {' | '.join(map(str, columns))} |", "| --- |" + " --- |" * len(columns)]
    for name in lines:
        cells = [interval(chosen(some, **{line: name, column: value})) for value in columns]
        text.append(f"| {name} | {' | '.join(f'{mean:.1f} ± {half:.1f}' for mean, half in cells)} |")
    return "\n".join(text)


def draw_pull(rows: Sequence[Row], path: Path) -> None:
    """Accuracy over what a worker receives, a panel per attack and a line per rule."""
    from matplotlib.figure import Figure

    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    figure = Figure(figsize=(3.4 * len(attacks), 3.2), layout="constrained")
    for axes, attack in zip(figure.subplots(1, len(attacks), sharey=True, squeeze=False)[0], attacks):
        for colour, rule in zip(PALETTE, ("IOS", "NNA")):
            for cases, style in ((("pull 3", "pull 5", "pull 8"), "o-"), (("ER-20",), "s"), (("complete",), "D")):
                points = [(case, chosen(rows, attack=attack, rule=rule, case=case)) for case in cases]
                at = [np.mean([row["kilobytes"] for row in some]) for _, some in points if some]
                marks = [interval(some) for _, some in points if some]
                axes.errorbar(
                    at, *zip(*marks), fmt=style, color=colour, capsize=2, label=rule if "o" in style else None
                )
        axes.set_title(attack)
        axes.set_xlabel("kB received per worker and round")
    figure.axes[0].set_ylabel("accuracy, %")
    figure.axes[0].legend(title="line: pull 3, 5, 8\nsquare: ER-20\ndiamond: complete")
    save_figure(figure, path)


def draw_loss(rows: Sequence[Row], path: Path) -> None:
    """Accuracy over the share of lost messages and of sleepers, a line per graph."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("loss", "sleep")):
        for colour, network in zip(PALETTE, dict.fromkeys(row["network"] for row in rows)):
            cases = {0: "none", **{share: f"{kind} {share}" for share in (10, 30, 50)}}
            found = {share: chosen(rows, network=network, case=case) for share, case in cases.items()}
            marks = {share: interval(some) for share, some in found.items() if some}
            label = str(network).removeprefix("paper/")
            axes.errorbar(list(marks), *zip(*marks.values()), fmt="o-", color=colour, capsize=2, label=label)
        axes.set_xlabel("lost messages, %" if kind == "loss" else "sleeping workers, %")
    figure.axes[0].set_ylabel("accuracy, %")
    figure.axes[0].legend()
    save_figure(figure, path)


def draw_monna(rows: Sequence[Row], path: Path) -> None:
    """Accuracy over Dirichlet's alpha, a panel per attack; liars that answer at random and first."""
    from matplotlib.figure import Figure

    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    figure = Figure(figsize=(4.0 * len(attacks), 3.2), layout="constrained")
    for axes, attack in zip(figure.subplots(1, len(attacks), sharey=True, squeeze=False)[0], attacks):
        for colour, case in zip(PALETTE, dict.fromkeys(row["case"] for row in rows)):
            found = {
                alpha: chosen(rows, attack=attack, case=case, split=f"dirichlet {alpha:g}") for alpha in (0.5, 1, 5)
            }
            marks = {alpha: interval(some) for alpha, some in found.items() if some}
            axes.errorbar(list(marks), *zip(*marks.values()), fmt="o-", color=colour, capsize=2, label=f"{case}")
        axes.set_title(attack)
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 5], ["0.5", "1", "5"])
        axes.minorticks_off()
        axes.set_xlabel("Dirichlet alpha")
    figure.axes[0].set_ylabel("accuracy, %")
    figure.axes[0].legend(title="liars answer")
    save_figure(figure, path)


def report(folder: Path, stores: Path) -> None:
    """Write runs.csv, tables.md and a figure per study."""
    rows = []
    for name in STUDIES:
        store = stores / f"{name}.db"
        rows += rows_of(folder / f"{name}.yaml", store) if store.exists() else rows_kept(folder, name)
    write_csv(folder / "runs.csv", COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    pull, loss, monna = (chosen(rows, study=name) for name in STUDIES)
    parts = ["Mean accuracy in percent over the seeds, with 95% intervals.", "", "## Random pulls"]
    for rule in ("IOS", "NNA"):
        parts += ["", f"{rule}:", "", table(pull, "case", "attack", rule=rule)]
    parts += ["", "## Lost messages and sleepers", "", table(loss, "case", "network")]
    parts += ["", "## MoNNA's setting"]
    for attack in dict.fromkeys(row["attack"] for row in monna):
        parts += ["", f"{attack}:", "", table(monna, "case", "split", attack=attack)]
    write(folder / "tables.md", "\n".join(parts) + "\n")
    for draw, some, name in ((draw_pull, pull, "pull"), (draw_loss, loss, "loss"), (draw_monna, monna, "monna")):
        if some:
            draw(some, folder / f"{name}.png")


if __name__ == "__main__":
    report(Path(sys.argv[1]), Path(sys.argv[2]))

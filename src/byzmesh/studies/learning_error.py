"""The learning error in practice: what noise, liars and uneven mixing add to it (Remark 2, Corollary 1).

    error <= O(rho^2 N + chi^2) (1 + Delta) (delta_in^2 + delta_out^2)            and without delta_in by Remark 2

Noisy quadratics are enough for that: all constants are known at every model, there is one minimum, so that the error is
due to noise and lies and not to local minima, and hundreds of runs take minutes. All samples have the same curvature,
on which L-SVRG is free of noise from the first round on; on other losses it is only in the limit.

    python -m byzmesh.studies.learning_error reports/learning-error        # reads plan.yaml there, writes beside it
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.config.schema import resolve
from byzmesh.config.yaml import read_yaml
from byzmesh.files import save_figure, write
from byzmesh.reports.charts import PALETTE
from byzmesh.reports.writing import write_csv
from byzmesh.studies.seeds import Estimate, estimate
from byzmesh.sweeps.build import build
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.mixing import chi2, virtual_mixing

COLUMNS = ("panel", "series", "x", "seed", "error", "rho", "chi2", "honest")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of the study: where its error is drawn, and its config without the seed."""

    panel: str
    series: str
    x: float
    config: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Point:
    """The mean error of a cell over the seeds and half the width of its 95% interval."""

    panel: str
    series: str
    x: float
    mean: float
    half: float
    excess: float
    """rho^2 N + chi^2."""


def cells(plan: Mapping[str, Any]) -> Iterator[Cell]:
    """Every cell of a plan."""
    base, noise, liars, mixing = plan["base"], plan["noise"], plan["liars"], plan["mixing"]
    for delta in noise["delta_in"]:
        noisy = {**base, "problem": {**base["problem"], "delta_in": delta}}
        for attack in noise["attacks"]:
            lied_to = {"network": complete(noise["honest"], noise["liars"]), "attack": attack}
            for method, local in noise["methods"].items():
                config = {**noisy, **lied_to, "local": {**base["local"], **local}}
                yield Cell(panel=f"noise, {attack}", series=method, x=delta, config=config)
            alone = {**noisy, "network": complete(noise["honest"], 0)}
            yield Cell(panel=f"noise, {attack}", series="SGD, nobody lies", x=delta, config=alone)
    for attack in liars["attacks"]:
        for count in liars["counts"]:
            config = {**base, "network": complete(liars["honest"], count), "attack": attack}
            yield Cell(panel="liars", series=f"{attack}, N = {liars['honest']}", x=count, config=config)
        for honest, count in liars["sizes"]:
            config = {**base, "network": complete(honest, count), "attack": attack}
            yield Cell(panel="size", series=attack, x=honest, config=config)
    for uneven in mixing["uneven"]:
        net = {**complete(mixing["honest"], 0), "weights": uneven_weights(mixing["honest"], uneven)}
        config = {**base, "rule": "WeiMean", "network": net}
        yield Cell(panel="mixing", series="WeiMean, nobody lies", x=uneven, config=config)


def complete(honest: int, liars: int) -> dict[str, Any]:
    """A complete graph whose last nodes lie."""
    return {"name": "complete", "n": honest + liars, "byzantine": list(range(honest, honest + liars))}


def uneven_weights(workers: int, uneven: float) -> list[list[float]]:
    """Everybody counts worker m by (1 + uneven cos m) / N, up to the sum.

    >>> [round(sum(row), 12) for row in uneven_weights(2, 0.5)]
    [1.0, 1.0]
    """
    row = [1.0 + uneven * math.cos(m) for m in range(workers)]
    return [[weight / sum(row) for weight in row] for _ in range(workers)]


def study(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for every cell and seed."""
    rows = []
    for cell in cells(plan):
        for seed in plan["seeds"]:
            simulation = build(resolve({**cell.config, "seed": seed}))
            gradient = simulation.run().metrics["gradient"]
            network, rule, setting = simulation.network, simulation.rule, simulation.setting
            rows.append(
                {
                    "panel": cell.panel,
                    "series": cell.series,
                    "x": cell.x,
                    "seed": seed,
                    "error": float(gradient[len(gradient) // 2 + 1 :].mean()),
                    "rho": proved_contraction(network, rule, setting.bound, setting.weight_bound).rho,
                    "chi2": chi2(virtual_mixing(network, rule).matrix),
                    "honest": len(network.honest),
                }
            )
    return rows


def points(rows: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Means over the seeds, with intervals.

    >>> row = {"panel": "p", "series": "s", "x": 1.0, "rho": 0.5, "chi2": 0.0, "honest": 4}
    >>> point, = points([{**row, "error": 1.0}, {**row, "error": 3.0}])
    >>> point.mean, round(point.half, 2), point.excess
    (2.0, 12.71, 1.0)
    """
    groups: dict[tuple[str, str, float], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["panel"], row["series"], row["x"]), []).append(row)
    told = []
    for (panel, series, x), group in groups.items():
        mean, half = estimate([row["error"] for row in group])
        excess = group[0]["rho"] ** 2 * group[0]["honest"] + group[0]["chi2"]
        told.append(Point(panel=panel, series=series, x=x, mean=mean, half=half, excess=excess))
    return told


def exponent(rows: Sequence[Mapping[str, Any]], panel: str, series: str) -> Estimate:
    """The slope of log error over log (rho^2 N + chi^2), its mean over the seeds and half its 95% interval."""
    slopes = []
    for seed in sorted({row["seed"] for row in rows}):
        found = [row for row in rows if (row["panel"], row["series"], row["seed"]) == (panel, series, seed)]
        excess = [math.log(row["rho"] ** 2 * row["honest"] + row["chi2"]) for row in found]
        slopes.append(float(np.polyfit(excess, [math.log(row["error"]) for row in found], 1)[0]))
    return estimate(slopes)


SMALLEST = 5e-5
"""Errors below this are drawn at the lower edge of the figure."""


def draw(told: Sequence[Point], path: Path) -> Path:
    """The figure: error over delta_in by attack, and over rho^2 N + chi^2."""
    from matplotlib.figure import Figure

    panels = [name for name in dict.fromkeys(point.panel for point in told) if name.startswith("noise")]
    figure = Figure(figsize=(4.6 * (len(panels) + 1), 4.0))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, len(panels) + 1)
    for axis, panel in zip(axes, panels):
        _lines(axis, [point for point in told if point.panel == panel], "x")
        axis.set_xlabel("delta_in")
        axis.set_title(f"10 honest, 2 lying ({panel.removeprefix('noise, ')}), IOS", fontsize=10)
    others = [point for point in told if point.panel in ("liars", "mixing")]
    _lines(axes[-1], others, "excess")
    axes[-1].set_xscale("log")
    axes[-1].set_xlabel("rho^2 N + chi^2  (rho as proved)")
    axes[-1].set_title("more liars, or more uneven mixing", fontsize=10)
    axes[0].set_ylabel("mean squared gradient, second half")
    return save_figure(figure, path)


def _lines(axis: Any, told: Sequence[Point], over: str) -> None:
    for number, series in enumerate(dict.fromkeys(point.series for point in told)):
        line = [point for point in told if point.series == series]
        axis.errorbar(
            [getattr(point, over) for point in line],
            [max(point.mean, SMALLEST) for point in line],
            [[min(point.half, 0.9 * max(point.mean, SMALLEST)) for point in line], [point.half for point in line]],
            color=PALETTE[number],
            marker="os^vD*"[number % 6],
            linestyle="--" if "nobody" in series else "-",
            linewidth=1.3,
            markersize=5,
            capsize=3,
            label=series,
        )
    axis.set_yscale("log")
    axis.set_ylim(bottom=SMALLEST * 0.5)
    axis.grid(visible=True, color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, frameon=False)


def report(told: Sequence[Point]) -> str:
    """The points as Markdown tables."""
    lines = []
    for panel in dict.fromkeys(point.panel for point in told):
        shown = [point for point in told if point.panel == panel]
        places = list(dict.fromkeys(point.x for point in shown))
        lines += [f"### {panel}", "", "| | " + " | ".join(f"{x:g}" for x in places) + " |"]
        lines.append("| --- |" + " --- |" * len(places))
        for series in dict.fromkeys(point.series for point in shown):
            row = {point.x: f"{point.mean:.2e} ± {point.half:.0e}" for point in shown if point.series == series}
            lines.append(f"| {series} | " + " | ".join(row[x] for x in places) + " |")
        if not panel.startswith("noise"):
            first = shown[0].series
            excess = {point.x: f"{point.excess:.3g}" for point in shown if point.series == first}
            lines.append("| rho^2 N + chi^2 | " + " | ".join(excess[x] for x in places) + " |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the plan of a folder and write runs.csv, tables.md and figure.png beside it."""
    folder = Path(arguments[0])
    rows = study(read_yaml(folder / "plan.yaml"))
    write_csv(folder / "runs.csv", COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
    told = points(rows)
    lines = [report(told), "### error as a power of rho^2 N + chi^2", ""]
    for panel in ("liars", "mixing"):
        for series in dict.fromkeys(point.series for point in told if point.panel == panel):
            slope, half = exponent(rows, panel, series)
            lines.append(f"- {series}: {slope:.2f} ± {half:.2f}")
    write(folder / "tables.md", "\n".join(lines) + "\n")
    draw(told, folder / "figure.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Curves for the HTML report and, drawn by matplotlib, for PNG and PDF files.

A chart has facets (one per attack, say), each with its named curves; a report shows one facet at a time with a menu, a
figure shows them side by side. A sweep's curve is the mean over its seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.files import figure_suffix, save_figure
from byzmesh.store import Store
from byzmesh.training.metrics import metric_of

PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f3c8d",
    "#80ba5a",
    "#a5694f",
    "#6b6b6b",
    "#c2185b",
    "#1b7837",
)
"""Colours that colour-blind readers can tell apart; the line style changes each time they repeat."""
DARK_PALETTE = (
    "#4ea8e8",
    "#ff8a3d",
    "#2ecf9f",
    "#e79ac4",
    "#f2b632",
    "#8fd3ff",
    "#b98ae0",
    "#a4d67e",
    "#d19a80",
    "#a8a8a8",
    "#f0628f",
    "#57b876",
)
"""The same hues for a dark background."""
KINDS = (".png", ".pdf", ".svg")
SMALLEST = 1e-16
"""Values up to this are gaps on a logarithmic axis: exact consensus, up to float64's rounding."""


@dataclass(frozen=True)
class Curve:
    """y over x; a NaN is a gap."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves by facet."""

    title: str
    x_label: str
    y_label: str
    facets: Mapping[str, tuple[Curve, ...]]
    logarithmic: bool = False
    marks: bool = False
    """Whether to mark the points, for charts with few of them."""


def run_chart(
    store: Store, groups: Mapping[str, Mapping[str, Sequence[str]]], metric: str = "accuracy", title: str = ""
) -> Chart:
    """Curves over the rounds: facet -> name -> keys of the runs whose mean is the curve.

    Runs without the metric (not yet computed) are left out; runs of one curve are cut to the shortest.
    """
    shown = metric_of(metric)
    facets = {}
    for facet, named in groups.items():
        curves = []
        for name, keys in named.items():
            series = [recorded for recorded in (store.series(key) for key in keys) if metric in recorded]
            if series:
                length = min(len(recorded[metric]) for recorded in series)
                mean = np.mean([recorded[metric][:length] for recorded in series], axis=0)
                scaled = mean * shown.factor
                rounds = series[0].get("round", np.arange(length))[:length]
                curves.append(Curve(name, tuple(rounds.tolist()), tuple(scaled.tolist())))
        if curves:
            facets[facet] = tuple(curves)
    return Chart(title=title, x_label="round", y_label=shown.label, facets=facets, logarithmic=shown.scale == "log")


def draw_charts(charts: Iterable[Chart], path: Path) -> Path:
    """All facets of all charts side by side, in a PNG, PDF or SVG file by suffix."""
    panels = [(chart, facet, curves) for chart in charts for facet, curves in chart.facets.items()]
    figure_suffix(path)
    if not panels:
        raise ConfigError(f"{path}: there is no curve to draw; the runs are not computed or lack the metric")
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    names = list(dict.fromkeys(curve.name for _, _, curves in panels for curve in curves))
    shared = len({tuple(curve.name for curve in curves) for _, _, curves in panels}) == 1 or rows > 1
    below = 0.28 * math.ceil(len(names) / (3 * columns)) + 0.2 if shared else 0.0
    figure = Figure(figsize=(4.3 * columns, 3.1 * rows + below))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel, (chart, facet, curves) in enumerate(panels):
        axes = grid[panel // columns][panel % columns]
        for number, curve in enumerate(curves):
            style = _style(names.index(curve.name) if shared else number, chart.marks)
            axes.plot(curve.x, _drawable(curve.y, chart.logarithmic), label=curve.name, **style)
        if chart.logarithmic:
            axes.set_yscale("log")
        axes.set_title(facet or chart.title, fontsize=10)
        axes.set_xlabel(chart.x_label)
        axes.set_ylabel(chart.y_label)
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if not shared:
            axes.legend(fontsize=8, frameon=False)
    for panel in range(len(panels), rows * columns):
        grid[panel // columns][panel % columns].set_axis_off()
    if shared:
        handles = [Line2D([], [], **_style(number, panels[0][0].marks)) for number in range(len(names))]
        figure.legend(handles, names, loc="outside lower center", ncols=min(3 * columns, len(names)), frameon=False)
    return save_figure(figure, path)


def _drawable(values: Sequence[float], logarithmic: bool) -> list[float]:
    return [value if not logarithmic or value > SMALLEST else math.nan for value in values]


def _style(number: int, marks: bool) -> dict[str, Any]:
    style = ("-", "--", ":")[number // len(PALETTE) % 3]
    return {
        "color": PALETTE[number % len(PALETTE)],
        "linestyle": style,
        "linewidth": 1.4,
        "marker": "o" if marks else None,
        "markersize": 4,
    }

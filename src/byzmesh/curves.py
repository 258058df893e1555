"""Curves with bands, drawn by matplotlib: figures ready for a paper.

A chart has facets (one per attack, say), each with its named curves. A figure shows the facets side by side with shared
axes, so that heights can be compared, and one legend for all. A band around a curve says how certain it is: whoever
makes the chart says in `band` what it means. The same data give the same file.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.errors import ConfigError
from byzmesh.files import figure_suffix, save_figure

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
STYLES = ("-", "--", ":")
MOST_NAMED = len(PALETTE) * len(STYLES)
"""More curves than styles are grey and share one entry of the legend."""
SMALLEST = 1e-16
"""Values up to this are gaps on a logarithmic axis: exact consensus, up to float64's rounding."""
DECADES = 2.0
"""Values that span more powers of ten than this are drawn on a logarithmic axis."""
OTHERS = "#b0b0b0"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """y over x, perhaps with a band from `low` to `high`; a NaN is a gap."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves by facet."""

    title: str
    x_label: str
    y_label: str
    facets: Mapping[str, tuple[Curve, ...]]
    logarithmic: bool = False
    logarithmic_x: bool = False
    marks: bool = False
    """Whether to mark the points, for charts with few of them."""
    band: str = ""
    """What the bands are, if there are any."""


def spans_decades(values: Iterable[float]) -> bool:
    """Whether values are positive and span more than `DECADES` powers of ten.

    >>> spans_decades([0.5, 30.0]), spans_decades([0.01, 30.0]), spans_decades([-1.0, 1e9])
    (False, True, False)
    """
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > SMALLEST and max(known) > 10.0**DECADES * min(known)


def picture(width: float, height: float) -> Any:
    """An empty matplotlib figure of that size in inches, which a notebook shows as it is, whatever its backend."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=100)
            return content.getvalue()

    Picture.__name__ = Picture.__qualname__ = "Figure"
    return Picture(figsize=(width, height))


def draw_charts(charts: Iterable[Chart], path: Path) -> Path:
    """All facets of all charts side by side, in a PNG, PDF or SVG file by suffix."""
    figure_suffix(path)
    shown = list(charts)
    if not any(chart.facets for chart in shown):
        raise ConfigError(f"{path}: there is no curve to draw; the runs are not computed or lack the metric")
    return save_figure(figure_of(shown), path)


def figure_of(charts: Iterable[Chart]) -> Any:
    """The same as a matplotlib figure."""
    panels = [(chart, facet, curves) for chart in charts for facet, curves in chart.facets.items()]
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    names = list(dict.fromkeys(curve.name for _, _, curves in panels for curve in curves))
    shared = len({tuple(curve.name for curve in curves) for _, _, curves in panels}) == 1 or rows > 1
    shown = names[:MOST_NAMED]
    across = _legend_columns(shown, columns)
    below = (
        0.25 * math.ceil((len(shown) + (len(names) > len(shown))) / across) + 0.3 if shared and len(names) > 1 else 0.2
    )
    figure = picture(4.3 * columns, 3.1 * rows + below)
    figure.set_layout_engine("constrained")
    alike = len({(chart.y_label, chart.x_label, chart.logarithmic) for chart, _, _ in panels}) == 1
    grid = figure.subplots(rows, columns, squeeze=False, sharex=alike, sharey=alike)
    for panel, (chart, facet, curves) in enumerate(panels):
        axes = grid[panel // columns][panel % columns]
        for number, curve in enumerate(curves):
            _draw(axes, curve, names.index(curve.name) if shared else number, chart)
        if chart.logarithmic:
            axes.set_yscale("log")
        if chart.logarithmic_x:
            axes.set_xscale("log")
        axes.set_title(facet or chart.title, fontsize=10)
        lowest = panel + columns >= len(panels)
        if lowest or not alike:
            axes.set_xlabel(chart.x_label)
            axes.tick_params(labelbottom=True)
        if panel % columns == 0 or not alike:
            axes.set_ylabel(chart.y_label)
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if not shared and len(curves) > 1:
            axes.legend(fontsize=8, frameon=False)
    for panel in range(len(panels), rows * columns):
        grid[panel // columns][panel % columns].set_axis_off()
    bands = list(dict.fromkeys(chart.band for chart, _, curves in panels if any(curve.low for curve in curves)))
    if shared and len(names) > 1:
        _legend(figure, names, panels[0][0].marks, across, "; ".join(filter(None, bands)))
    elif any(bands):
        figure.supxlabel("; ".join(filter(None, bands)), fontsize=8, color="#555555")
    return figure


def _draw(axes: Any, curve: Curve, number: int, chart: Chart) -> None:
    style = _style(number, chart.marks)
    axes.plot(curve.x, _drawable(curve.y, chart.logarithmic), label=curve.name, **style)
    if curve.low:
        low, high = (_drawable(edge, chart.logarithmic) for edge in (curve.low, curve.high))
        axes.fill_between(curve.x, low, high, color=style["color"], alpha=0.18, linewidth=0)


def _legend_columns(names: Sequence[str], columns: int) -> int:
    """How many entries fit side by side: about 13 letters to an inch at this size, beside the sample of the line."""
    longest = max(map(len, names), default=1)
    return max(1, min(len(names), int(4.3 * columns / (0.55 + longest / 13.0))))


def _legend(figure: Any, names: Sequence[str], marks: bool, across: int, title: str) -> None:
    from matplotlib.lines import Line2D

    shown = list(names[:MOST_NAMED])
    handles = [Line2D([], [], **_style(number, marks)) for number in range(len(shown))]
    if len(names) > len(shown):
        handles.append(Line2D([], [], **_style(MOST_NAMED, marks)))
        shown.append(f"{len(names) - MOST_NAMED} others")
    legend = figure.legend(handles, shown, loc="outside lower center", ncols=across, frameon=False, fontsize=9)
    if title:
        legend.set_title(title, {"size": 8})


def _drawable(values: Sequence[float], logarithmic: bool) -> list[float]:
    return [value if not logarithmic or value > SMALLEST else math.nan for value in values]


def _style(number: int, marks: bool) -> dict[str, Any]:
    if number >= MOST_NAMED:
        return {"color": OTHERS, "linestyle": "-", "linewidth": 0.8, "marker": None}
    return {
        "color": PALETTE[number % len(PALETTE)],
        "linestyle": STYLES[number // len(PALETTE) % len(STYLES)],
        "linewidth": 1.4,
        "marker": "o" if marks else None,
        "markersize": 4,
    }

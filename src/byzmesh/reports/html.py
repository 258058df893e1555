"""One self-contained HTML file: no network needed, charts by Apache ECharts (embedded), light and dark.

Tables are plain HTML, readable without scripts; `assets/report.js` adds sorting, hovering, charts, network pictures
and heatmaps from the JSON at the end of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from byzmesh.reports.charts import DARK_PALETTE, PALETTE, SMALLEST, Chart, Curve
from byzmesh.reports.provenance import Runs
from byzmesh.reports.text_table import LONG, Grid, GridCell
from byzmesh.reports.trust import Heatmap, Picture


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report; every kind of content may be empty."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    charts: tuple[Chart, ...] = ()
    heatmaps: Mapping[str, Heatmap] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Report:
    """What one file shows."""

    title: str
    text: tuple[str, ...]
    sections: tuple[Section, ...]
    runs: Runs


def to_html(report: Report) -> str:
    """The whole file."""
    data: dict[str, Any] = {}
    body = "\n".join(_section(section, data) for section in report.sections)
    links = "".join(f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in report.sections)
    data["palette"] = {"light": PALETTE, "dark": DARK_PALETTE}
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title>
<link rel="icon" href="data:,">
<style>
{_asset("report.css")}</style>
</head>
<body>
<header>
<h1>{escape(report.title)}</h1>
<button id="theme" type="button" title="Switch between light and dark">light / dark</button>
</header>
{_paragraphs(report.text)}
<nav>{links}<a href="#runs">Runs</a></nav>
<main>
{body}
{_runs(report.runs)}
</main>
<footer>Made by byzmesh. Charts: Apache ECharts (Apache License 2.0, embedded in this file).</footer>
<div id="tip" role="tooltip" hidden></div>
<script type="application/json" id="data">{_json(data)}</script>
<script>
{_asset("echarts.min.js")}
</script>
<script>
{_asset("report.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("byzmesh.reports").joinpath("assets", name).read_text("utf-8")


def _json(data: Any) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _paragraphs(text: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in text)


def _section(section: Section, data: dict[str, Any]) -> str:
    parts = [f'<section id="{escape(section.name)}">', f"<h2>{escape(section.title)}</h2>", _paragraphs(section.text)]
    parts += [_grid(grid) for grid in section.grids]
    for kind, items in (
        ("chart", [_chart(chart) for chart in section.charts if chart.facets]),
        ("network", [_picture(picture) for picture in section.pictures]),
        ("heatmap", [_heatmap(section.heatmaps)] if section.heatmaps else []),
    ):
        if items:
            parts.append(f'<div class="panels {kind}s">')
            for item in items:
                name = f"{kind}-{len(data)}"
                data[name] = {"kind": kind, **item}
                parts.append(_panel(name, kind, item))
            parts.append("</div>")
    return "\n".join([*parts, "</section>"])


def _panel(name: str, kind: str, item: Mapping[str, Any]) -> str:
    facets = list(item.get("facets", {}))
    options = "".join(f"<option>{escape(facet)}</option>" for facet in facets)
    choice = f'<select aria-label="choose" data-for="{name}">{options}</select>' if len(facets) > 1 else ""
    title = escape(item["title"] + (f": {facets[0]}" if len(facets) == 1 and facets[0] else ""))
    band = f"<small>{escape(item['band'])}</small>" if item.get("band") else ""
    return (
        f'<figure><figcaption>{title} {choice}{band}</figcaption><div class="plot {kind}" id="{name}" role="img" '
        f'aria-label="{title}"></div></figure>'
    )


def _grid(grid: Grid) -> str:
    head = "".join(_heading(word) for word in (grid.corner, *grid.columns))
    body = "\n".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(_cell(cell) for cell in cells)}</tr>'
        for label, cells in grid.rows
    )
    note = f'<p class="note">{escape(grid.note)}</p>' if grid.note else ""
    return (
        f'<h3>{escape(grid.title)}</h3>\n<div class="scroll"><table class="sortable" id="grid-{escape(grid.name)}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{_legend(grid)}{note}"
    )


def _heading(word: str) -> str:
    return f'<th scope="col" aria-sort="none"><button type="button">{escape(word)}</button></th>'


def _cell(cell: GridCell) -> str:
    value = "" if math.isnan(cell.value) else f' data-v="{cell.value!r}"'
    tip = f' data-tip="{escape(cell.tip)}" tabindex="0"' if cell.tip else ""
    classes = [f"t-{cell.tone}"] * bool(cell.tone) + ["words"] * (len(cell.text) > LONG)
    tone = f' class="{" ".join(classes)}"' if classes else ""
    detail = f"<small>{escape(cell.detail)}</small>" if cell.detail else ""
    text = f"<b>{escape(cell.text)}</b>" if detail or cell.best else escape(cell.text)
    return f"<td{tone}{value}{tip}>{text}{detail}</td>"


def _legend(grid: Grid) -> str:
    used = {cell.tone for _, cells in grid.rows for cell in cells}
    shown = [f'<span class="t-{tone}">{escape(words)}</span>' for tone, words in grid.legend.items() if tone in used]
    return f'<p class="legend">{"".join(shown)}</p>' if shown else ""


def _chart(chart: Chart) -> dict[str, Any]:
    facets = {facet: [_curve(curve, chart.logarithmic) for curve in curves] for facet, curves in chart.facets.items()}
    names = list(dict.fromkeys(curve.name for curves in chart.facets.values() for curve in curves))
    return {
        "names": names,
        "title": chart.title,
        "x": chart.x_label,
        "y": chart.y_label,
        "log": chart.logarithmic,
        **({"xlog": True} if chart.logarithmic_x else {}),
        "marks": chart.marks,
        "band": chart.band if any(curve.low for curves in chart.facets.values() for curve in curves) else "",
        "facets": facets,
    }


def _curve(curve: Curve, logarithmic: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": curve.name, "points": _points(curve.x, curve.y, logarithmic)}
    if curve.low:
        shown["low"] = _points(curve.x, curve.low, logarithmic)
        shown["high"] = _points(curve.x, curve.high, logarithmic)
    return shown


def _points(x: Iterable[float], y: Iterable[float], logarithmic: bool) -> list[list[float | None]]:
    """(x, y) pairs rounded to five digits; a value that cannot be drawn is a gap."""
    return [
        [
            float(f"{at:.8g}"),
            float(f"{value:.5g}") if math.isfinite(value) and (value > SMALLEST or not logarithmic) else None,
        ]
        for at, value in zip(x, y)
    ]


def _picture(picture: Picture) -> dict[str, Any]:
    return {
        "title": picture.title,
        "places": picture.places,
        "links": picture.links,
        "liars": picture.liars,
    }


def _heatmap(heatmaps: Mapping[str, Heatmap]) -> dict[str, Any]:
    facets = {
        name: {"senders": m.senders, "receivers": m.receivers, "liars": m.liars, "values": m.values}
        for name, m in heatmaps.items()
    }
    return {"title": "Trust: share of rounds in which a message was not cut", "facets": facets}


def _runs(runs: Runs) -> str:
    common = "".join(f"<tr><th>{escape(path)}</th><td>{escape(value)}</td></tr>" for path, value in runs.common.items())
    origins = "".join(
        f"<tr><th>{number}</th><td>{escape('; '.join(f'{name} {value}' for name, value in origin.items()))}</td></tr>"
        for number, origin in enumerate(runs.origins, 1)
    )
    heads = "".join(_heading(word) for word in ("run", "what", "status", "rounds", "seconds", "origin", "own settings"))
    body = "\n".join(
        f"<tr><td><code title='{key}'>{key[:12]}</code></td><td>{escape(what)}</td><td>{escape(status)}</td>"
        f"<td data-v='{rounds}'>{rounds:,}</td><td data-v='{seconds}'>{seconds:.1f}</td><td data-v='{origin}'>{origin}"
        f"</td><td class='own'>{escape(own)}</td></tr>"
        for key, what, status, rounds, seconds, origin, own in runs.rows
    )
    return f"""<section id="runs">
<h2>Runs: settings and provenance</h2>
<h3>Settings that all {len(runs.rows)} runs share</h3>
<div class="scroll"><table class="plain">{common}</table></div>
<h3>Origins</h3>
<div class="scroll"><table class="plain">{origins}</table></div>
<details><summary>Every run ({len(runs.rows)})</summary>
<div class="scroll"><table class="sortable runs"><thead><tr>{heads}</tr></thead>
<tbody>{body}</tbody></table></div></details>
</section>"""

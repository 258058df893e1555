"""Writes the files of a report: Markdown, LaTeX, CSV, PNG and PDF, and one HTML file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from byzmesh.files import write
from byzmesh.reports.charts import Chart, draw_charts
from byzmesh.reports.html import Report, to_html
from byzmesh.reports.text_table import Grid, to_latex, to_markdown


def write_report(content: Report, path: Path) -> Path:
    """Write the HTML file."""
    return write(path, to_html(content))


def write_grids(grids: Sequence[Grid], stem: Path) -> list[Path]:
    """Write tables as Markdown and LaTeX."""
    if not grids:
        return []
    return [
        write(stem.with_suffix(".md"), "\n".join(to_markdown(grid) for grid in grids)),
        write(stem.with_suffix(".tex"), "\n".join(to_latex(grid) for grid in grids)),
    ]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a line of column names, then the rows."""
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return write(path, content.getvalue())


def write_charts(charts: Sequence[Chart], out: Path, target: str) -> list[Path]:
    """Write PNG and PDF: charts with one facet share a figure, each chart with several facets gets its own."""
    single = [chart for chart in charts if len(chart.facets) == 1]
    several = [chart for chart in charts if len(chart.facets) > 1]
    figures = [(target, single)] if single else []
    figures += [(f"{target}-{chart.title.lower().replace(' ', '-')}", [chart]) for chart in several]
    return [draw_charts(shown, out / f"{name}{suffix}") for name, shown in figures for suffix in (".png", ".pdf")]

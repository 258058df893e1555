"""Everything a reproduction or a sweep leaves on disk: Markdown, LaTeX, CSV, PNG and PDF, and the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from byzmesh.errors import ConfigError
from byzmesh.network import network
from byzmesh.reports.charts import Chart, draw_charts
from byzmesh.reports.html import Report, to_html
from byzmesh.reports.text_table import Grid, to_csv, to_latex, to_markdown
from byzmesh.studies.paper.published import FILES
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.report import Reproduction, report, sections
from byzmesh.studies.paper.results import other_seeds, write_readings, write_results

GRAPHS = {
    "figure-2": ("paper/two-castle-3",),
    "figure-3": ("paper/two-castle", "paper/octopus"),
    "table-5": ("paper/er-12",),
}


def write_reproduction(shown: Reproduction, out: Path) -> list[Path]:
    """All files of a reproduction; the paths written, `report.html` last."""
    written = []
    folder(out)
    parts = sections(shown)
    for target, section in parts.items():
        written += write_grids(section.grids, out / target)
        if shown.of(target) and target not in FILES:
            written.append(write_readings(out / f"{target}.csv", shown.of(target)))
        if target == "table-1":
            written.append(_write(out / "table-1.csv", to_csv(section.grids[0])))
        written += write_charts(section.charts, out, target)
        for name in GRAPHS.get(target, ()):
            for suffix in (".png", ".pdf"):
                written.append(network(name).draw(out / f"{target}-{name.removeprefix('paper/')}{suffix}"))
    compared = [reading for reading in shown.readings if reading.target in FILES]
    if compared:
        written.append(write_results(out / "results.csv", compared))
        others = other_seeds(shown.store, compared)
        if others:
            written.append(write_results(out / "seeds.csv", others))
        notes = out / "notes.md"
        text = readme(compared + others, notes.read_text("utf-8") if notes.exists() else "")
        written.append(_write(out / "README.md", text))
    written.append(write_report(report(shown, parts), out / "report.html"))
    return written


def write_report(content: Report, path: Path) -> Path:
    """The HTML file."""
    return _write(path, to_html(content))


def write_grids(grids: Sequence[Grid], stem: Path) -> list[Path]:
    """Markdown and LaTeX of some tables."""
    if not grids:
        return []
    return [
        _write(stem.with_suffix(".md"), "\n".join(to_markdown(grid) for grid in grids)),
        _write(stem.with_suffix(".tex"), "\n".join(to_latex(grid) for grid in grids)),
    ]


def write_charts(charts: Sequence[Chart], out: Path, target: str) -> list[Path]:
    """PNG and PDF: charts of one facet side by side in one figure, each chart of several in its own."""
    single = [chart for chart in charts if len(chart.facets) == 1]
    several = [chart for chart in charts if len(chart.facets) > 1]
    figures = [(target, single)] if single else []
    figures += [(f"{target}-{chart.title.lower().replace(' ', '-')}", [chart]) for chart in several]
    return [draw_charts(shown, out / f"{name}{suffix}") for name, shown in figures for suffix in (".png", ".pdf")]


def folder(path: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"folder {path} cannot be made ({error.strerror}); give another --out") from None
    return path


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}); give another --out") from None
    return path

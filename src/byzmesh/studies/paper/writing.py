"""Writes the files of a reproduction: tables, figures, the numbers as CSV, its README and the HTML report."""

from __future__ import annotations

from pathlib import Path

from byzmesh.files import folder, write
from byzmesh.networks import network
from byzmesh.reports.text_table import to_csv
from byzmesh.reports.writing import write_charts, write_grids, write_report
from byzmesh.studies.paper.published import FILES
from byzmesh.studies.paper.readme import readme
from byzmesh.studies.paper.report import Reproduction, report, sections
from byzmesh.studies.paper.results import other_seeds, write_results
from byzmesh.studies.readings import write_readings

GRAPHS = {
    "figure-2": ("paper/two-castle-3",),
    "figure-3": ("paper/two-castle", "paper/octopus"),
    "table-5": ("paper/er-12",),
}


def write_reproduction(shown: Reproduction, out: Path) -> list[Path]:
    """Write all files of a reproduction; returns their paths, `report.html` last."""
    written = []
    folder(out)
    parts = sections(shown)
    for target, section in parts.items():
        written += write_grids(section.grids, out / target)
        if shown.of(target) and target not in FILES:
            save = write_results if target == "outside" else write_readings
            written.append(save(out / f"{target}.csv", shown.of(target)))
        if target == "table-1":
            written.append(write(out / "table-1.csv", to_csv(section.grids[0])))
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
        text = readme(compared + others + shown.of("outside"), notes.read_text("utf-8") if notes.exists() else "")
        written.append(write(out / "README.md", text))
    written.append(write_report(report(shown, parts), out / "report.html"))
    return written

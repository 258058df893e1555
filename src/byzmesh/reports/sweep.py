"""The report of a user's sweep: the table, the curves, the networks, who trusted whom, and every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byzmesh.networks import Network
from byzmesh.reports.charts import ROUND, Chart, run_chart
from byzmesh.reports.html import Report, Section
from byzmesh.reports.pivot import Pivot, pivot_grid
from byzmesh.reports.provenance import describe
from byzmesh.reports.trust import Heatmap, Picture, heatmap, picture
from byzmesh.store import Store
from byzmesh.store.keys import dump
from byzmesh.training.metrics import BYTES, UNASKED, metric_of

MOST_PICTURES = 12
MOST_HEATMAPS = 60


def sweep_report(store: Store, table: Pivot, title: str = "byzmesh: sweep") -> Report:
    """A report of the runs of a table."""
    names = {key: f"{row}, {column}" for (row, column), cell in table.cells.items() for key in cell.keys}
    runs = [run for run in store.list() if run.key in names]
    recorded = dict.fromkeys(name for run in runs for name in run.final)
    shown = [name for name in recorded if metric_of(name).overview]
    shown += [name for name in recorded if name not in UNASKED]
    charts = [sweep_chart(store, table, metric) for metric in dict.fromkeys((table.metric, *shown))]
    if BYTES in recorded:
        charts.insert(1, sweep_chart(store, table, table.metric, BYTES))
    sections = [Section(name="table", title="Table", text=(), grids=(pivot_grid(table),), charts=tuple(charts))]
    nets = {dump(run.config["network"]): run.config["network"] for run in runs if "network" in run.config}
    pictures = tuple(drawn for spec in list(nets.values())[:MOST_PICTURES] if (drawn := _picture(spec)) is not None)
    trust = _trust(store, table)
    if pictures or trust:
        more = len(nets) - MOST_PICTURES
        text = (f"{more} more networks are not drawn.",) if more > 0 else ()
        sections.append(
            Section(name="networks", title="Networks and trust", text=text, heatmaps=trust, pictures=pictures)
        )
    done = sum(run.status == "finished" for run in runs)
    lead = f"{len(runs)} runs, {done} finished. Store: {store.path.name}."
    return Report(title, (lead,), tuple(sections), describe(runs, names))


def sweep_chart(store: Store, table: Pivot, metric: str, over: str = ROUND) -> Chart:
    """Curves over the rounds, or another metric: a facet per column of the table, a curve per row, seeds averaged."""
    finished = {run.key for run in store.list(status="finished")}
    groups: dict[str, dict[str, list[str]]] = {}
    for (row, column), cell in table.cells.items():
        keys = [key for key in cell.keys if key in finished]
        if keys:
            groups.setdefault(column, {})[row] = keys
    title = metric_of(metric).words.capitalize()
    return run_chart(store, groups, metric, title if over == ROUND else f"{title} over {metric_of(over).words}", over)


def _picture(spec: Mapping[str, Any]) -> Picture | None:
    net = Network.from_spec(spec)
    return picture(net, f"{net.name}, {len(net.byzantine)} lying")


def _trust(store: Store, table: Pivot) -> dict[str, Heatmap]:
    heatmaps: dict[str, Heatmap] = {}
    for (row, column), cell in table.cells.items():
        shown = heatmap(store, cell.keys[0])
        if shown is not None and len(heatmaps) < MOST_HEATMAPS:
            heatmaps[f"{row}, {column}"] = shown
    return heatmaps

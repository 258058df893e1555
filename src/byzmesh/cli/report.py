"""`byzmesh report`: the runs of a store as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, Columns, Last, Metric, Plugins, Rows, StorePath, Where

ORDER = 90


def command(
    store: StorePath = STORE,
    rows: Rows = "rule",
    columns: Columns = "attack",
    metric: Metric = "accuracy",
    last: Last = None,
    where: Where = None,
    plugin: Plugins = None,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "byzmesh: sweep",
) -> None:
    """Write a self-contained HTML report: table, curves, networks, trust per edge, settings and provenance.

    Example: byzmesh report --store runs.db --rows rule --columns attack --out report.html
    """
    from byzmesh.config.filters import filters
    from byzmesh.plugins import load_plugins
    from byzmesh.reports.pivot import pivot
    from byzmesh.reports.sweep import sweep_report
    from byzmesh.reports.writing import write_report
    from byzmesh.store import open_store

    load_plugins(plugin or ())
    with open_store(store, readonly=True) as opened:
        table = pivot(opened, rows, columns, metric=metric, last=last, where=filters(opened, where))
        write_report(sweep_report(opened, table, title), out)
    typer.echo(f"{out} written")

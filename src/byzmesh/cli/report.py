"""`byzmesh report`: the runs of a store as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StorePath = Annotated[Path, typer.Option("--store", help="Store of runs.")]
Rows = Annotated[str, typer.Option("--rows", help="Config keys of the rows, e.g. rule or rule,rule.tau.")]
Columns = Annotated[str, typer.Option("--columns", help="Config keys of the columns, e.g. attack or network.")]
Metric = Annotated[str, typer.Option("--metric", help="accuracy, worst_accuracy, loss, consensus_error, ...")]
Last = Annotated[int, typer.Option("--last", help="A run's value is the mean of its last so many evaluations.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="Only runs with this config value, e.g. rule.name=IOS; repeatable.")
]
STORE = Path("runs.db")


def command(
    store: StorePath = STORE,
    rows: Rows = "rule",
    columns: Columns = "attack",
    metric: Metric = "accuracy",
    last: Last = 10,
    where: Where = None,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "byzmesh: sweep",
) -> None:
    """Write a self-contained HTML report: table, curves, networks, trust per edge, settings and provenance.

    Example: byzmesh report --store runs.db --rows rule --columns attack --out report.html
    """
    from byzmesh.cli.show_runs import parse_where
    from byzmesh.reports.pivot import pivot
    from byzmesh.reports.sweep import sweep_report
    from byzmesh.reports.writing import write_report
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        table = pivot(opened, rows, columns, metric=metric, last=last, where=parse_where(where or ()))
        write_report(sweep_report(opened, table, title), out)
    typer.echo(f"{out} written")

"""`byzmesh plot`: curves of the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import STORE, Columns, Metric, Plugins, Rows, StorePath, Where

ORDER = 80


def command(
    store: StorePath = STORE,
    rows: Rows = "rule",
    columns: Columns = "attack",
    metric: Metric = "accuracy",
    over: Annotated[str, typer.Option(help="What the horizontal axis shows: round, or e.g. bytes_sent.")] = "round",
    where: Where = None,
    plugin: Plugins = None,
    out: Annotated[Path, typer.Option(help="File to write: .png, .pdf or .svg.")] = Path("plot.png"),
) -> None:
    """Draw a metric over the rounds, or over what was sent: a panel per column, a curve per row, seeds averaged.

    Example: byzmesh plot --store runs.db --metric consensus_error --out curves.pdf

    Example: byzmesh plot --store runs.db --rows case --over bytes_sent --out bytes.pdf
    """
    from byzmesh.config.filters import filters
    from byzmesh.plugins import load_plugins
    from byzmesh.reports.charts import draw_charts
    from byzmesh.reports.pivot import pivot
    from byzmesh.reports.sweep import sweep_chart
    from byzmesh.store import open_store

    load_plugins(plugin or ())
    with open_store(store, readonly=True) as opened:
        table = pivot(opened, rows, columns, metric=metric, where=filters(opened, where))
        draw_charts([sweep_chart(opened, table, metric, over)], out)
    typer.echo(f"{out} written")

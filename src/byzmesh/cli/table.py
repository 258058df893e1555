"""`byzmesh table`: the runs of a store as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from byzmesh.cli._options import STORE, Columns, Last, Metric, Plugins, Rows, StorePath, Where

ORDER = 70


def command(
    store: StorePath = STORE,
    rows: Rows = "rule",
    columns: Columns = "attack",
    metric: Metric = "accuracy",
    last: Last = None,
    where: Where = None,
    plugin: Plugins = None,
    format: Annotated[str, typer.Option(help="text, markdown, latex or csv.")] = "text",
) -> None:
    """Print a table of mean ± standard deviation over the seeds; diverged and failed runs are shown, never averaged.

    Example: byzmesh table --store runs.db --rows rule --columns attack --format latex > table.tex
    """
    from byzmesh.checks import choice
    from byzmesh.cli._console import wide_console
    from byzmesh.config.filters import filters
    from byzmesh.plugins import load_plugins
    from byzmesh.reports.pivot import pivot, pivot_csv, pivot_grid
    from byzmesh.reports.text_table import to_latex, to_markdown, to_rich
    from byzmesh.store import open_store

    choice("--format", format, ("text", "markdown", "latex", "csv"))
    load_plugins(plugin or ())
    with open_store(store, readonly=True) as opened:
        table = pivot(opened, rows, columns, metric=metric, last=last, where=filters(opened, where))
    if format == "text":
        wide_console().print(to_rich(pivot_grid(table)))
    elif format == "csv":
        typer.echo(pivot_csv(table), nl=False)
    else:
        typer.echo((to_markdown if format == "markdown" else to_latex)(pivot_grid(table)), nl=False)

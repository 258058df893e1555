"""`byzmesh reproduce`: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    target: Annotated[
        str, typer.Argument(help="table-1 ... table-6, figure-1 ... figure-4, misjudged-f, examples, claims, or all.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="5,000 rounds per run: minutes instead of hours.")] = False,
    store: Annotated[Path, typer.Option(help="Store of runs; made if there is none.")] = Path("runs.db"),
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and the report.")] = Path("reproduction"),
    workers: Annotated[int | None, typer.Option(help="Processes on this machine (default: one per core).")] = None,
    dask: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster, e.g. tcp://host:8786.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds per cell; the paper has one.")] = 1,
    rules: Annotated[str, typer.Option(help="Only these rules, e.g. IOS,FABA (default: all).")] = "",
    attacks: Annotated[str, typer.Option(help="Only these attacks, e.g. none,alie (default: all).")] = "",
    run: Annotated[bool, typer.Option("--run/--no-run", help="--no-run: show what the store holds.")] = True,
) -> None:
    """Reproduce a table or figure of the paper, with the published number beside each of ours.

    Every run is kept in the store: Ctrl-C stops, the same command goes on, and no cell is computed twice.

    Example: byzmesh reproduce table-3 --quick
    """
    from byzmesh.cli.show_reproduction import names, print_reproduction, table_1_rows
    from byzmesh.cli.show_sweep import progress
    from byzmesh.experiments.reproduce import reproduce
    from byzmesh.reports.files import folder, write_reproduction
    from byzmesh.reports.paper import Reproduction
    from byzmesh.reports.results import Entry, collect
    from byzmesh.store import open_store

    folder(out)
    with progress() as show:
        done = reproduce(
            target,
            store,
            quick=quick,
            seeds=seeds,
            run=run,
            workers=workers,
            dask=dask,
            rules=names(rules),
            attacks=names(attacks),
            show=show,
        )
    if done.outcome is not None and done.outcome.interrupted:
        typer.echo("Stopped. Every run keeps what it has done; the same command again goes on from there.", err=True)
        raise typer.Exit(130)
    with open_store(store, readonly=True) as opened:
        entries = [Entry(cell.target, cell.rule, cell.attack, key, cell.variant) for cell, key in done.cells]
        readings = collect(opened, entries)
        shown = Reproduction(opened, done.targets, readings, table_1_rows(done.targets, quick), quick)
        written = write_reproduction(shown, out)
        print_reproduction(shown, written)

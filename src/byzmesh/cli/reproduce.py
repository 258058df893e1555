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
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, figures and the report (default: reproduction/TARGET).")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes on this machine (default: one per core).")] = None,
    dask: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster, e.g. tcp://host:8786.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds per cell; the paper has one.")] = 1,
    rules: Annotated[str, typer.Option(help="Only these rules, e.g. IOS,FABA (default: all).")] = "",
    attacks: Annotated[str, typer.Option(help="Only these attacks, e.g. none,alie (default: all).")] = "",
    run: Annotated[bool, typer.Option("--run/--no-run", help="--no-run: show what the store holds.")] = True,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute failed runs once more.")] = False,
) -> None:
    """Reproduce a table or figure of the paper, with the published number beside each of ours.

    Every run is kept in the store: Ctrl-C stops, the same command goes on, and no cell is computed twice.

    Example: byzmesh reproduce table-3 --quick
    """
    from byzmesh.cli.show_reproduction import names, print_reproduction, table_1_rows
    from byzmesh.cli.show_sweep import progress
    from byzmesh.files import folder
    from byzmesh.store import config_key, open_store
    from byzmesh.studies.paper.cells import TARGETS, choose, configs
    from byzmesh.studies.paper.report import Reproduction
    from byzmesh.studies.paper.results import Entry, collect
    from byzmesh.studies.paper.writing import write_reproduction
    from byzmesh.sweeps.sweep import sweep

    cells = choose(target, quick=quick, seeds=seeds, rules=names(rules), attacks=names(attacks))
    folder(out := out or Path("reproduction") / target)
    if run:
        with progress() as show:
            outcome = sweep(configs(cells), store, workers=workers, dask=dask, retry_failed=retry_failed, show=show)
        if outcome.interrupted:
            typer.echo("Stopped. Every run keeps what it has done; the same command goes on from there.", err=True)
            raise typer.Exit(130)
    targets = TARGETS if target == "all" else (target,)
    with open_store(store, readonly=True) as opened:
        entries = [
            Entry(cell.target, cell.rule, cell.attack, config_key(cell.config), cell.variant, cell.seed)
            for cell in cells
        ]
        readings = collect(opened, entries)
        shown = Reproduction(opened, targets, readings, table_1_rows(targets, quick), quick)
        written = write_reproduction(shown, out)
        print_reproduction(shown, written)
    broken = [reading for reading in readings if reading.status == "failed" and not reading.infeasible]
    if broken:
        typer.echo(f"{len(broken)} runs failed, e.g. {broken[0].failure}; again: --retry-failed", err=True)
        raise typer.Exit(1)

"""`byzmesh reproduce`: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.cli._options import (
    STORE,
    CheckpointSeconds,
    Compute,
    Dask,
    NewStorePath,
    RetryFailed,
    Workers,
    names,
)
from byzmesh.files import CHECKPOINT_SECONDS

if TYPE_CHECKING:
    from byzmesh.studies.paper.report import Reproduction

ORDER = 100


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="table-1 ... table-6, figure-1 ... figure-4, misjudged-f, examples, claims, outside, or all."
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="5,000 rounds per run: minutes instead of hours.")] = False,
    store: NewStorePath = STORE,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, figures and the report (default: reproduction/TARGET).")
    ] = None,
    workers: Workers = None,
    dask: Dask = None,
    seeds: Annotated[int, typer.Option(help="Seeds per cell; the paper has one.")] = 1,
    rules: Annotated[str, typer.Option(help="Only these rules, e.g. IOS,FABA (default: all).")] = "",
    attacks: Annotated[str, typer.Option(help="Only these attacks, e.g. none,alie (default: all).")] = "",
    run: Compute = True,
    retry_failed: RetryFailed = False,
    checkpoint_seconds: CheckpointSeconds = CHECKPOINT_SECONDS,
) -> None:
    """Reproduce a table or figure of the paper, with the published number beside each of ours.

    Every run is kept in the store: Ctrl-C stops, the same command continues, and no cell is computed twice.

    Example: byzmesh reproduce table-3 --quick
    """
    from byzmesh.cli._progress import progress, stop_if_interrupted
    from byzmesh.files import folder
    from byzmesh.store import open_store
    from byzmesh.studies.paper.cells import TARGETS, choose, configs
    from byzmesh.studies.paper.report import Reproduction
    from byzmesh.studies.paper.writing import write_reproduction
    from byzmesh.studies.readings import collect
    from byzmesh.sweeps.sweep import sweep

    cells = choose(target, quick=quick, seeds=seeds, rules=names(rules), attacks=names(attacks))
    folder(out := out or Path("reproduction") / target)
    if run:
        with progress() as show:
            swept = sweep(
                configs(cells),
                store,
                workers=workers,
                dask=dask,
                retry_failed=retry_failed,
                checkpoint_seconds=checkpoint_seconds,
                show=show,
            )
        stop_if_interrupted(swept)
    targets = TARGETS if target == "all" else (target,)
    with open_store(store, readonly=True) as opened:
        readings = collect(opened, cells)
        shown = Reproduction(
            store=opened, targets=targets, readings=readings, table_1=table_1_rows(targets, quick), quick=quick
        )
        written = write_reproduction(shown, out)
        print_reproduction(shown, written)
    broken = [reading for reading in readings if reading.status == "failed" and not reading.infeasible]
    if broken:
        typer.echo(f"{len(broken)} runs failed, e.g. {broken[0].failure}; retry with --retry-failed", err=True)
        raise typer.Exit(1)


def table_1_rows(targets: Sequence[str], quick: bool) -> list[Any]:
    """The records of Table I, which is computed directly; empty unless it is asked for."""
    if "table-1" not in targets:
        return []
    from byzmesh.studies.paper.table1 import table_1

    return table_1(budget=2_000 if quick else 20_000)


def print_reproduction(shown: Reproduction, written: Sequence[Path]) -> None:
    """All tables, the counts of agreeing cells, and where the files are."""
    from byzmesh.cli._console import wide_console
    from byzmesh.reports.text_table import to_rich
    from byzmesh.studies.paper.agreement import agreement_grid, compare
    from byzmesh.studies.paper.report import sections
    from byzmesh.studies.paper.text import quick_text

    console = wide_console()
    for section in sections(shown).values():
        for grid in section.grids:
            console.print(to_rich(grid))
    cells = compare(shown.readings)
    if cells and not shown.quick:
        console.print(to_rich(agreement_grid(cells)))
    for text in quick_text(shown.targets) if shown.quick else ():
        console.print(text, highlight=False)
    waiting = sum(reading.status not in ("finished", "diverged", "failed") for reading in shown.readings)
    if waiting:
        console.print(f"{waiting} cells are not computed yet.", highlight=False)
    folder = written[-1].parent
    console.print(f"{len(written)} files in {folder}; open {written[-1]}", highlight=False, soft_wrap=True)

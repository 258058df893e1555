"""`byzmesh sweep`: all runs of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byzmesh.cli._options import (
    STORE,
    CheckpointSeconds,
    Dask,
    Json,
    KeepModels,
    NewStorePath,
    Plugins,
    Recompute,
    RetryFailed,
    Workers,
)
from byzmesh.errors import ConfigError
from byzmesh.files import CHECKPOINT_SECONDS

if TYPE_CHECKING:
    from byzmesh.config.cell import Cell
    from byzmesh.sweeps.dask import Tls
    from byzmesh.sweeps.estimate import Planned
    from byzmesh.sweeps.sweep import Swept

ORDER = 60

MOST_LINES = 60
"""The most runs that are printed one by one."""


def command(
    grid: Annotated[Path, typer.Argument(help="YAML file of the grid; see examples/grid-*.yaml.", show_default=False)],
    store: NewStorePath = STORE,
    plugin: Plugins = None,
    workers: Workers = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only list the runs, with an estimate of the time.")] = False,
    as_json: Json = False,
    retry_failed: RetryFailed = False,
    recompute: Recompute = False,
    keep_models: KeepModels = "none",
    checkpoint_seconds: CheckpointSeconds = CHECKPOINT_SECONDS,
    dask: Dask = None,
    tls_ca: Annotated[str | None, typer.Option(help="Certificate of the cluster's authority (PEM).")] = None,
    tls_cert: Annotated[str | None, typer.Option(help="This client's certificate (PEM).")] = None,
    tls_key: Annotated[str | None, typer.Option(help="This client's private key (PEM).")] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard event files.")] = None,
    mlflow: Annotated[str | None, typer.Option(help="Tracking URI or folder of MLflow.")] = None,
    wandb: Annotated[Path | None, typer.Option(help="Folder for offline runs of Weights & Biases.")] = None,
) -> None:
    """Compute the runs of a grid that are not in the store yet. Ctrl-C stops; the same command continues.

    Example: byzmesh sweep examples/grid-two-castle.yaml --store runs.db --workers 2
    """
    from byzmesh.cli._progress import progress
    from byzmesh.cli._status import status
    from byzmesh.config.grid import read_grid
    from byzmesh.plugins import load_plugins
    from byzmesh.sweeps.estimate import plan as plan_runs
    from byzmesh.sweeps.sweep import cores, sweep

    cells = read_grid(grid, load_plugins(plugin or ()))
    print_notes(cells)
    if plan:
        with status() as tell:
            planned = plan_runs(cells, store, retry_failed=retry_failed, recompute=recompute, tell=tell)
        print_plan(planned, cores() if workers is None else workers, as_json=as_json)
        return
    with progress() as show:
        swept = sweep(
            [cell.config for cell in cells],
            store,
            workers=workers,
            dask=dask,
            tls=tls_of(tls_ca, tls_cert, tls_key),
            retry_failed=retry_failed,
            recompute=recompute,
            keep_models=keep_models,
            checkpoint_seconds=checkpoint_seconds,
            tensorboard=tensorboard,
            mlflow=mlflow,
            wandb=wandb,
            show=show,
        )
    print_swept(swept, store, as_json=as_json)
    raise typer.Exit(1 if swept.failed else 0)


def print_notes(cells: Sequence[Cell]) -> None:
    """Notes on the runs of a grid."""
    from collections import Counter

    for note, count in Counter(cell.note for cell in cells if cell.note).items():
        typer.echo(f"{count} of {len(cells)} runs: {note}", err=True)


def tls_of(ca: str | None, cert: str | None, key: str | None) -> Tls | None:
    """The three TLS files, or None if none is given."""
    from byzmesh.sweeps.dask import Tls

    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise ConfigError("--tls-ca, --tls-cert and --tls-key go together; give all three")
    return Tls(ca, cert, key)


def print_plan(planned: Sequence[Planned], workers: int, *, as_json: bool) -> None:
    """Print the runs of a grid, each with its status and estimated seconds."""
    from byzmesh.cli._console import narrow_table, print_objects, wide_console, words
    from byzmesh.cli._progress import clock
    from byzmesh.sweeps.estimate import total_seconds
    from byzmesh.sweeps.reasons import summary

    if as_json:
        facts = ("status", "seconds", "problem", "because")
        print_objects({**vars(run.cell), **{name: getattr(run, name) for name in facts}} for run in planned)
        return
    console = wide_console()
    axes = list(dict.fromkeys(name for run in planned for name in run.cell.labels))
    table = narrow_table("key", "status", *axes, "rounds", "time")
    for run in planned:
        cells = [words(run.cell.labels.get(name, "")) for name in axes]
        estimate = clock(run.seconds) if run.seconds is not None else "cannot run"
        table.add_row(run.cell.key[:12], run.status, *cells, f"{run.cell.config['rounds']}", estimate)
    console.print(table)
    for problem in dict.fromkeys(run.problem for run in planned if run.problem):
        console.print(f"cannot run: {problem}", highlight=False, markup=False)
    for text in summary(run.because for run in planned):
        console.print(text, highlight=False, markup=False)
    todo = sum(run.seconds != 0.0 for run in planned)
    length = clock(total_seconds(planned, workers))
    where = f"on {workers} processes" if workers else "in one process"
    console.print(f"{len(planned)} runs, {todo} to compute: about {length} {where}", highlight=False)


def print_swept(swept: Swept, store: Path, *, as_json: bool) -> None:
    """Print the runs of a sweep and what to do next."""
    from collections import Counter

    from rich.console import Console

    from byzmesh.cli._console import as_object, print_objects, runs_table, wide_console
    from byzmesh.cli._progress import stop_if_interrupted
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        records = [opened.get(key) for key in swept.statuses]
        if as_json:
            print_objects(as_object(run) for run in records)
        elif len(records) <= MOST_LINES:
            wide_console().print(runs_table(opened, records))
    counts = Counter(swept.statuses.values())
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    say = Console(stderr=True)
    say.print(f"{len(records)} runs: {summary}; {swept.computed} of them now. Store: {store}", highlight=False)
    stop_if_interrupted(swept)
    if counts["failed"]:
        say.print(f"To see why: byzmesh runs show KEY --store {store}. To retry: the same command with --retry-failed")

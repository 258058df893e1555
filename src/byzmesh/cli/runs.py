"""`byzmesh runs`: what a store holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="List, show, compare, delete and export stored runs.", no_args_is_help=True)

StorePath = Annotated[Path, typer.Option("--store", help="Store of runs.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="Only runs with this config value, e.g. rule.name=IOS; repeatable.")
]
Status = Annotated[
    str | None,
    typer.Option("--status", help="Only runs that are planned, running, finished, diverged, failed or interrupted."),
]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Key = Annotated[str, typer.Argument(help="Key of a run, or a unique beginning of it.", show_default=False)]
Keys = Annotated[list[str], typer.Argument(help="Keys of runs, or unique beginnings.", show_default=False)]
STORE = Path("runs.db")


@app.command("list")
def list_runs(
    store: StorePath = STORE,
    where: Where = None,
    status: Status = None,
    limit: Annotated[int | None, typer.Option(help="The latest N; 0: all (default: 100 in a table).")] = None,
    as_json: Json = False,
) -> None:
    """List runs.

    Example: byzmesh runs list --store runs.db --where rule.name=IOS --where seed=0 --status finished
    """
    from byzmesh.cli.show_runs import MOST_LINES, as_object, parse_where, print_objects, print_runs
    from byzmesh.store import open_store

    most = (None if as_json else MOST_LINES) if limit is None else limit or None
    with open_store(store, readonly=True) as opened:
        found = opened.list(parse_where(where or ()), status, most)
    if as_json:
        print_objects(as_object(run) for run in found)
    else:
        print_runs(found, most)


@app.command()
def show(key: Key, store: StorePath = STORE, as_json: Json = False) -> None:
    """Show one run: config, provenance, final metrics, failure; as JSON with all series and cut counts.

    Example: byzmesh runs show 3fa8
    """
    from byzmesh.cli.show_runs import print_run_record, whole_object
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        run = opened.get(key)
        if not as_json:
            print_run_record(run)
            return
        typer.echo(whole_object(opened, run))


@app.command()
def compare(keys: Keys, store: StorePath = STORE, as_json: Json = False) -> None:
    """Show in what runs differ, and their final metrics side by side.

    Example: byzmesh runs compare 3fa8 91c0
    """
    from byzmesh.cli.show_runs import compared, print_comparison, print_objects
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        told = opened.compare(keys)
        statuses = [opened.get(key).status for key in told.keys]
    if as_json:
        print_objects(compared(told, statuses))
    else:
        print_comparison(told)


@app.command()
def delete(
    keys: Annotated[list[str] | None, typer.Argument(help="Keys of runs, or unique beginnings.")] = None,
    store: StorePath = STORE,
    where: Where = None,
    status: Status = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs with their series and checkpoints: those named, or all that the filters choose.

    Example: byzmesh runs delete --status failed --yes
    """
    from byzmesh.cli.show_runs import parse_where
    from byzmesh.store import open_store
    from byzmesh.sweeps.checkpoints import delete_runs, find_runs

    with open_store(store) as opened:
        chosen = find_runs(opened, keys or (), parse_where(where or ()), status)
        if not yes:
            typer.confirm(f"Delete {len(chosen)} runs from {store}?", abort=True)
        delete_runs(opened, chosen)
    typer.echo(f"{len(chosen)} runs deleted")


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="File to write: .csv, .json or .parquet.", show_default=False)],
    store: StorePath = STORE,
    format: Annotated[str | None, typer.Option(help="csv, json or parquet; default: by the ending.")] = None,
    where: Where = None,
    status: Status = None,
) -> None:
    """Export runs: one line each with config and final metrics (CSV, Parquet), or with all series (JSON).

    Example: byzmesh runs export runs.csv --status finished
    """
    from byzmesh.cli.show_runs import parse_where
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        opened.export(path, format, where=parse_where(where or ()), status=status)
    typer.echo(f"{path} written")

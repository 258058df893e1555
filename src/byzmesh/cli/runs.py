"""`byzmesh runs`: the runs of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.cli._options import STORE, Json, Key, Keys, Status, StorePath, Where

if TYPE_CHECKING:
    from byzmesh.store import Comparison, RunRecord, Store

ORDER = 180

MOST_LINES = 100
"""Number of runs that a table shows by default."""

app = typer.Typer(help="List, show, compare, delete and export stored runs.", no_args_is_help=True)


@app.command("list")
def list_runs(
    store: StorePath = STORE,
    where: Where = None,
    status: Status = None,
    limit: Annotated[int | None, typer.Option(help="Only the latest N; 0: all (default: 100 in a table).")] = None,
    as_json: Json = False,
) -> None:
    """List runs; where other code computed a run again, the old one says what changed.

    Example: byzmesh runs list --store runs.db --where rule=IOS --where seed=0 --status finished
    """
    from byzmesh.cli._console import as_object, print_objects
    from byzmesh.config.changes import changes
    from byzmesh.config.filters import filters
    from byzmesh.store import open_store
    from byzmesh.store.records import superseded

    most = (None if as_json else MOST_LINES) if limit is None else limit or None
    with open_store(store, readonly=True) as opened:
        found = opened.list(filters(opened, where), status, most)
        later = superseded(opened.list())
        since = {run.key: changes(run.code, later[run.key].code) for run in found if run.key in later}
        if as_json:
            print_objects({**as_object(run), "superseded": since.get(run.key)} for run in found)
        else:
            print_runs(opened, found, most, since)


@app.command()
def show(key: Key, store: StorePath = STORE, as_json: Json = False) -> None:
    """Show one run: config, provenance, final metrics, failure; as JSON with all series and cut counts.

    Example: byzmesh runs show 3fa8
    """
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        run = opened.get(key)
        if not as_json:
            print_run_record(run)
            return
        typer.echo(whole_object(opened, run))


@app.command()
def compare(keys: Keys, store: StorePath = STORE, as_json: Json = False) -> None:
    """Show how runs differ, and their final metrics side by side.

    Example: byzmesh runs compare 3fa8 91c0
    """
    from byzmesh.cli._console import print_objects
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        comparison = opened.compare(keys)
        if as_json:
            print_objects(compared(comparison, [opened.get(key).status for key in comparison.keys]))
        else:
            print_comparison(opened, comparison)


@app.command()
def delete(
    keys: Annotated[list[str] | None, typer.Argument(help="Keys of runs, or unique beginnings.")] = None,
    store: StorePath = STORE,
    where: Where = None,
    status: Status = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete runs with their series and checkpoints: those named, or all that match the filters.

    Example: byzmesh runs delete --status failed --yes
    """
    from byzmesh.config.filters import filters
    from byzmesh.store import open_store
    from byzmesh.sweeps.checkpoints import delete_runs, find_runs

    with open_store(store) as opened:
        chosen = find_runs(opened, keys or (), filters(opened, where), status)
        if not yes:
            typer.confirm(f"Delete {len(chosen)} runs from {store}?", abort=True)
        delete_runs(opened, chosen)
    typer.echo(f"{len(chosen)} runs deleted")


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="File to write: .csv, .json or .parquet.", show_default=False)],
    store: StorePath = STORE,
    format: Annotated[
        str | None, typer.Option(help="csv, json or parquet (default: by the suffix of the file).")
    ] = None,
    where: Where = None,
    status: Status = None,
) -> None:
    """Export runs: one row each with config and final metrics (CSV, Parquet), or with all series (JSON).

    Example: byzmesh runs export runs.csv --status finished
    """
    from byzmesh.config.filters import filters
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        opened.export(path, format, where=filters(opened, where), status=status)
    typer.echo(f"{path} written")


def whole_object(store: Store, run: RunRecord) -> str:
    """A run with its series, cut counts and provenance as JSON."""
    import json

    from byzmesh.cli._console import as_object, number

    series = {name: [number(value) for value in values.tolist()] for name, values in store.series(run.key).items()}
    rest = {"provenance": run.provenance, "series": series, "edges": store.edges(run.key).tolist()}
    return json.dumps({**as_object(run), **rest}, indent=2, allow_nan=False)


def print_runs(
    store: Store, records: Sequence[RunRecord], limit: int | None, since: Mapping[str, Sequence[str]]
) -> None:
    """Print the table of runs; say so if there may be more of them."""
    from byzmesh.cli._console import runs_table, wide_console

    console = wide_console()
    console.print(runs_table(store, records, since) if records else "no such runs")
    if limit is not None and len(records) == limit:
        console.print(f"the latest {limit}; --limit 0 shows all, --where and --status filter", highlight=False)


def print_run_record(run: RunRecord) -> None:
    """Print everything about one run except its series."""
    import yaml

    from byzmesh.cli._console import wide_console
    from byzmesh.store.records import SHOWN

    console = wide_console()
    facts = {
        name: getattr(run, name) for name in (*SHOWN, "final", "config", "code", "provenance") if name != "failure"
    }
    facts |= {"started": _moment(run.started), "ended": _moment(run.ended)}
    text = yaml.safe_dump({name: value for name, value in facts.items() if value not in (None, {})}, sort_keys=False)
    console.print(text.rstrip(), highlight=False, markup=False, soft_wrap=True)
    if run.failure:
        console.print(f"failure:\n{run.failure}", highlight=False, markup=False, soft_wrap=True)


def _moment(seconds: float | None) -> str | None:
    from datetime import UTC, datetime

    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def compared(comparison: Comparison, statuses: Sequence[str]) -> list[dict[str, Any]]:
    """A comparison as `--json` prints it: one object per run."""
    from byzmesh.cli._console import number

    return [
        {
            "key": key,
            "status": status,
            "differing": {path: values[column] for path, values in comparison.differing.items()},
            "final": {name: number(numbers[column]) for name, numbers in comparison.final.items()},
        }
        for column, (key, status) in enumerate(zip(comparison.keys, statuses, strict=True))
    ]


def print_comparison(store: Store, comparison: Comparison) -> None:
    """Print runs in columns; the rows are the differing config fields, then the metrics as in `byzmesh table`."""
    from byzmesh.cli._console import narrow_table, number_of, wide_console, words
    from byzmesh.training.metrics import metric_of

    series = [store.series(key) for key in comparison.keys]
    table = narrow_table("", *(key[:12] for key in comparison.keys))
    for path, values in comparison.differing.items():
        table.add_row(path, *("" if value is None else words(value) for value in values))
    table.add_section()
    for name, last in comparison.final.items():
        reached = ("" if number is None else f"{number:g}" for number in last)
        numbers = reached if name == "round" else (number_of(recorded, name, 6) for recorded in series)
        table.add_row(name + metric_of(name).suffix, *numbers)
    wide_console().print(table)

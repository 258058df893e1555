"""`byzmesh run`: one run, computed in this process and kept in the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byzmesh.cli._options import (
    STORE,
    CheckpointSeconds,
    Config,
    Json,
    KeepModels,
    NewStorePath,
    Plugins,
    Recompute,
    Settings,
)
from byzmesh.files import CHECKPOINT_SECONDS

if TYPE_CHECKING:
    from byzmesh.store import RunRecord, Store
    from byzmesh.sweeps.queue import Backlog, Show

ORDER = 10


def command(
    config: Config,
    settings: Settings = None,
    plugin: Plugins = None,
    store: NewStorePath = STORE,
    out: Annotated[Path | None, typer.Option(help="Export config, metrics and models to this folder.")] = None,
    keep_models: KeepModels = "final",
    recompute: Recompute = False,
    checkpoint_seconds: CheckpointSeconds = CHECKPOINT_SECONDS,
    as_json: Json = False,
) -> None:
    """Train on a network under attack. The run is kept in the store: Ctrl-C stops, the same command continues.

    Example: byzmesh run examples/two-castle.yaml --set rule=krum
    """
    from byzmesh.config.advice import advice
    from byzmesh.config.overrides import load_config
    from byzmesh.plugins import load_plugins
    from byzmesh.store import open_store
    from byzmesh.sweeps.sweep import sweep

    resolved = load_config(config, settings, load_plugins(plugin or ()))
    with watch(quiet=as_json) as show:
        swept = sweep(
            [resolved],
            store,
            workers=0,
            retry_failed=True,
            recompute=recompute,
            keep_models=keep_models,
            checkpoint_seconds=checkpoint_seconds,
            show=show,
        )
    ((key, status),) = swept.statuses.items()
    with open_store(store, readonly=True) as opened:
        record = opened.get(key)
        if status == "failed":
            print_failure(record)
        if swept.interrupted:
            reached = f" after round {record.rounds} of {resolved['rounds']}" if record.rounds else ""
            say(f"Stopped{reached}. {kept_in(store, key)} The same command continues from there.")
            raise typer.Exit(130)
        print_run(opened, record, computed=swept.computed > 0, as_json=as_json)
        if out is not None:
            from byzmesh.sweeps.export import export_run

            written = export_run(opened, key, out)
            say(f"{len(written)} files in {out}: {', '.join(path.name for path in written)}")
    if told := advice(resolved):
        say(f"Note: {told}.")
    say(kept_in(store, key))
    if not swept.computed:
        say("It was already computed; --recompute computes it again.")
    raise typer.Exit(1 if status == "diverged" else 0)


def say(text: str) -> None:
    """Print a sentence for the user on stderr, apart from the result."""
    typer.echo(text, err=True)


def kept_in(store: Path, key: str) -> str:
    """A sentence that names a run's store and key."""
    return f"Run {key[:12]} is kept in {store}."


def print_failure(record: RunRecord) -> None:
    """Print a user's mistake in one line, but a bug with its whole traceback, and exit."""
    from byzmesh.errors import ConfigError

    failure = record.failure or ""
    if record.failure_kind != "bug":
        raise ConfigError(failure)
    say(failure)
    raise typer.Exit(1)


@contextmanager
def watch(*, quiet: bool) -> Iterator[Show]:
    """In a terminal, a progress bar with accuracy, CE, rounds per second and time left; notes always."""
    from byzmesh.cli._progress import clock, fresh_notes

    waiting: set[str] = set()

    def notes(backlog: Backlog) -> list[str]:
        fresh = fresh_notes(backlog)
        for key in backlog.elsewhere - waiting:
            owner = backlog.store.get(key).owner
            who = "another process" if owner is None else f"process {owner.pid} on {owner.host}"
            fresh.append(f"run {key[:12]} is being computed by {who}; waiting for it")
        waiting.update(backlog.elsewhere)
        return fresh

    if quiet or not sys.stderr.isatty():

        def plain(backlog: Backlog, record: RunRecord | None) -> None:
            for text in notes(backlog):
                say(f"note: {text}")

        yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.completed:>7.0f}/{task.total:.0f} rounds"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=1.0, facts="")

        def live(backlog: Backlog, record: RunRecord | None) -> None:
            for text in notes(backlog):
                progress.console.print(f"note: {text}", markup=False)
            for key, (_, reached) in backlog.reached.items():
                left = backlog.seconds_left
                parts = [
                    *facts(backlog.latest.get(key, {})),
                    f"{backlog.rounds_per_second:,.0f} rounds/s",
                    f"{'?' if left is None else clock(left)} left",
                ]
                progress.update(bar, total=backlog.rounds[key], completed=reached, facts="  ".join(parts))

        yield live


def facts(metrics: Mapping[str, float]) -> list[str]:
    """The main numbers in short form: the task's first metric, the metrics asked for and the consensus error."""
    from byzmesh.training.metrics import UNASKED, metric_of

    first = [name for name in metrics if name != "round"][:1]
    asked = [name for name in metrics if name not in (*UNASKED, *first)]
    parts = [f"{metric_of(name).words} {metric_of(name).text(metrics[name])}" for name in (*first, *asked)]
    error = [f"CE {metrics['consensus_error']:.1e}"] if "consensus_error" in metrics else []
    return [*parts[:1], *error, *parts[1:]]


def print_run(store: Store, run: RunRecord, *, computed: bool, as_json: bool) -> None:
    """Print a run that ended on stdout."""
    from byzmesh.cli._console import number
    from byzmesh.sweeps.forensics import honest_cut
    from byzmesh.training.final import last_evaluations, mean_of_last
    from byzmesh.training.metrics import metric_of

    series = store.series(run.key)
    mean = {name: mean_of_last(values, series["round"]) for name, values in series.items() if name != "round"}
    if as_json:
        import json

        record = {
            "key": run.key,
            "store": str(store.path),
            "computed": computed,
            "status": run.status,
            "rounds": run.rounds,
            "seconds": run.seconds,
            "final": {name: number(value) for name, value in run.final.items()},
            "mean_of_last": {name: number(value) for name, value in mean.items()},
            "metrics": {name: [number(value) for value in values.tolist()] for name, values in series.items()},
            "config": run.config,
        }
        print(json.dumps(record, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{run.config['rule']['name']} under {run.config['attack']['name']}, {run.status}")
    counted = len(last_evaluations(series["round"])) if series else 0
    for heading in ("metric", "last", f"mean of last {counted}"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    for name, value in mean.items():
        table.add_row(name, metric_of(name).text(run.final[name]), metric_of(name).text(value))
    cut = honest_cut(store, run.key)
    if cut is not None:
        table.add_row("honest messages cut", "", f"{cut:.2%}")
    rate = (run.rounds or 0) / run.seconds if run.seconds else 0.0
    table.caption = f"{run.rounds} rounds in {run.seconds or 0.0:.1f} s ({rate:.0f} rounds/s)"
    Console().print(table)

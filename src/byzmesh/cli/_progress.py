"""Progress of a sweep, for the verbs that compute many runs: live in a terminal, otherwise one line per run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import typer
from rich.console import Console

from byzmesh.cli._console import number_of
from byzmesh.store import RunRecord, Store
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.sweep import Swept

QUIET_SECONDS = 60.0
"""Without a terminal: the longest time without output."""


def clock(seconds: float) -> str:
    """A duration as text.

    >>> clock(0.26), clock(3725.0)
    ('0.3 s', '1:02:05')
    """
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def describe(store: Store, record: RunRecord) -> str:
    """A finished run in one line."""
    config = record.config
    parts = [record.key[:12], config["rule"]["name"], config["attack"]["name"], f"seed {config['seed']}", record.status]
    if record.status == "failed":
        parts.append((record.failure or "").strip().split("\n")[-1])
    elif "accuracy" in record.final:
        parts.append(f"accuracy {number_of(store.series(record.key), 'accuracy')}%")
    return "  ".join(parts)


def standing(backlog: Backlog) -> str:
    """The state of a sweep in one line."""
    done = backlog.count("finished") + backlog.count("diverged")
    left = backlog.seconds_left
    parts = [f"{done}/{len(backlog.keys)} done", f"{len(backlog.running)} running", f"{backlog.count('failed')} failed"]
    if backlog.elsewhere:
        parts.append(f"{len(backlog.elsewhere)} elsewhere")
    parts.append(f"{backlog.rounds_per_second:,.0f} rounds/s")
    parts.append(f"{'?' if left is None else clock(left)} left")
    return "  ".join(parts)


def stop_if_interrupted(swept: Swept) -> None:
    """End the program if a sweep was stopped before everything was done."""
    if swept.interrupted:
        typer.echo("Stopped. Every run keeps what it has done; the same command continues from there.", err=True)
        raise typer.Exit(130)


def fresh_notes(backlog: Backlog) -> list[str]:
    """Notes for the user that were not printed yet; marks them as printed."""
    fresh = [text for text, told in backlog.notes.items() if not told]
    backlog.notes.update(dict.fromkeys(fresh, True))
    return fresh


@contextmanager
def progress() -> Iterator[Show]:
    """Show progress on stderr: a live line in a terminal, otherwise one line for each run that ended."""
    console = Console(stderr=True)
    if sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TextColumn

        with Progress(BarColumn(), TextColumn("{task.description}"), console=console) as bar:
            task = bar.add_task("", total=1.0)

            def live(backlog: Backlog, record: RunRecord | None) -> None:
                for text in fresh_notes(backlog):
                    bar.console.print(f"note: {text}", markup=False)
                if record is not None:
                    bar.console.print(describe(backlog.store, record), highlight=False, markup=False)
                bar.update(task, completed=backlog.share, description=standing(backlog))

            yield live
        return
    last_output = time.monotonic()

    def plain(backlog: Backlog, record: RunRecord | None) -> None:
        nonlocal last_output
        for text in fresh_notes(backlog):
            print(f"note: {text}", file=sys.stderr, flush=True)
        if record is not None:
            text = describe(backlog.store, record)
            print(f"{len(backlog.ended)}/{len(backlog.keys)}  {text}", file=sys.stderr, flush=True)
        elif time.monotonic() - last_output > QUIET_SECONDS:
            print(standing(backlog), file=sys.stderr, flush=True)
        else:
            return
        last_output = time.monotonic()

    yield plain

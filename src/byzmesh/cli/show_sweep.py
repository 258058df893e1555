"""How a sweep looks in a terminal: its plan, its progress, its end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from byzmesh.cli.show_runs import as_object, narrow_table, print_objects, runs_table, wide_console, words
from byzmesh.errors import ConfigError
from byzmesh.store import RunRecord, open_store
from byzmesh.sweeps.dask import Tls
from byzmesh.sweeps.estimate import Planned, total_seconds
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.sweep import Outcome

MOST_LINES = 60
QUIET_SECONDS = 60.0
"""Where there is no terminal: how long nothing may be said."""


def tls_of(ca: str | None, cert: str | None, key: str | None) -> Tls | None:
    """The three TLS files, or none of them."""
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise ConfigError("--tls-ca, --tls-cert and --tls-key go together; give all three")
    return Tls(ca, cert, key)


def print_plan(planned: Sequence[Planned], workers: int, *, as_json: bool) -> None:
    """The runs of a grid, each with its status and estimated seconds."""
    if as_json:
        print_objects(vars(run) for run in planned)
        return
    console = wide_console()
    axes = list(dict.fromkeys(name for run in planned for name in run.label))
    table = narrow_table("key", "status", *axes, "rounds", "time")
    for run in planned:
        cells = [words(run.label.get(name, "")) for name in axes]
        estimate = _clock(run.seconds) if run.seconds is not None else "cannot run"
        table.add_row(run.key[:12], run.status, *cells, f"{run.config['rounds']}", estimate)
    console.print(table)
    for problem in dict.fromkeys(run.problem for run in planned if run.problem):
        console.print(f"cannot run: {problem}", highlight=False, markup=False)
    todo = sum(run.seconds != 0.0 for run in planned)
    clock = _clock(total_seconds(planned, workers))
    console.print(f"{len(planned)} runs, {todo} to compute: about {clock} on {workers} processes", highlight=False)


def _clock(seconds: float) -> str:
    """
    >>> _clock(0.26), _clock(3725.0)
    ('0.3 s', '1:02:05')
    """
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def describe(record: RunRecord) -> str:
    """A run that ended, in a few words."""
    config = record.config
    parts = [record.key[:12], config["rule"]["name"], config["attack"]["name"], f"seed {config['seed']}", record.status]
    if record.status == "failed":
        parts.append((record.failure or "").strip().split("\n")[-1])
    elif "accuracy" in record.final:
        parts.append(f"accuracy {100 * record.final['accuracy']:.2f}%")
    return "  ".join(parts)


def standing(backlog: Backlog) -> str:
    """How far a sweep is, in a line."""
    done = backlog.count("finished") + backlog.count("diverged")
    left = backlog.seconds_left
    parts = [f"{done}/{len(backlog.keys)} done", f"{len(backlog.running)} running", f"{backlog.count('failed')} failed"]
    if backlog.elsewhere:
        parts.append(f"{len(backlog.elsewhere)} elsewhere")
    parts.append(f"{backlog.rounds_per_second:,.0f} rounds/s")
    parts.append(f"{'?' if left is None else _clock(left)} left")
    return "  ".join(parts)


@contextmanager
def progress() -> Iterator[Show]:
    """A live line in a terminal; elsewhere a line for each run that ended. All on stderr."""
    console = Console(stderr=True)
    warned = 0

    def new_warnings(backlog: Backlog) -> list[str]:
        nonlocal warned
        fresh = list(backlog.warnings)[warned:]
        warned = len(backlog.warnings)
        return fresh

    if sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TextColumn

        with Progress(BarColumn(), TextColumn("{task.description}"), console=console) as bar:
            task = bar.add_task("", total=1.0)

            def live(backlog: Backlog, record: RunRecord | None) -> None:
                for text in new_warnings(backlog):
                    bar.console.print(f"warning: {text}", markup=False)
                if record is not None:
                    bar.console.print(describe(record), highlight=False, markup=False)
                bar.update(task, completed=backlog.share, description=standing(backlog))

            yield live
        return
    said = time.monotonic()

    def plain(backlog: Backlog, record: RunRecord | None) -> None:
        nonlocal said
        for text in new_warnings(backlog):
            print(f"warning: {text}", file=sys.stderr, flush=True)
        if record is not None:
            print(f"{len(backlog.ended)}/{len(backlog.keys)}  {describe(record)}", file=sys.stderr, flush=True)
        elif time.monotonic() - said > QUIET_SECONDS:
            print(standing(backlog), file=sys.stderr, flush=True)
        else:
            return
        said = time.monotonic()

    yield plain


def print_outcome(outcome: Outcome, store: Path, *, as_json: bool) -> None:
    """The runs of a sweep as they stand, and what to do next."""
    with open_store(store, readonly=True) as opened:
        records = [opened.get(key) for key in outcome.statuses]
    if as_json:
        print_objects(as_object(run) for run in records)
    elif len(records) <= MOST_LINES:
        wide_console().print(runs_table(records))
    counts = Counter(outcome.statuses.values())
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    say = Console(stderr=True)
    say.print(f"{len(records)} runs: {summary}; {outcome.computed} of them now. Store: {store}", highlight=False)
    if outcome.interrupted:
        say.print("Stopped. Every run keeps what it has done; the same command again goes on from there.")
    elif counts["failed"]:
        say.print(f"Why: byzmesh runs show KEY --store {store}; again: the same command with --retry-failed")

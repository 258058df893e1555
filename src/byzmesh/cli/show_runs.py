"""How stored runs look in a terminal, and how filters are read. Light: listing a store must not load the simulator."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from byzmesh.errors import ConfigError
from byzmesh.store import Comparison, RunRecord, Store
from byzmesh.store.keys import flatten

MOST_LINES = 100
"""Runs that a table shows unless told otherwise."""


def parse_where(settings: Iterable[str]) -> dict[str, Any]:
    """Filters `KEY=VALUE`, the values read as YAML.

    >>> parse_where(["rule.name=IOS", "seed=3", "step.a=1e-3", "network.byzantine=[7, 9]"])
    {'rule.name': 'IOS', 'seed': 3, 'step.a': 0.001, 'network.byzantine': [7, 9]}
    """
    where: dict[str, Any] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise ConfigError(f"--where takes KEY=VALUE such as rule.name=IOS, got {setting!r}")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ConfigError(f"--where {path}: {text!r} is not a value; quote it") from None
        if isinstance(value, str):
            try:
                # YAML takes 1e-3 for a word.
                number = float(value)
                value = number if math.isfinite(number) else value
            except ValueError:
                pass
        where[path] = value
    return where


def words(value: Any) -> str:
    """A value of a config as a table shows it.

    >>> words({"name": "CC", "tau": 0.1}), words(3)
    ('CC(tau=0.1)', '3')
    """
    if isinstance(value, dict):
        options = ", ".join(f"{name}={words(item)}" for name, item in value.items() if name != "name")
        return f"{value['name']}({options})" if "name" in value and options else str(value.get("name", options))
    return str(value)


def as_object(run: RunRecord) -> dict[str, Any]:
    """A run as `--json` prints it; NaN and infinity, which JSON lacks, are words."""
    names = ("key", "status", "rounds", "seconds", "started", "ended", "failure", "config")
    final = {name: _number(value) for name, value in run.final.items()}
    return {**{name: getattr(run, name) for name in names}, "final": final}


def whole_object(store: Store, run: RunRecord) -> str:
    """A run with its series, cut counts and provenance as JSON."""
    series = {name: [_number(value) for value in values.tolist()] for name, values in store.series(run.key).items()}
    rest = {"provenance": run.provenance, "series": series, "edges": store.edges(run.key).tolist()}
    return json.dumps({**as_object(run), **rest}, indent=2, allow_nan=False)


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else repr(value)


def wide_console() -> Console:
    """Stdout; where it is not a terminal, wide enough that no cell is cut."""
    return Console() if sys.stdout.isatty() else Console(width=400)


def narrow_table(*headings: str) -> Table:
    """A table without frame; keys and statuses are never cut."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading in ("key", "status"))
    return table


def print_objects(objects: Iterable[dict[str, Any]]) -> None:
    """A JSON list on stdout, an object per line: indented, many thousand runs would take seconds."""
    lines = [json.dumps(item, allow_nan=False) for item in objects]
    print("[" + ",\n ".join(lines) + "]")


def runs_table(records: Sequence[RunRecord]) -> Table:
    """A line per run; of the config, what tells most runs apart."""
    paths = {"rule": "rule.name", "attack": "attack.name", "network": "network.name", "seed": "seed"}
    table = narrow_table("key", *paths, "rounds", "accuracy", "loss", "status")
    for run in records:
        held, final = flatten(run.config), run.final
        rounds = run.rounds if run.rounds is not None else held.get("rounds", "")
        accuracy = f"{100 * final['accuracy']:.2f}" if "accuracy" in final else ""
        loss = f"{final['loss']:.4g}" if "loss" in final else ""
        cells = [words(held.get(path, "")) for path in paths.values()]
        table.add_row(run.key[:12], *cells, f"{rounds}", accuracy, loss, run.status)
    return table


def print_runs(records: Sequence[RunRecord], limit: int | None) -> None:
    """The table of runs; says if there may be more of them."""
    console = wide_console()
    console.print(runs_table(records) if records else "no such runs")
    if limit is not None and len(records) == limit:
        console.print(f"the latest {limit}; --limit 0 shows all, --where and --status choose", highlight=False)


def print_run_record(run: RunRecord) -> None:
    """Everything about one run but its series."""
    console = wide_console()
    facts = {
        "key": run.key,
        "status": run.status,
        "rounds": run.rounds,
        "seconds": run.seconds,
        "started": _moment(run.started),
        "ended": _moment(run.ended),
        "final": run.final,
        "config": run.config,
        "provenance": run.provenance,
    }
    text = yaml.safe_dump({name: value for name, value in facts.items() if value not in (None, {})}, sort_keys=False)
    console.print(text.rstrip(), highlight=False, markup=False, soft_wrap=True)
    if run.failure:
        console.print(f"failure:\n{run.failure}", highlight=False, markup=False, soft_wrap=True)


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def compared(told: Comparison, statuses: Sequence[str]) -> list[dict[str, Any]]:
    """A comparison as `--json` prints it: an object per run."""
    return [
        {
            "key": key,
            "status": status,
            "differing": {path: values[column] for path, values in told.differing.items()},
            "final": {name: _number(numbers[column]) for name, numbers in told.final.items()},
        }
        for column, (key, status) in enumerate(zip(told.keys, statuses, strict=True))
    ]


def print_comparison(told: Comparison) -> None:
    """Runs in columns; lines are the config fields that differ, then the final metrics."""
    table = narrow_table("", *(key[:12] for key in told.keys))
    for path, values in told.differing.items():
        table.add_row(path, *("" if value is None else words(value) for value in values))
    table.add_section()
    for name, numbers in told.final.items():
        table.add_row(name, *("" if number is None else f"{number:.6g}" for number in numbers))
    wide_console().print(table)

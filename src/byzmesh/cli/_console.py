"""How runs look in a terminal and as JSON, for the verbs that show runs. Light: it must not load the simulator."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from byzmesh.reports.aggregation import value_of
from byzmesh.store import RunRecord, Store
from byzmesh.store.fields import path_in, possible_paths, text
from byzmesh.store.keys import flatten
from byzmesh.store.records import SHOWN
from byzmesh.training.metrics import metric_of
from byzmesh.types import Floats


def wide_console() -> Console:
    """A console on stdout; if that is not a terminal, wide enough that no cell is cut."""
    return Console() if sys.stdout.isatty() else Console(width=400)


def narrow_table(*headings: str) -> Table:
    """A table without a frame; keys and statuses are never cut."""
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading in ("key", "status"))
    return table


def words(value: Any) -> str:
    """A value of a config as a table shows it.

    >>> words({"name": "CC", "tau": 0.1}), words(3)
    ('CC(tau=0.1)', '3')
    """
    if isinstance(value, dict):
        options = ", ".join(f"{name}={words(item)}" for name, item in value.items() if name != "name")
        return f"{value['name']}({options})" if "name" in value and options else str(value.get("name", options))
    return str(value)


def runs_table(
    store: Store, records: Sequence[RunRecord], since: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Table:
    """One row per run: the config fields that tell most runs apart, and the values that `byzmesh table` shows.

    since  key -> what changed since, for runs that newer ones have replaced
    """
    columns = ("rule", "attack", "network", "seed")
    table = narrow_table("key", *columns, "rounds", "accuracy", "loss", "status", *(("superseded",) if since else ()))
    for run in records:
        fields, series = flatten(run.config), store.series(run.key)
        rounds = run.rounds if run.rounds is not None else fields.get("rounds", "")
        values = [number_of(series, name) for name in ("accuracy", "loss")]
        cells = [shown(fields, column) for column in columns]
        table.add_row(
            run.key[:12],
            *cells,
            f"{rounds}",
            *values,
            run.status,
            *([", ".join(since.get(run.key, ()))] if since else ()),
        )
    return table


def number_of(series: Mapping[str, Floats], name: str, digits: int = 4) -> str:
    """The value of a run's metric as a table shows it; empty if the run has none."""
    return metric_of(name).number(value_of(series, name), digits) if name in series else ""


def shown(fields: Mapping[str, Any], word: str) -> str:
    """A field of a run, by its short name; empty if the run has none.

    >>> shown({"network.label": "mine", "network.edges": [[0, 1]]}, "network")
    'mine'
    """
    path = path_in(fields, possible_paths(word))
    return "" if path is None else text(fields[path])


def number(value: float | None) -> float | str | None:
    """A number for JSON, which lacks NaN and infinity: those become strings."""
    return value if value is None or math.isfinite(value) else repr(value)


def as_object(run: RunRecord) -> dict[str, Any]:
    """A run as `--json` prints it."""
    final = {name: number(value) for name, value in run.final.items()}
    return {**{name: getattr(run, name) for name in (*SHOWN, "config")}, "final": final}


def print_objects(objects: Iterable[dict[str, Any]]) -> None:
    """Print a JSON list, one object per line: indenting many thousands of runs would take seconds."""
    print("[" + ",\n ".join(json.dumps(item, allow_nan=False) for item in objects) + "]")

"""Changes to the store. Every function here runs inside a transaction that its caller opened."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.naming import merged, only_names
from byzmesh.renamed import as_stored
from byzmesh.store.keys import NO_CODE, canonical, code_json, config_text, flatten, indexed, key_of
from byzmesh.store.owners import Owner
from byzmesh.store.reading import locate
from byzmesh.store.records import ENDED, RunRecord
from byzmesh.types import Floats, Integers

FieldIds = dict[tuple[str, int | float | str], int]


def add_runs(
    connection: sqlite3.Connection,
    configs: Iterable[Mapping[str, Any]],
    codes: Iterable[Mapping[str, str]] | None,
    again: Collection[str],
) -> list[str]:
    """Add the runs that are not there yet, mark those to be computed again, and return all keys."""
    keys: list[str] = []
    known: FieldIds = {}
    now = time.time()
    marked = ", ".join(f"'{status}'" for status in again)
    for config, code in zip(configs, itertools.repeat(NO_CODE) if codes is None else codes):
        names = only_names(config)
        text, code_text = config_text(config), code_json(code)
        keys.append(key_of(text, code_text))
        added = connection.execute(
            "INSERT OR IGNORE INTO runs (key, status, asked, names, config, code) VALUES (?, 'planned', ?, ?, ?, ?)",
            (keys[-1], now, canonical(names), text, code_text),
        )
        if added.rowcount:
            index_fields(connection, int(added.lastrowid or 0), merged(json.loads(text), names), known)
        else:
            if names:
                _rename(connection, keys[-1], names, known)
            connection.execute(
                f"UPDATE runs SET asked = ?, again = again OR status IN ({marked}) WHERE key = ?", (now, keys[-1])
            )
    return keys


def _rename(connection: sqlite3.Connection, key: str, names: Mapping[str, Any], known: FieldIds) -> None:
    """Give an existing run the names with which it was planned again."""
    run, record = locate(connection, key)
    former = json.loads(record.names_json)
    latter = merged(former, names)
    if latter != former:
        _forget_fields(connection, run, former)
        index_fields(connection, run, latter, known)
        change(connection, run, names=canonical(latter))


def change(connection: sqlite3.Connection, run: int, **values: Any) -> None:
    """Set columns of a run's row."""
    names = ", ".join(f"{name} = ?" for name in values)
    connection.execute(f"UPDATE runs SET {names} WHERE id = ?", (*values.values(), run))


def index_fields(connection: sqlite3.Connection, run: int, config: Mapping[str, Any], known: FieldIds) -> None:
    """Add the leaves of a run's config to the index; `known` keeps the ids of (path, value) pairs between runs."""
    pairs = [(path, indexed(value)) for path, value in flatten(config).items()]
    for pair in pairs:
        if pair not in known:
            connection.execute("INSERT OR IGNORE INTO fields (path, value) VALUES (?, ?)", pair)
            known[pair] = connection.execute("SELECT id FROM fields WHERE path = ? AND value = ?", pair).fetchone()[0]
    connection.executemany("INSERT INTO run_fields VALUES (?, ?)", [(known[pair], run) for pair in pairs])


def take(connection: sqlite3.Connection, key: str, owner: Owner, lease_seconds: float) -> bool:
    """Give the run to the owner if it is free."""
    row, run = locate(connection, key)
    if run.settled or run.leased:
        return False
    now = time.time()
    if run.status not in ENDED:  # a result stays until there is a new one
        change(connection, row, status="running", started=now, ended=None, failure=None, failure_kind=None)
    owned = {"owner_host": owner.host, "owner_pid": owner.pid, "owner_process": owner.process}
    change(connection, row, **owned, heartbeat=now, lease_until=now + lease_seconds)
    return True


def extend(connection: sqlite3.Connection, key: str, owner: Owner, lease_seconds: float) -> bool:
    """Extend the lease if the run belongs to the owner."""
    row, run = locate(connection, key)
    if run.owner != owner:
        return False
    now = time.time()
    change(connection, row, heartbeat=now, lease_until=now + lease_seconds)
    return True


def end_run(
    connection: sqlite3.Connection,
    key: str,
    owner: Owner | None,
    values: Mapping[str, Any],
    metrics: Mapping[str, Floats] | None = None,
    edges: Integers | None = None,
) -> bool:
    """Store how the run ended (`values` by column, including `status`) and release it; True if that was done.

    Does nothing if the run has a result and is not to be computed again, or belongs to another owner.
    """
    row, run = locate(connection, key)
    status = values["status"]
    if (run.status in ENDED and not run.again) or (owner is not None and run.owner != owner):
        return False
    free = dict.fromkeys(("owner_host", "owner_pid", "owner_process", "heartbeat", "lease_until"))
    change(connection, row, **free, again=run.again if status == "interrupted" else 0)
    if run.status in ENDED and status not in ENDED:
        # Computing it again failed: keep the old result, with the reason beside it.
        change(connection, row, failure=values["failure"], failure_kind=values["failure_kind"])
        return True
    now = time.time()
    began = {"started": now - (values.get("seconds") or 0.0)} if run.status in ENDED else {}
    change(connection, row, **values, **began, ended=now)
    if metrics is not None and edges is not None:
        write_series(connection, row, metrics)
        write_edges(connection, row, edges)
    return True


def write_series(connection: sqlite3.Connection, run: int, metrics: Mapping[str, Floats]) -> None:
    """Replace a run's series; its last values go to the run's row for tables."""
    connection.execute("DELETE FROM series WHERE run = ?", (run,))
    connection.executemany(
        "INSERT INTO series VALUES (?, ?, ?)",
        [(run, name, values.astype("<f8").tobytes()) for name, values in metrics.items()],
    )
    # JSON has no NaN or infinity: those are written as strings, which float() reads back.
    last = {name: float(values[-1]) for name, values in metrics.items() if len(values)}
    final = {name: value if math.isfinite(value) else repr(value) for name, value in last.items()}
    change(connection, run, final=json.dumps(final))


def write_edges(connection: sqlite3.Connection, run: int, edges: Integers) -> None:
    """Replace a run's cut counts."""
    connection.execute("DELETE FROM edges WHERE run = ?", (run,))
    connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?)", [(run, *edge) for edge in edges.tolist()])


def remove(connection: sqlite3.Connection, run: int, record: RunRecord) -> None:
    """Delete a run and everything that belongs to it."""
    for table in ("series", "edges"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    _forget_fields(connection, run, as_stored(record.config))
    connection.execute("DELETE FROM runs WHERE id = ?", (run,))


def _forget_fields(connection: sqlite3.Connection, run: int, config: Mapping[str, Any]) -> None:
    # By its config, because the index is ordered by field: finding the entries of a run would mean reading all of it.
    connection.executemany(
        "DELETE FROM run_fields WHERE run = ? AND field = (SELECT id FROM fields WHERE path = ? AND value = ?)",
        [(run, path, indexed(value)) for path, value in flatten(config).items()],
    )


def checked_series(name: str, values: npt.ArrayLike) -> Floats:
    """(T,) float64, or an error that names the metric."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise ConfigError(
            f"metric {name!r} must be a one-dimensional series of numbers, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.float64)


def checked_edges(edges: npt.ArrayLike | None) -> Integers:
    """(E, 4) integers sender, receiver, cut, rounds; (0, 4) if None."""
    if edges is None:
        return np.zeros((0, 4), np.int64)
    array = np.asarray(edges)
    if array.ndim != 2 or array.shape[1] != 4 or array.dtype.kind not in "iu":
        raise ConfigError(
            f"edges must be (E, 4) integers (sender, receiver, cut, rounds), got {array.dtype} of shape {array.shape}"
        )
    if len(np.unique(array[:, :2], axis=0)) != len(array):
        raise ConfigError("edges must name each (sender, receiver) once; add up the counts of an edge first")
    return array.astype(np.int64)

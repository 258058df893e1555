"""What changes the store. Every function here runs inside a transaction that its caller opened."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.store.keys import canonical, flatten, indexed, key_of
from byzmesh.store.reading import locate
from byzmesh.store.records import Owner, RunRecord
from byzmesh.types import Floats, Integers

FieldIds = dict[tuple[str, int | float | str], int]

ENDED = ("finished", "diverged")
"""Results: never overwritten."""


def add_runs(connection: sqlite3.Connection, configs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Plan the runs that are not there yet; the keys of all."""
    keys: list[str] = []
    known: FieldIds = {}
    for config in configs:
        text = canonical(config)
        keys.append(key_of(text))
        added = connection.execute(
            "INSERT OR IGNORE INTO runs (key, status, config) VALUES (?, 'planned', ?)", (keys[-1], text)
        )
        if added.rowcount:
            index_fields(connection, int(added.lastrowid or 0), json.loads(text), known)
    return keys


def index_fields(connection: sqlite3.Connection, run: int, config: Mapping[str, Any], known: FieldIds) -> None:
    """Add the leaves of a run's config to the index; `known` keeps the ids of (path, value) pairs between runs."""
    pairs = [(path, indexed(value)) for path, value in flatten(config).items()]
    for pair in pairs:
        if pair not in known:
            connection.execute("INSERT OR IGNORE INTO fields (path, value) VALUES (?, ?)", pair)
            known[pair] = connection.execute("SELECT id FROM fields WHERE path = ? AND value = ?", pair).fetchone()[0]
    connection.executemany("INSERT INTO run_fields VALUES (?, ?)", [(known[pair], run) for pair in pairs])


def take(connection: sqlite3.Connection, key: str, owner: Owner, lease_seconds: float, *, retry_failed: bool) -> bool:
    """Give the run to the owner if it is free."""
    row, run = locate(connection, key)
    free = run.status in ("planned", "interrupted") or (retry_failed and run.status == "failed")
    if free or (run.status == "running" and not run.leased):
        now = time.time()
        connection.execute(
            "UPDATE runs SET status = 'running', started = ?, ended = NULL, failure = NULL, owner_host = ?, "
            "owner_pid = ?, owner_process = ?, heartbeat = ?, lease_until = ? WHERE id = ?",
            (now, owner.host, owner.pid, owner.process, now, now + lease_seconds, row),
        )
        return True
    return False


def extend(connection: sqlite3.Connection, key: str, owner: Owner, lease_seconds: float) -> bool:
    """Extend the lease if the run is the owner's."""
    row, run = locate(connection, key)
    if run.status != "running" or run.owner != owner:
        return False
    now = time.time()
    connection.execute("UPDATE runs SET heartbeat = ?, lease_until = ? WHERE id = ?", (now, now + lease_seconds, row))
    return True


def end_run(
    connection: sqlite3.Connection,
    key: str,
    status: str,
    *,
    owner: Owner | None,
    rounds: int | None,
    seconds: float | None,
    failure: str | None,
    provenance: Mapping[str, Any],
) -> int | None:
    """Set how the run ended and give it free; its row id, None if it has a result or is another owner's."""
    run, found = locate(connection, key)
    if found.status in ENDED or (owner is not None and (found.status != "running" or found.owner != owner)):
        return None
    connection.execute(
        "UPDATE runs SET status = ?, ended = ?, rounds = ?, seconds = ?, failure = ?, provenance = ?, "
        "owner_host = NULL, owner_pid = NULL, owner_process = NULL, heartbeat = NULL, lease_until = NULL WHERE id = ?",
        (status, time.time(), rounds, seconds, failure, json.dumps(dict(provenance), default=str), run),
    )
    return run


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
    connection.execute("UPDATE runs SET final = ? WHERE id = ?", (json.dumps(final), run))


def write_edges(connection: sqlite3.Connection, run: int, edges: Integers) -> None:
    """Replace a run's cut counts."""
    connection.execute("DELETE FROM edges WHERE run = ?", (run,))
    connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?)", [(run, *edge) for edge in edges.tolist()])


def remove(connection: sqlite3.Connection, run: int, found: RunRecord) -> None:
    """Delete a run with all that belongs to it."""
    for table in ("series", "edges"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    # By its config, because the index of fields is ordered by field and would have to be read whole to find a run.
    connection.executemany(
        "DELETE FROM run_fields WHERE run = ? AND field = (SELECT id FROM fields WHERE path = ? AND value = ?)",
        [(run, path, indexed(value)) for path, value in flatten(found.config).items()],
    )
    connection.execute("DELETE FROM runs WHERE id = ?", (run,))


def checked_series(name: str, values: npt.ArrayLike) -> Floats:
    """(T,) float64, or an error that names the metric."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise ConfigError(
            f"metric {name!r} must be a one-dimensional series of numbers, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.float64)


def checked_edges(edges: npt.ArrayLike | None) -> Integers:
    """(E, 4) integers sender, receiver, cut, rounds; none if None."""
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

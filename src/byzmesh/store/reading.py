"""Queries that read the store."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from byzmesh.checks import choice, whole
from byzmesh.errors import StoreError
from byzmesh.renamed import path_of_today, spellings
from byzmesh.store.fields import paths_of, same
from byzmesh.store.keys import indexed, plain
from byzmesh.store.records import COLUMNS, STATUSES, RunRecord, newest, record

_NAMES = ", ".join(COLUMNS)


def locate(connection: sqlite3.Connection, key: str) -> tuple[int, RunRecord]:
    """Row id and record of a run by its key or a unique beginning of it."""
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{1,64}", key):
        raise StoreError(f"key {key!r} is not a run's key: give up to 64 hexadecimal digits in lower case")
    # 'g' is the first letter after every hexadecimal digit: a range of the unique index.
    rows = connection.execute(
        f"SELECT id, {_NAMES} FROM runs WHERE key >= ? AND key < ? LIMIT 2", (key, key + "g")
    ).fetchall()
    if not rows:
        raise StoreError(f"no run has the key {key!r}; plan it, or list the runs of the store")
    if len(rows) > 1:
        raise StoreError(f"key {key!r} is the beginning of several runs' keys; give more digits")
    return rows[0][0], record(rows[0][1:])


def select(
    connection: sqlite3.Connection,
    where: Mapping[str, Any] | None,
    status: str | None,
    limit: int | None,
    *,
    current: bool = False,
) -> list[RunRecord]:
    """Runs whose config fields have the given values; only the `limit` latest, in the order of planning."""
    if status is not None:
        choice("status", status, STATUSES)
    if limit is not None:
        whole("limit", limit, 0)
    if current:  # which run of a config is the newest does not depend on how it ended
        runs = [run for run in newest(select(connection, where, None, None)) if status in (None, run.status)]
        return runs if limit is None else runs[max(0, len(runs) - limit) :]
    conditions: list[str] = ["1"]
    parameters: list[Any] = []
    for word, value in (where or {}).items():
        fields = _matching(connection, word, value)
        conditions.append(f"id IN (SELECT run FROM run_fields WHERE field IN ({_marks(fields)}))")
        parameters += fields
    if status is not None:
        conditions.append("status = ?")
        parameters.append(status)
    rows = connection.execute(
        f"SELECT {_NAMES} FROM runs WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
        (*parameters, -1 if limit is None else limit),
    ).fetchall()
    return [record(row) for row in reversed(rows)]


def values_of(connection: sqlite3.Connection, word: str) -> list[Any]:
    """The values of a field over all runs; for values that are indexed by their hash, the hash."""
    paths = _paths(connection, word)
    query = f"SELECT value FROM fields WHERE path IN ({_marks(paths)}) ORDER BY id"
    stored = (row[0] for row in connection.execute(query, paths))
    return [json.loads(value) if isinstance(value, str) and value[0] != "#" else value for value in stored]


def _matching(connection: sqlite3.Connection, word: str, value: Any) -> list[int]:
    """Ids of the (path, value) pairs that match a filter: the exact value, or else another spelling of a name."""
    paths = _paths(connection, word)
    query = f"SELECT id, value FROM fields WHERE path IN ({_marks(paths)})"
    exact = connection.execute(f"{query} AND value = ?", (*paths, indexed(plain(value, word)))).fetchall()
    if exact or not isinstance(value, str):
        return [field for field, _ in exact]
    names = connection.execute(f"{query} AND value LIKE '\"%'", paths)
    return [field for field, name in names if same(json.loads(name), value)]


def _paths(connection: sqlite3.Connection, word: str) -> tuple[str, ...]:
    """The paths that a word means in this store; an unknown word is an error, not an empty answer."""
    exact = spellings(word)
    if connection.execute(f"SELECT 1 FROM fields WHERE path IN ({_marks(exact)}) LIMIT 1", exact).fetchone():
        return exact
    known = {path_of_today(row[0]) for row in connection.execute("SELECT DISTINCT path FROM fields")}
    if not known:  # an empty store knows no fields
        return (word,)
    return tuple(stored for path in paths_of(word, known) for stored in spellings(path))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))

"""What looks into the store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import Any

from byzmesh.errors import ConfigError, StoreError, UnknownName, nearest
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
        raise StoreError(f"no run has the key {key!r}; plan it, or list the store to see what is there")
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
    """Runs whose config fields have the given values; the `limit` latest of them, in the order of planning."""
    if status is not None and status not in STATUSES:
        raise ConfigError(f"status = {status!r} is unknown: {nearest(status, STATUSES)}")
    if limit is not None and limit < 0:
        raise ConfigError(f"limit = {limit} must not be negative; leave it out for all runs")
    if current:  # which run of a config is the newest does not depend on how it ended
        runs = [run for run in newest(select(connection, where, None, None)) if status in (None, run.status)]
        return runs if limit is None else runs[max(0, len(runs) - limit) :]
    conditions, parameters = ["1"], []
    for path, value in (where or {}).items():
        _check_path(connection, path)
        conditions.append(
            "id IN (SELECT run FROM run_fields WHERE field = (SELECT id FROM fields WHERE path = ? AND value = ?))"
        )
        parameters += [path, indexed(plain(value, path))]
    if status is not None:
        conditions.append("status = ?")
        parameters.append(status)
    rows = connection.execute(
        f"SELECT {_NAMES} FROM runs WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
        (*parameters, -1 if limit is None else limit),
    ).fetchall()
    return [record(row) for row in reversed(rows)]


def _check_path(connection: sqlite3.Connection, path: str) -> None:
    """A field that no config ever had is a slip of the pen, not an empty answer; an empty store knows no fields."""
    if connection.execute("SELECT 1 FROM fields WHERE path = ? LIMIT 1", (path,)).fetchone():
        return
    known = [row[0] for row in connection.execute("SELECT DISTINCT path FROM fields")]
    if known:
        raise UnknownName(f"no run has the config field {path!r}: {nearest(path, known)}")

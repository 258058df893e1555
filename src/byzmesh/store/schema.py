"""Tables of the store, their version, and migration from older versions.

    runs        one row per run: all small values, and its config and provenance as JSON
    series      one row per run and metric: the values as little-endian float64, so that they are read back bit for bit
                (SQLite would turn a NaN into NULL) and 100,000 runs take only 800,000 rows
    edges       how often each receiver cut each sender
    fields      the distinct (path, value) pairs of all configs: few, because runs of a grid share most of them
    run_fields  which run has which of them; a filter is one range of this table

A new column of `records.RunRecord` is added to an older store when it is opened for writing. When it is opened
read-only, an expression replaces the column and the file is not changed. This needs no new version: older programs can
still use such a store.

Version 1 (before the first release) had `runs(key, status, config, failure, started, ended)` and one row per evaluation
in `points(key, metric, position, value)`.
"""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from byzmesh.errors import StoreError
from byzmesh.store.database import explained, transaction
from byzmesh.store.records import COLUMNS
from byzmesh.store.writing import FieldIds, index_fields, write_series

VERSION = 2
APPLICATION = 0x62797A6D
"""`byzm`: marks the file as ours."""

TABLES = f"""
CREATE TABLE runs (id INTEGER PRIMARY KEY, {", ".join(f"{name} {column['sql']}" for name, column in COLUMNS.items())});
CREATE INDEX runs_by_status ON runs (status);
CREATE TABLE series (run INTEGER, name TEXT, data BLOB NOT NULL, PRIMARY KEY (run, name)) WITHOUT ROWID;
CREATE TABLE edges (
    run INTEGER, sender INTEGER, receiver INTEGER, cut INTEGER NOT NULL, rounds INTEGER NOT NULL,
    PRIMARY KEY (run, sender, receiver)
) WITHOUT ROWID;
CREATE TABLE fields (id INTEGER PRIMARY KEY, path TEXT NOT NULL, value NOT NULL, UNIQUE (path, value));
CREATE TABLE run_fields (field INTEGER, run INTEGER, PRIMARY KEY (field, run)) WITHOUT ROWID;
"""


def prepare(connection: sqlite3.Connection, path: Path, *, readonly: bool) -> None:
    """Create the tables in a new file, migrate an older store, refuse a foreign file or a newer store."""
    with explained(path):
        version = _version(connection, path)
        if version == VERSION and not _missing(connection):
            return
        if readonly and version == VERSION:
            _stand_in(connection)
            return
        if readonly:
            raise StoreError(
                f"store {path} has schema {version}; open it once without readonly=True to migrate it"
                if version
                else f"{path} is empty: it is a store once a run or a sweep has written to it"
            )
        with transaction(connection, path):
            # Check again, now that no other process can be doing the same.
            version = _version(connection, path)
            if version == 0:
                _create(connection)
            elif version == 1:
                _migrate_from_1(connection)
            _add(connection, _missing(connection))
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is a database of another program; give the path of a store or of a new file")
    if version > VERSION:
        raise StoreError(
            f"store {path} has schema {version} and this byzmesh knows up to {VERSION}: pip install --upgrade byzmesh"
        )
    return version


def _missing(connection: sqlite3.Connection) -> list[str]:
    """Columns that an older store lacks."""
    there = {row[1] for row in connection.execute("PRAGMA main.table_info(runs)")}
    return [name for name in COLUMNS if name not in there]


def _stand_in(connection: sqlite3.Connection) -> None:
    """Create a view with all columns that replaces the table, for this connection only."""
    connection.execute("PRAGMA temp_store = MEMORY")
    standing = (f"{_older(name)} AS {name}" for name in _missing(connection))
    connection.execute(f"CREATE TEMP VIEW runs AS SELECT *, {', '.join(standing)} FROM main.runs")


def _older(name: str) -> str:
    """The value of a column for runs that were stored before it existed."""
    declared = COLUMNS[name]
    return declared["older"] or declared["sql"].partition(" DEFAULT ")[2] or "NULL"


def _add(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    for name in names:
        connection.execute(f"ALTER TABLE runs ADD COLUMN {name} {COLUMNS[name]['sql']}")
        _fill(connection, name)


def _fill(connection: sqlite3.Connection, name: str) -> None:
    if COLUMNS[name]["older"]:
        connection.execute(f"UPDATE runs SET {name} = {COLUMNS[name]['older']}")


def _create(connection: sqlite3.Connection) -> None:
    # Not executescript: it would commit the transaction first.
    for statement in TABLES.split(";"):
        connection.execute(statement)


def _migrate_from_1(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs RENAME TO runs_1")
    connection.execute("ALTER TABLE points RENAME TO points_1")
    _create(connection)
    # Version 1 had no leases: no process can still be computing a run that it calls running.
    connection.execute(
        "INSERT INTO runs (key, status, config, failure, started, ended) "
        "SELECT key, CASE status WHEN 'running' THEN 'interrupted' ELSE status END, config, failure, started, ended "
        "FROM runs_1 ORDER BY rowid"
    )
    for name in COLUMNS:
        _fill(connection, name)
    known: FieldIds = {}
    for run, config in connection.execute("SELECT id, config FROM runs").fetchall():
        index_fields(connection, run, json.loads(config), known)
    points: Iterable[tuple[int, str, float | None]] = connection.execute(
        "SELECT runs.id, metric, value FROM points_1 JOIN runs USING (key) ORDER BY runs.id, metric, position"
    )
    for run, rows in itertools.groupby(points, key=lambda row: row[0]):
        metrics: dict[str, list[float]] = {}
        for _, name, value in rows:
            metrics.setdefault(name, []).append(math.nan if value is None else value)
        write_series(connection, run, {name: np.array(values) for name, values in metrics.items()})
    connection.execute("DROP TABLE points_1")
    connection.execute("DROP TABLE runs_1")

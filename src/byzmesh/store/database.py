"""The SQLite file of a store: opening it, transactions with many writers, and errors that say what to do.

With the write-ahead log, readers never wait for writers, and a killed writer leaves at most an unfinished transaction,
which the next opening discards. With `synchronous = FULL`, a commit survives a power cut. Writers queue for the one
write lock with BEGIN IMMEDIATE.

The log needs memory shared by all processes that use the store, so they must run on one machine: on a network file
system, writers on two hosts would not see each other. A cluster sends its results to one process that writes.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from byzmesh.errors import StoreError

PATIENCE_SECONDS = 60.0
"""How long a writer waits for other writers."""

_WAIT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 if the error did not come from SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def explain(error: sqlite3.Error, path: Path) -> str:
    """One line that names the store, what happened and what to do."""
    code = primary_code(error)
    if code in _WAIT:
        return f"store {path} is locked: others wrote for {PATIENCE_SECONDS:.0f} s; try again when they are done"
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a byzmesh store ({error}); give the path of a store or of a new file"
    if code == sqlite3.SQLITE_CORRUPT:
        return f"store {path} is damaged ({error}); restore a copy, or save what is readable: sqlite3 {path} .recover"
    if code in _DENIED:
        return (
            f"store {path} cannot be written ({error}); make the file and its directory writable, "
            "or open it with readonly=True"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"store {path} could not be written ({error}): is the disk full? "
            "Earlier results are safe; free some space and try again"
        )
    return f"store {path}: {error}; if it was closed, open it again"


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into a `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(explain(error, path)) from error


def patiently(connection: sqlite3.Connection, statement: str) -> list[tuple[object, ...]]:
    """Execute; wait even in the few cases in which SQLite reports a lock at once (recovery, switch to the log)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in _WAIT or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.001, 0.02))


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction: takes the write lock at the start, commits at the end, rolls back on any error."""
    with explained(path):
        patiently(connection, "BEGIN IMMEDIATE")
        try:
            yield connection
            patiently(connection, "COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Open the file; only its first page is read."""
    if path.is_dir():
        raise StoreError(f"store {path} is a directory; give the path of a file in it")
    if readonly and not path.exists():
        raise StoreError(
            f"there is no store at {path}; check the path, or create one with `byzmesh sweep` or `open_store(path)`"
        )
    if not path.parent.is_dir():
        raise StoreError(f"store {path} is in a directory that does not exist; create {path.parent} first")
    if path.exists() and not os.access(path, os.R_OK):
        raise StoreError(f"store {path} cannot be read (no permission); make it readable for this user")
    if not readonly and path.exists() and not os.access(path, os.W_OK):
        # SQLite would open it for reading and complain only on the first result, perhaps after hours of computing.
        raise StoreError(
            f"store {path} cannot be written (no permission); make it writable, or open it with readonly=True"
        )
    with explained(path):
        connection = _open(path, "mode=ro" if readonly else "mode=rwc")
        try:
            try:
                patiently(connection, "PRAGMA user_version")
            except sqlite3.OperationalError as error:
                if not readonly or primary_code(error) not in _DENIED or _log_of(path).exists():
                    raise
                # A log cannot be opened where its index file cannot be created (a read-only medium). Without a log,
                # nothing is missed.
                connection.close()
                connection = _open(path, "mode=ro&immutable=1")
                patiently(connection, "PRAGMA user_version")
            if not readonly:
                _write_ahead(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _open(path: Path, mode: str) -> sqlite3.Connection:
    # Threads share a connection (a heartbeat thread, say): Store holds a lock around each use.
    return sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
    )


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    mode = patiently(connection, "PRAGMA journal_mode = WAL")[0][0]
    if mode != "wal":
        raise StoreError(
            f"store {path} is on a file system without shared memory (journal mode {mode}); put it on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")

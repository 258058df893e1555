"""An open store's connection: one process, any number of threads, one transaction for each change."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from byzmesh.errors import StoreError
from byzmesh.store.database import connect, explained, transaction
from byzmesh.store.schema import prepare


class Session:
    """The open file: one connection, which threads of this process take turns with."""

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False) -> None:
        self.path = Path(path).absolute()
        self.readonly = readonly
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._connection = connect(self.path, readonly=readonly)
        try:
            prepare(self._connection, self.path, readonly=readonly)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self.path, self.readonly)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._pid:
            # Using a connection across a fork damages the file.
            raise StoreError(f"store {self.path} was opened in another process; call open_store in this one")
        with self._lock, explained(self.path):
            yield self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self.readonly:
            raise StoreError(f"store {self.path} was opened with readonly=True; open it without to change it")
        with self._reading() as connection, transaction(connection, self.path):
            yield connection


def _reopen(kind: type[Session], path: Path, readonly: bool) -> Session:
    return kind(path, readonly=readonly)

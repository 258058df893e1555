"""A peer's folder: one process at a time, two checkpoints, and a disk that may be full.

    peer3.ckpt          model, states and round: a restarted peer continues from here
    peer3.previous.ckpt the checkpoint before that one, should the newest be damaged
    peer3.jsonl         one line per evaluation
    peer3.status.json   round, accuracy, silent, refused, suspects: for the table of a drill
    peer3.lock          held while the peer runs

A write that fails is logged and training goes on; `written` says whether the newest checkpoint is on disk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ByzmeshError, DataError, NotWritten, PeerError
from byzmesh.files import sync_folder, write
from byzmesh.peers.logs import Log
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint

Checkpoint = tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]
"""(arrays, metadata)"""


def checkpoints_of(folder: Path, peer: int) -> tuple[Path, Path]:
    """The newest checkpoint of a peer and the one before."""
    return folder / f"peer{peer}.ckpt", folder / f"peer{peer}.previous.ckpt"


def newest_checkpoint(folder: Path, peer: int, damaged: Callable[[Path, DataError], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; None if there is none, the first `DataError` if all are damaged."""
    damage: DataError | None = None
    for path in checkpoints_of(folder, peer):
        if path.exists():
            try:
                return load_checkpoint(path)
            except DataError as error:
                damaged(path, error)
                damage = damage or error
    if damage is not None:
        raise damage
    return None


class Folder:
    """The files of one peer, locked until `close`."""

    def __init__(self, path: str | Path, me: int, log: Log) -> None:
        self.path, self.me, self._log = Path(path), me, log
        self.checkpoint, self.previous = checkpoints_of(self.path, me)
        self._whole = True
        """Whether the newest checkpoint, if there is one, could be read or was written by this process."""
        self.written = True
        """Whether the last checkpoint could be written."""
        self._lock: int | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            for left in self.path.glob(f".peer{me}.*-*"):  # of a process that was killed while it wrote
                left.unlink(missing_ok=True)
        except OSError as error:
            self.close()
            raise NotWritten(f"folder {path} cannot be written ({error.strerror}); give another --out") from error

    def _take_lock(self) -> None:
        if sys.platform == "win32":
            return
        import fcntl

        self._lock = os.open(self.path / f"peer{self.me}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise PeerError(
                f"another process runs peer {self.me} in {self.path}; stop it or give another --out"
            ) from None

    def close(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save(self, arrays: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        """Write the checkpoint; the former one, if it is whole, stays as the previous one.

        The new one is on disk before either of the others is touched. Between the two renamings there is only the
        previous one, which `newest_checkpoint` then takes.
        """
        try:
            new = self.path / f"peer{self.me}.new.ckpt"
            save_checkpoint(new, arrays, metadata)
            if self._whole and self.checkpoint.exists():
                os.replace(self.checkpoint, self.previous)
            os.replace(new, self.checkpoint)
            sync_folder(self.path)
            self.written = self._whole = True
        except OSError as error:
            self.written = False
            self._log("not written", path=str(self.checkpoint), error=error.strerror)

    def load(self) -> Checkpoint | None:
        """(arrays, metadata) of the newest checkpoint that is whole; None if there never was one."""

        def damaged(path: Path, error: DataError) -> None:
            self._whole &= path != self.checkpoint
            self._log("damaged", path=str(path), text=str(error))

        return newest_checkpoint(self.path, self.me, damaged)

    def append(self, line: str) -> None:
        """Add a line to the evaluations."""
        path = self.path / f"peer{self.me}.jsonl"
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self._log("not written", path=str(path), error=error.strerror)

    def report(self, text: str) -> None:
        """Replace the status."""
        path = self.path / f"peer{self.me}.status.json"
        try:
            write(path, text)
        except ByzmeshError as error:
            self._log("not written", path=str(path), error=str(error))

"""Checkpoints of a sweep's runs: one file per run in a folder beside the store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byzmesh.errors import ConfigError, DataError
from byzmesh.store import Store

if TYPE_CHECKING:
    from byzmesh.simulation.engine import Simulation

CHECKPOINT_SECONDS = 15.0


@dataclass(frozen=True)
class Checkpoint:
    """Where a run's state is kept, and how often it is written; `warn` is told why it cannot be."""

    path: Path
    seconds: float
    warn: Callable[[str], None]

    def restore(self, simulation: Simulation) -> None:
        """Go on from the file if there is one; one that is damaged costs time, never the run."""
        if self.path.exists():
            try:
                simulation.restore(self.path)
            except DataError as error:
                self.warn(f"{error}; the run starts again from round 0")
                simulation.start()

    def save(self, simulation: Simulation) -> None:
        """Write the file; a disk that is full must not end a run that could go on without."""
        try:
            self.path.parent.mkdir(exist_ok=True)
            simulation.save(self.path)
        except OSError as error:
            self.warn(f"no checkpoint {self.path}: {error.strerror or error}; free space, the run goes on without")

    def remove(self) -> None:
        """Delete the file."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def checkpoint_folder(store: Path) -> Path:
    """Where the checkpoints of a store's runs are: beside it.

    >>> checkpoint_folder(Path("runs.db")).name
    'runs.db.checkpoints'
    """
    return store.with_name(store.name + ".checkpoints")


def tidy(store: Path, keys: Iterable[str]) -> None:
    """Delete what runs that are over left in the folder, as killed processes do, and the folder once it is empty."""
    over = set(keys)
    folder = checkpoint_folder(store)
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            # KEY, or .KEY-xxxx where the process was killed while it wrote
            if path.name.removeprefix(".").partition("-")[0] in over:
                path.unlink(missing_ok=True)
        folder.rmdir()


def find_runs(store: Store, keys: Iterable[str], where: Mapping[str, Any], status: str | None) -> list[str]:
    """Whole keys of the runs that are named by (beginnings of) keys, or else by filters."""
    named = [store.get(key).key for key in keys]
    if bool(named) == bool(where or status):
        raise ConfigError("name runs by their keys, or choose them by --where and --status: one of the two")
    return named or [run.key for run in store.list(where, status)]


def delete_runs(store: Store, keys: Sequence[str]) -> None:
    """Delete runs and what they left in the folder of checkpoints."""
    store.delete(*keys)
    tidy(store.path, keys)

"""Checkpoints of runs: one file per run in a folder beside the store; and what belongs to runs that are deleted."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byzmesh.errors import ConfigError, DataError
from byzmesh.simulation.saving import extend
from byzmesh.store import Store
from byzmesh.sweeps.models import models_folder

if TYPE_CHECKING:
    from byzmesh.simulation.engine import Simulation


@dataclass(frozen=True)
class Checkpoint:
    """Where a run's state is kept, and how often it is written; `warn` is told why it cannot be.

    shorter  the last state of a run with fewer rounds, to go on from if there is no checkpoint
    """

    path: Path
    seconds: float
    warn: Callable[[str], None]
    shorter: Path | None = None

    def restore(self, simulation: Simulation) -> None:
        """Go on from the file if there is one; one that is damaged costs time, never the run."""
        if self.path.exists() or self.shorter is not None:
            try:
                if self.path.exists():
                    simulation.restore(self.path)
                elif self.shorter is not None:
                    extend(simulation, self.shorter)
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


def checkpoint_folder(store: Path) -> Path:
    """Where the checkpoints of a store's runs are: beside it.

    >>> checkpoint_folder(Path("runs.db")).name
    'runs.db.checkpoints'
    """
    return store.with_name(store.name + ".checkpoints")


def tidy(store: Path, keys: Iterable[str]) -> None:
    """Delete what runs that are over left behind, as killed processes do: checkpoints and half-written files."""
    over = set(keys)
    _clear(checkpoint_folder(store), over)
    _clear(models_folder(store), over, "\\.")


def _clear(folder: Path, keys: Collection[str], before: str = "\\.?") -> None:
    """Delete the files of these runs, and the folder once it is empty.

    Their names begin with the key: KEY, KEY.state, KEY-100.safetensors; .KEY... where a process was killed while it
    wrote. `before` is a pattern of what may stand before the key.
    """
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            named = re.match(f"{before}([0-9a-f]+)", path.name)
            if named and named[1] in keys:
                path.unlink(missing_ok=True)
        folder.rmdir()


def find_runs(store: Store, keys: Iterable[str], where: Mapping[str, Any], status: str | None) -> list[str]:
    """Whole keys of the runs that are named by (beginnings of) keys, or else by filters."""
    named = [store.get(key).key for key in keys]
    if bool(named) == bool(where or status):
        raise ConfigError("name runs by their keys, or choose them by --where and --status: one of the two")
    return named or [run.key for run in store.list(where, status)]


def delete_runs(store: Store, keys: Sequence[str]) -> None:
    """Delete runs with their checkpoints and models."""
    store.delete(*keys)
    for folder in (checkpoint_folder(store.path), models_folder(store.path)):
        _clear(folder, set(keys))

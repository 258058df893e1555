"""Checkpoints of runs, one file per run in a folder beside the store; and deleting runs with their files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byzmesh.errors import ConfigError, DataError
from byzmesh.store import Store
from byzmesh.sweeps.models import models_folder

if TYPE_CHECKING:
    from byzmesh.simulation.engine import Simulation


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run's state is written; `warn` is called with the reason if that fails.

    shorter  the last state of a run with fewer rounds, to continue from if there is no checkpoint
    """

    path: Path
    seconds: float
    warn: Callable[[str], None]
    shorter: Path | None = None

    def restore(self, simulation: Simulation) -> None:
        """Continue from the file if there is one; a damaged file costs time, never the run."""
        if self.path.exists() or self.shorter is not None:
            try:
                if self.path.exists():
                    simulation.restore(self.path)
                elif self.shorter is not None:
                    simulation.extend(self.shorter)
            except DataError as error:
                self.warn(f"{error}; the run starts again from round 0")
                simulation.start()

    def save(self, simulation: Simulation) -> None:
        """Write the file; a full disk must not end a run that can continue without a checkpoint."""
        try:
            self.path.parent.mkdir(exist_ok=True)
            simulation.save(self.path)
        except OSError as error:
            self.warn(
                f"no checkpoint {self.path}: {error.strerror or error}; the run continues without one; free some space"
            )


def checkpoint_folder(store: Path) -> Path:
    """The folder of the checkpoints of a store's runs, beside it.

    >>> checkpoint_folder(Path("runs.db")).name
    'runs.db.checkpoints'
    """
    return store.with_name(store.name + ".checkpoints")


def tidy(store: Path, keys: Iterable[str]) -> None:
    """Delete what ended runs left behind after killed processes: checkpoints and half-written files."""
    over = set(keys)
    _clear(checkpoint_folder(store), over)
    _clear(models_folder(store), over, "\\.")


def _clear(folder: Path, keys: Collection[str], before: str = "\\.?") -> None:
    """Delete the files of these runs, and the folder once it is empty.

    Their names begin with the key: KEY, KEY.state, KEY-100.safetensors; or .KEY... if a process was killed while
    writing. `before` is a pattern for what may precede the key.
    """
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            named = re.match(f"{before}([0-9a-f]+)", path.name)
            if named and named[1] in keys:
                path.unlink(missing_ok=True)
        folder.rmdir()


def find_runs(store: Store, keys: Iterable[str], where: Mapping[str, Any], status: str | None) -> list[str]:
    """Full keys of the runs given by (beginnings of) keys, or else by filters."""
    named = [store.get(key).key for key in keys]
    if bool(named) == bool(where or status):
        raise ConfigError("name runs either by their keys or by --where and --status")
    return named or [run.key for run in store.list(where, status)]


def delete_runs(store: Store, keys: Sequence[str]) -> None:
    """Delete runs with their checkpoints and models."""
    store.delete(*keys)
    for folder in (checkpoint_folder(store.path), models_folder(store.path)):
        _clear(folder, set(keys))

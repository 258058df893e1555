"""TensorBoard event files of stored runs: one folder per run, one scalar per metric, the step is the round."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.store import RunRecord, Store


def check_tensorboard(folder: str | Path) -> None:
    """Raise before hours of computing if event files could not be written afterwards."""
    try:
        import tensorboard.summary  # noqa: F401
    except ImportError as error:
        raise MissingExtra("tensorboard", "writing TensorBoard event files") from error
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"tensorboard folder {folder} cannot be made ({error.strerror}); give another") from error


def write_events(store: Store, record: RunRecord, folder: str | Path) -> Path:
    """Write the series of a run that ended to a folder of its own under `folder`, unless that is there."""
    from tensorboard.summary import Writer

    config = record.config
    target = Path(folder) / f"{config['rule']['name']}-{config['attack']['name']}-{record.key[:12]}"
    if target.exists():
        return target
    series = store.series(record.key)
    rounds = series.pop("round")
    # Renamed when complete: a folder that is there holds everything.
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    writer = Writer(str(fresh))
    try:
        for name, values in series.items():
            for round, value in zip(rounds, values, strict=True):
                writer.add_scalar(name, value, int(round), wall_time=record.ended)
    finally:
        writer.close()
    try:
        fresh.rename(target)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)  # another sweep was faster
    return target

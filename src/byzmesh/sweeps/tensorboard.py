"""TensorBoard event files of stored runs: one folder per run, one scalar per metric, the step is the round."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from byzmesh import files
from byzmesh.errors import MissingExtra
from byzmesh.store import RunRecord, Store


def check_tensorboard(folder: str | Path) -> None:
    """Raise now, before hours of computing, if event files cannot be written."""
    try:
        import tensorboard.summary  # noqa: F401
    except ImportError as error:
        raise MissingExtra("tensorboard", "writing TensorBoard event files") from error
    files.folder(folder, option="--tensorboard")


def write_events(store: Store, record: RunRecord, folder: str | Path) -> Path:
    """Write the series of a run that ended to its own folder under `folder`, unless that exists."""
    from tensorboard.summary import Writer

    config = record.config
    target = Path(folder) / f"{config['rule']['name']}-{config['attack']['name']}-{record.key[:12]}"
    if target.exists():
        return target
    series = store.series(record.key)
    rounds = series.pop("round")
    with suppress(FileExistsError, NotADirectoryError), files.replacing_folder(target) as fresh:
        writer = Writer(str(fresh))
        try:
            for name, values in series.items():
                for round, value in zip(rounds, values, strict=True):
                    writer.add_scalar(name, value, int(round), wall_time=record.ended)
        finally:
            writer.close()
    return target

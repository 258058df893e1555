"""TensorBoard event files of stored runs: one folder per run, one scalar per metric, the step is the round."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from byzmesh import files
from byzmesh.errors import MissingExtra
from byzmesh.sweeps.run_log import RunLog


class TensorBoard:
    """Writes event files; `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: str | Path) -> None:
        try:
            import tensorboard.summary  # noqa: F401
        except ImportError as error:
            raise MissingExtra("tensorboard", "writing TensorBoard event files") from error
        self.folder = files.folder(folder, option="--tensorboard")

    def write(self, run: RunLog) -> None:
        """Write the series of a run to its own folder, unless that exists."""
        from tensorboard.summary import Writer

        target = self.folder / f"{run.name}-{run.short_key}"
        if target.exists():
            return
        with suppress(FileExistsError, NotADirectoryError), files.replacing_folder(target) as fresh:
            writer = Writer(str(fresh))
            try:
                for name, values in run.series.items():
                    for round, value in zip(run.rounds, values, strict=True):
                        writer.add_scalar(name, value, round, wall_time=run.ended)
            finally:
                writer.close()

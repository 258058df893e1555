"""Stored runs for Weights & Biases, offline: nothing leaves the machine until `wandb sync FOLDER/wandb/offline-run-*`.

A run is named RULE-ATTACK in the project `byzmesh`, and its id is the start of its key: a run whose id is in the folder
is not written again, and one that was synchronised twice is still one.
"""

from __future__ import annotations

from pathlib import Path

from byzmesh import files
from byzmesh.errors import MissingExtra
from byzmesh.sweeps.run_log import RunLog

PROJECT = "byzmesh"
WRITTEN = "byzmesh-written"
"""A file in the folder of a run that was written to its end."""


class WeightsAndBiases:
    """Writes offline runs to a folder."""

    def __init__(self, folder: str | Path) -> None:
        try:
            import wandb  # noqa: F401
        except ImportError as error:
            raise MissingExtra("wandb", "writing runs for Weights & Biases") from error
        self.folder = files.folder(folder, option="--wandb")

    def write(self, run: RunLog) -> None:
        """Write a run, unless it is in the folder."""
        import wandb

        if any((self.folder / "wandb").glob(f"offline-run-*-{run.short_key}/{WRITTEN}")):
            return
        quiet = wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        written = wandb.init(
            mode="offline",
            dir=str(self.folder),
            project=PROJECT,
            id=run.short_key,
            name=run.name,
            config=run.settings,
            settings=quiet,
        )
        for place, round in enumerate(run.rounds):
            written.log({name: values[place] for name, values in run.series.items()}, step=round)
        written.summary["status"] = run.status
        folder = Path(written.settings.sync_dir)
        written.finish()
        (folder / WRITTEN).touch()

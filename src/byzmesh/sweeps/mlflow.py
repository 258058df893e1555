"""Stored runs in MLflow: an experiment `byzmesh`, one run each, settings as parameters, metrics by round.

    where    a tracking URI (http://host:5000, sqlite:///mlflow.db) or a folder
    a run    named RULE-ATTACK, with the tag byzmesh.key; a run whose key is there already is not written again

MLflow keeps folders in a form that it no longer develops; they need no server and no database driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from byzmesh import files
from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.sweeps.run_log import RunLog

EXPERIMENT = "byzmesh"
KEY = "byzmesh.key"
MOST_METRICS, MOST_PARAMS, MOST_TEXT = 1000, 100, 500
"""The most that MLflow takes in one call, and of one parameter."""


class MLflow:
    """Writes to an MLflow server, database or folder."""

    def __init__(self, where: str | Path) -> None:
        try:
            from mlflow.exceptions import MlflowException
            from mlflow.tracking import MlflowClient
        except ImportError as error:
            raise MissingExtra("mlflow", "writing to MLflow") from error
        uri = str(where)
        if "://" not in uri:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            uri = files.folder(where, option="--mlflow").absolute().as_uri()
        try:
            self.client = MlflowClient(uri)
            found = self.client.get_experiment_by_name(EXPERIMENT)
            self.experiment: Any = self.client.create_experiment(EXPERIMENT) if found is None else found.experiment_id
        except (MlflowException, ImportError, OSError) as error:
            raise ConfigError(f"--mlflow {where}: {str(error).splitlines()[0]}") from error

    def write(self, run: RunLog) -> None:
        """Write a run, unless one with its key is there."""
        from mlflow.entities import Metric, Param

        if self.client.search_runs([self.experiment], f"tags.`{KEY}` = '{run.key}'", max_results=1):
            return
        start, end = int(1000 * run.started), int(1000 * run.ended)
        tags = {"byzmesh.status": run.status}
        info = self.client.create_run(self.experiment, start_time=start, tags=tags, run_name=run.name).info
        params = [Param(name, str(value)[:MOST_TEXT]) for name, value in run.settings.items()]
        for few in parts(params, MOST_PARAMS):
            self.client.log_batch(info.run_id, params=few)
        metrics = [
            Metric(name, value, end, round)
            for name, values in run.series.items()
            for round, value in zip(run.rounds, values, strict=True)
        ]
        for some in parts(metrics, MOST_METRICS):
            self.client.log_batch(info.run_id, metrics=some)
        self.client.set_tag(info.run_id, KEY, run.key)  # last: a run that was only half written is written again
        self.client.set_terminated(info.run_id, "FINISHED", end)


def parts(things: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """The things in order, at most so many at a time.

    >>> list(parts([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(things), most):
        yield things[start : start + most]

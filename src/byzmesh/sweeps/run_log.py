"""What a logger is told of a run that ended, and the interface of loggers: TensorBoard, MLflow, Weights & Biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from byzmesh.store import RunRecord, Store
from byzmesh.store.keys import flatten


@dataclass(frozen=True, kw_only=True)
class RunLog:
    """A run with a result.

    settings  the config by dotted name: {"rule.name": "IOS", "seed": 0, ...}
    rounds    in which it was evaluated
    series    metric -> its value in these rounds; a run that diverged has infinite ones
    """

    key: str
    name: str
    status: str
    settings: dict[str, Any]
    rounds: list[int]
    series: dict[str, list[float]]
    started: float
    ended: float

    @property
    def short_key(self) -> str:
        """Enough of the key to tell runs apart."""
        return self.key[:12]


class RunLogger(Protocol):
    """Takes runs that ended. Whether it can, it says when it is made, before hours of computing.

    A run that is already where it writes to is not written again.
    """

    def write(self, run: RunLog) -> None:
        """Write a run."""


def run_log(store: Store, record: RunRecord) -> RunLog:
    """What a logger is told of a stored run."""
    series = {name: values.tolist() for name, values in store.series(record.key).items()}
    ended = record.ended or 0.0
    return RunLog(
        key=record.key,
        name=f"{record.config['rule']['name']}-{record.config['attack']['name']}",
        status=record.status,
        settings=flatten(record.config),
        rounds=[int(round) for round in series.pop("round")],
        series=series,
        started=record.started or ended,
        ended=ended,
    )

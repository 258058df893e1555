"""One metric over a group of runs: mean and spread over the finished ones, and how many did not finish.

    value of a run    mean of the metric over its last evaluations: `training.final.last_evaluations`
    mean, std         over the finished runs; std is the sample standard deviation, 0 for a single run

A further entry of `STATISTICS` is a column of CSV files and stands in the small print of all other tables.

A run that diverged or failed has no value: it is counted and shown, never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, nearest
from byzmesh.store import RunRecord, Store
from byzmesh.training.final import mean_of_last
from byzmesh.training.metrics import metric_of
from byzmesh.types import Floats

STATISTICS: Mapping[str, Callable[[Floats], Any]] = MappingProxyType(
    {
        "mean": np.mean,
        "std": lambda values: np.std(values, ddof=1) if len(values) > 1 else 0.0,
    }
)
"""What is computed from the values of the finished runs, by name; NaN if there are none."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A metric over a group of runs; `mean` is NaN if none of them finished."""

    statistics: Mapping[str, float]
    n: int
    diverged: int = 0
    failed: int = 0
    waiting: int = 0
    keys: tuple[str, ...] = ()
    failure: str = ""
    """Why the first failed run failed."""
    failure_kind: str = ""

    @property
    def mean(self) -> float:
        """Over the finished runs."""
        return self.statistics["mean"]

    @property
    def std(self) -> float:
        """The sample standard deviation over the finished runs; 0 for one."""
        return self.statistics["std"]

    @property
    def counts(self) -> dict[str, int]:
        """How many runs there are, by how they ended; `n` of them finished."""
        return {"n": self.n, "diverged": self.diverged, "failed": self.failed, "waiting": self.waiting}

    @property
    def total(self) -> int:
        """All runs of the group."""
        return sum(self.counts.values())

    @property
    def troubles(self) -> str:
        """How many runs have no value and why; empty if all finished.

        >>> Summary(statistics={"mean": 1.0}, n=1, diverged=2, waiting=1).troubles
        '2 diverged, 1 to run'
        """
        # The reason of a failure is shown on hover; only "infeasible" is shown in the cell.
        failed = "infeasible" if self.failure_kind == "infeasible" else "failed"
        counts = ((self.diverged, "diverged"), (self.failed, failed), (self.waiting, "to run"))
        if self.total == 1:
            return next((word for count, word in counts if count), "")
        return ", ".join(f"{count} {word}" for count, word in counts if count)


def half_widths(values: Floats) -> Floats:
    """Half the width of the 95% interval (Student's t) of the mean over the first axis, which has two or more entries.

    >>> half_widths(np.array([[1.0], [2.0], [3.0]])).round(3)
    array([2.484])
    """
    from scipy.special import stdtrit

    count = len(values)
    half: Floats = stdtrit(count - 1, 0.975) * np.std(values, axis=0, ddof=1) / math.sqrt(count)
    return half


def value_of(series: Mapping[str, Floats], metric: str, last: int | None = None) -> float:
    """Mean of a metric over a run's last evaluations, in the unit of tables: percent for accuracies."""
    values = series[metric]
    rounds = series.get("round", np.arange(1, len(values) + 1))
    return mean_of_last(values, rounds, last) * metric_of(metric).factor


def final(store: Store, run: RunRecord, metric: str, last: int | None = None) -> float:
    """The same for a stored run."""
    series = store.series(run.key)
    if metric not in series:
        raise ConfigError(f"run {run.key[:12]} has no metric {metric!r}: {nearest(metric, series)}")
    return value_of(series, metric, last)


def summarise(store: Store, runs: Iterable[RunRecord], metric: str = "accuracy", last: int | None = None) -> Summary:
    """The metric over a group of runs."""
    group = list(runs)
    values = np.array([final(store, run, metric, last) for run in group if run.status == "finished"])
    failures = [run for run in group if run.status == "failed"]
    diverged = sum(run.status == "diverged" for run in group)
    return Summary(
        statistics={name: float(compute(values)) if len(values) else math.nan for name, compute in STATISTICS.items()},
        n=len(values),
        diverged=diverged,
        failed=len(failures),
        waiting=len(group) - len(values) - diverged - len(failures),
        keys=tuple(run.key for run in group),
        failure=failures[0].failure or "" if failures else "",
        failure_kind=failures[0].failure_kind or "" if failures else "",
    )

"""Metrics: what an evaluation records, by name.

A metric is a function of an `Evaluation` (the honest workers after a round), with what a table, a chart or a page needs
to show it:

    compute    Evaluation -> a number; a mapping of series names to numbers if there are several; None if it makes no
               sense (the accuracy of a problem without classes)
    unit       "percent": stored as a fraction of 1 and shown times 100; or "none"
    direction  which way is better: "up", "down" or "none"
    scale      "linear" or "log"

Always recorded: what the task measures (accuracy, loss), worst_accuracy, consensus_error and disagreement. The others
are recorded on request, by `measure: [gradient, class_accuracy]` in a config. This module is light, because showing a
store must not load the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Signature
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from byzmesh.checks import choice
from byzmesh.errors import ConfigError
from byzmesh.registry import Registry
from byzmesh.training.evaluation import Evaluation

if TYPE_CHECKING:
    pass

T = TypeVar("T")

ALWAYS = ("worst_accuracy", "consensus_error", "disagreement")
"""Always recorded, besides what the task measures."""
UNASKED = ("round", "accuracy", "loss", "backdoor", *ALWAYS)
"""Series that runs of the built-in problems always have."""
BYTES = "bytes_sent"
"""The metric that is counted in every round."""
UNITS = ("percent", "none")
DIRECTIONS = ("up", "down", "none")
SCALES = ("linear", "log")


Compute = Callable[[Evaluation], float | Mapping[str, float] | None]
C = TypeVar("C", bound=Compute)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of an evaluation and how it is shown.

    title     what an axis says; default: the name in words
    alone     whether a real peer, which has only its own model and data, can compute it
    overview  whether a report always shows its curve

    >>> Metric(name="spread", compute=lambda at: float(np.ptp(at.models)), direction="down", scale="log").label
    'spread'
    """

    name: str
    compute: Compute = field(repr=False)
    unit: str = "none"
    direction: str = "none"
    scale: str = "linear"
    title: str = ""
    alone: bool = True
    overview: bool = False

    def __post_init__(self) -> None:
        for what, choices in (("unit", UNITS), ("direction", DIRECTIONS), ("scale", SCALES)):
            choice(f"metric {self.name}: {what}", getattr(self, what), choices)

    @property
    def factor(self) -> float:
        """The factor from stored to shown values."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def suffix(self) -> str:
        """The unit in brackets, to append to a heading."""
        return " (%)" if self.unit == "percent" else ""

    @property
    def label(self) -> str:
        """The label of an axis."""
        return (self.title or self.words) + self.suffix

    def number(self, shown: float, digits: int = 3) -> str:
        """A value as tables show it, after `factor`: two decimals for percents, three digits for everything else."""
        return f"{shown:.2f}" if self.unit == "percent" else f"{shown:.{digits}g}"

    def text(self, stored: float, digits: int = 4) -> str:
        """A stored value with its unit: 91.67%, 0.0321."""
        return self.number(stored * self.factor, digits) + ("%" if self.unit == "percent" else "")


metrics: Registry[Metric] = Registry("metric", "byzmesh.metrics", ("byzmesh.training.measures",), Metric)


def register_metric(
    name: str,
    *,
    aliases: tuple[str, ...] = (),
    unit: str = "none",
    direction: str = "none",
    scale: str = "linear",
    title: str = "",
    alone: bool = True,
    overview: bool = False,
    revision: int | None = None,
) -> Callable[[C], C]:
    """Decorator: a function of an `Evaluation` becomes a metric, to be recorded by `measure: [name]`.

    It then appears in the run's output, the store, `table`, `plot`, `report` and the peers' pages.
    `revision` is as for `register_rule`.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_metric("model_norm", direction="down", scale="log", title="norm of the average model")
    ... def model_norm(at):
    ...     "Euclidean norm of the average of the honest models."
    ...     return float(np.linalg.norm(at.average))
    >>> ring = {"name": "ring", "n": 5}
    >>> run = bm.simulate(problem="quadratic", network=ring, rule="weimean", rounds=3, measure=["model_norm"])
    >>> run.metrics["model_norm"].shape
    (2,)
    """

    if not name.isidentifier() or name == "round":
        raise ConfigError(f"metric name {name!r} must be letters, digits and underscores, and not 'round'")

    def add(compute: C) -> C:
        metric = Metric(
            name=name,
            compute=compute,
            unit=unit,
            direction=direction,
            scale=scale,
            title=title,
            alone=alone,
            overview=overview,
        )

        @wraps(compute)  # leads to the metric's code
        def factory() -> Metric:
            return metric

        setattr(factory, "__signature__", Signature())  # noqa: B010 (a metric has no options)
        metrics.register(name, aliases=aliases, revision=revision)(factory)
        return compute

    return add


def metric_of(series: str) -> Metric:
    """How to show a recorded series: by its metric; by that of its family, for `class_accuracy_3`; else plainly.

    >>> metric_of("accuracy").label, metric_of("class_accuracy_3").label, metric_of("consensus_error").label
    ('accuracy (%)', 'class accuracy 3 (%)', 'consensus error CE')
    >>> metric_of("never_registered").scale
    'linear'
    """
    known = metrics.names()
    if series in known:
        return metrics.build(series)
    families = [name for name in known if series.startswith(f"{name}_")]
    if not families:
        return Metric(name=series, compute=lambda at: None)
    family = metrics.build(max(families, key=len))
    return Metric(name=series, compute=family.compute, unit=family.unit, direction=family.direction, scale=family.scale)


def task_means(at: Evaluation) -> dict[str, float]:
    """Mean over the honest models of each of the task's measures."""
    return {name: float(np.mean(values)) for name, values in at.measures.items()}


def summarise(at: Evaluation, more: Iterable[Metric]) -> dict[str, float]:
    """What the task measures, then those of these metrics that have a value."""
    record = task_means(at)
    for metric in more:
        record |= _series(metric, at) or {}
    return record


def asked_for(at: Evaluation, asked: Iterable[Metric]) -> dict[str, float]:
    """The metrics that a config asks for; one without a value is an error."""
    record: dict[str, float] = {}
    for metric in asked:
        series = _series(metric, at)
        if series is None:
            raise ConfigError(f"metric {metric.name} has no value for this problem and rule; take it out of measure")
        record |= series
    return record


def _series(metric: Metric, at: Evaluation) -> dict[str, float] | None:
    value = metric.compute(at)
    if value is None:
        return None
    try:
        if isinstance(value, Mapping):
            return {name: float(number) for name, number in value.items()}
        return {metric.name: float(value)}
    except (TypeError, ValueError):
        raise ConfigError(
            f"metric {metric.name} must give a number, a mapping of names to numbers, or None, got {value!r}"
        ) from None


def canonical_measures(names: Iterable[str]) -> list[str]:
    """The metrics that a config asks for, spelled in full and sorted, without those that are always recorded.

    >>> canonical_measures(["Gradient", "accuracy", "class-accuracy"])
    ['class_accuracy', 'gradient']
    """
    return sorted({metrics.entry(name).name for name in names} - {"accuracy", "loss", *ALWAYS})

"""What is recorded at an evaluation: metrics by name, and the one definition of a run's value.

A metric is a function of an `Evaluation` (what the honest workers have after a round), with what a table, a chart or a
page needs to know to show it:

    compute    Evaluation -> a number; a mapping of series names to numbers where it gives several; None where it has no
               meaning (the accuracy of a problem without classes)
    unit       "percent": stored as a fraction of 1 and shown times 100; or "none"
    direction  which way is better: "up", "down" or "none"
    scale      "linear" or "log"

Recorded unasked: what the task measures (accuracy, loss), worst_accuracy, consensus_error and disagreement. The others
on request, by `measure: [gradient, class_accuracy]` in a config. Light: showing a store must not load the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from inspect import Signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice, whole
from byzmesh.errors import ConfigError
from byzmesh.registry import Registry

if TYPE_CHECKING:
    from byzmesh.networks import Network
    from byzmesh.problems.base import Task
    from byzmesh.rules.base import Rule
    from byzmesh.types import Array, Floats, Integers

T = TypeVar("T")

ALWAYS = ("worst_accuracy", "consensus_error", "disagreement")
"""Recorded unasked, beside what the task measures."""
UNASKED = ("round", "accuracy", "loss", "backdoor", *ALWAYS)
"""Series that runs of the built-in problems have without asking."""
UNITS = ("percent", "none")
DIRECTIONS = ("up", "down", "none")
SCALES = ("linear", "log")
MOST = 10
"""Evaluations that a run's value is the mean of, at most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """What stays the same over a run: the network, the rule, and the bound f (N,) of each honest worker."""

    network: Network
    rule: Rule
    bound: Integers
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, function: Callable[[Setting], T]) -> T:
        """function(self), computed once per run."""
        if function not in self.known:
            self.known[function] = function(self)
        value: T = self.known[function]
        return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What a metric may look at. Nothing here is computed before somebody asks for it.

    round     rounds done
    models    (N, D) the honest models, in the order of `network.honest`; of a real peer, its own (1, D)
    measures  what the task measures of each model, by name: `loss` (N,) and, where it has a meaning, `accuracy` (N,)
    task      the problem, bound to the workers' data
    setting   network, rule and bounds; None for a real peer, which knows of nobody but itself
    exchange  () -> (`sent`, `coefficients`) of the last round

    >>> import byzmesh as bm
    >>> task = bm.problem("quadratic").bind(workers=2)
    >>> at = Evaluation(round=0, models=np.array([[1.0], [3.0]]), measures={"loss": np.zeros(2)}, task=task)
    >>> at.average
    array([2.])
    """

    round: int
    models: Array
    measures: Mapping[str, Floats]
    task: Task
    setting: Setting | None = None
    exchange: Callable[[], tuple[Array | None, Array | None]] = field(default=lambda: (None, None), repr=False)
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def average(self) -> Array:
        """(D,) mean of the honest models, summed in float64."""
        average: Array = self.models.mean(axis=0, dtype=np.float64).astype(self.models.dtype)
        return average

    @property
    def sent(self) -> Array | None:
        """(N, D) what the honest workers sent in the last round; None before the first."""
        return self.once(_exchanged)[0]

    @property
    def coefficients(self) -> Array | None:
        """(N, K) how much each slot of an inbox counted; None before the first round and for coordinate-wise rules."""
        return self.once(_exchanged)[1]

    def once(self, function: Callable[[Evaluation], T]) -> T:
        """function(self), computed once per evaluation: for metrics that share work."""
        if function not in self.known:
            self.known[function] = function(self)
        value: T = self.known[function]
        return value


def _exchanged(at: Evaluation) -> tuple[Array | None, Array | None]:
    return at.exchange()


Compute = Callable[[Evaluation], float | Mapping[str, float] | None]
C = TypeVar("C", bound=Compute)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of an evaluation and how it is shown.

    title     what an axis says; default: the name in words
    alone     whether a real peer can compute it, which has its own model only
    overview  whether a report shows its curve unasked

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
        """What stored values are multiplied with to be shown."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def suffix(self) -> str:
        """The unit in brackets, as it stands behind a heading."""
        return " (%)" if self.unit == "percent" else ""

    @property
    def label(self) -> str:
        """What an axis says."""
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
) -> Callable[[C], C]:
    """Decorator: a function of an `Evaluation` becomes a metric, to be recorded by `measure: [name]`.

    It then is in the run's output and in the store, and `table`, `plot`, `report` and the peers' pages know it.

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

        @wraps(compute)  # whoever looks for the metric's code is led to it
        def factory() -> Metric:
            return metric

        setattr(factory, "__signature__", Signature())  # noqa: B010 (a metric has no options)
        metrics.register(name, aliases=aliases)(factory)
        return compute

    return add


def metric_of(series: str) -> Metric:
    """How a recorded series is shown: as its metric says; as its family's, for `class_accuracy_3`; else plainly.

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
    """What the task measures, then these metrics where they have a meaning."""
    found = task_means(at)
    for metric in more:
        found |= _series(metric, at) or {}
    return found


def asked_for(at: Evaluation, asked: Iterable[Metric]) -> dict[str, float]:
    """The metrics that a config asks for; one that has no meaning there is an error."""
    found: dict[str, float] = {}
    for metric in asked:
        series = _series(metric, at)
        if series is None:
            raise ConfigError(f"metric {metric.name} has no value for this problem and rule; take it out of measure")
        found |= series
    return found


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
    """What a config asks for, spelled in full and in order, without what is recorded anyway.

    >>> canonical_measures(["Gradient", "accuracy", "class-accuracy"])
    ['class_accuracy', 'gradient']
    """
    return sorted({metrics.entry(name).name for name in names} - {"accuracy", "loss", *ALWAYS})


def last_evaluations(rounds: npt.ArrayLike, last: int | None = None) -> npt.NDArray[np.int64]:
    """Positions of the evaluations that a run's value is the mean of, given their rounds (E,).

    By default those in the last tenth of the rounds, at most 10 and at least one; `last` asks for that many instead.
    The start (round 0) is none of them unless there is nothing else.

    >>> last_evaluations(range(21)), last_evaluations([0, 50, 100]), last_evaluations([0, 50, 100], last=10)
    (array([19, 20]), array([2]), array([1, 2]))
    """
    if last is not None:
        whole("last", last, 1)
    at = np.asarray(rounds, np.float64)
    trained = np.flatnonzero(at > 0)
    if not len(trained):
        return np.arange(len(at))[-1:]
    if last is None:
        trained, last = trained[10 * at[trained] > 9 * at[-1]], MOST
    return trained[-last:]


def mean_of_last(values: npt.ArrayLike, rounds: npt.ArrayLike, last: int | None = None) -> float:
    """The value of a run: the mean of a metric (E,) over its `last_evaluations`, NaN (not measured) left out.

    >>> mean_of_last([0.1, 0.5, 1.0], [0, 50, 100]), mean_of_last([0.1, 0.5, 1.0], [0, 50, 100], last=10)
    (1.0, 0.75)
    """
    series, at = np.asarray(values, np.float64), np.asarray(rounds, np.float64)
    measured = ~np.isnan(series)
    if not measured.any():
        return float("nan")
    series, at = series[measured], at[measured]
    return float(np.mean(series[last_evaluations(at, last)]))


def words_of_last(last: int | None) -> str:
    """What a table says of its values.

    >>> words_of_last(None), words_of_last(2)
    ('the evaluations in the last tenth of the rounds, at most 10', 'the last 2 evaluations')
    """
    if last is None:
        return f"the evaluations in the last tenth of the rounds, at most {MOST}"
    return f"the last {last} evaluations" if last > 1 else "the last evaluation"

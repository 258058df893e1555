"""A problem: a spec that is bound to workers, and the task that the engine then calls.

    problem = problem("softmax", partition="one-class")      options only, nothing loaded
    task = problem.bind(workers=10, seed=0)                       data, shares, dtype

A task has `rows` rows: the honest workers, then the liars that train on flipped labels (usually none). All randomness
is a function of (seed, row, round), so any subset of rows can be computed anywhere and at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from byzmesh.checks import choice, whole
from byzmesh.entries import as_call
from byzmesh.errors import ConfigError
from byzmesh.registry import Registry
from byzmesh.rng import INITIAL, key, normals
from byzmesh.types import Array, Floats, Integers

INITS = ("zero", "common", "normal")


class Task(Protocol):
    """A problem bound to workers. D is `dimension`; models are arrays of `dtype`."""

    @property
    def dimension(self) -> int:
        """D."""
        ...

    @property
    def workers(self) -> int:
        """Number N of honest workers, the first rows."""
        ...

    @property
    def rows(self) -> int:
        """N plus the liars with data."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the models."""
        ...

    def initial(self, kind: str | None = None) -> Array:
        """(rows, D) first models."""
        ...

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients of the round's batch losses at models (R, D) of `rows` (default: the first R)."""
        ...

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) losses of candidates (R, K, D) on each row's own batch of the round."""
        ...

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """Metrics of K models (K, D): `loss` (K,) and, where it makes sense, `accuracy` (K,)."""
        ...

    def local_gradients(self, model: Array) -> Floats:
        """(N, D) gradients of the honest workers' whole losses at one model (D,)."""
        ...

    def smoothness(self) -> float:
        """L such that every sample's loss is L-smooth, without weight decay."""
        ...

    def full_gradient(self, model: Array) -> Floats:
        """(D,) gradient of the average of the honest workers' whole losses at one model (D,)."""
        ...

    def describe(self) -> Integers:
        """(rows, classes) how many samples of each class a row has."""
        ...

    def draw(self, path: str | Path) -> None:
        """Draw the samples of each row to a file."""
        ...


@runtime_checkable
class Descends(Protocol):
    """A task that takes the plain gradient step itself, faster than by gradients that are written and read again."""

    def half_steps(
        self, models: Array, round: int, keep: float, step: float, out: Array, peak: Floats, rows: Integers
    ) -> None:
        """out (R, D) = keep * models - step * gradients, and `peak` (R,) the largest |out| of each row.

        The gradients are those of `Task.gradients`; `out` is not `models`; a peak is infinite if its row is not finite.
        `rows` are the task's: they are not checked in every round.
        """
        ...


@dataclass(frozen=True)
class StepKernel:
    """Plain gradient steps as a kernel, for rounds that are one compiled call (simulation/whole.py).

    kernel(data, rows (R,), round, keep, step, models (R, D), resting (R,), out (R, D), peak (R,))

    does what `Descends.half_steps` does for one batch; a row that is `resting` keeps its model. `data` is a tuple.
    """

    kernel: Any
    data: tuple[Any, ...]


@runtime_checkable
class HasStepKernel(Protocol):
    """A task that descends and can do it from within compiled code."""

    def step_kernel(self) -> StepKernel | None:
        """Its kernel; None if its options have none."""
        ...


@runtime_checkable
class ClipsSamples(Protocol):
    """A task that can shorten the gradient of every sample: what privacy of single samples needs."""

    def clipping_samples(self, longest: float) -> Task:
        """The same task with the gradient of every sample shortened to a length before they are averaged."""
        ...


@runtime_checkable
class Classifies(Protocol):
    """A task whose test set has classes."""

    def class_accuracy(self, models: Array) -> Floats:
        """(K, C) accuracy of K models (K, D) on the test samples of each class; NaN for a class that has none."""
        ...


@runtime_checkable
class KnowsItsData(Protocol):
    """A task that can say what a worker sees of a model on its own data."""

    def own_accuracy(self, models: Array, rows: Integers) -> Floats:
        """(K,) fraction of all training samples of each row (K,) that its model (K, D) gets right."""
        ...


@runtime_checkable
class Sampled(Task, Protocol):
    """A task whose losses are means over samples: what variance reduction needs.

    The gradient of a batch is linear in a few numbers per sample, its *slopes*: for linear models the derivatives by
    the C scores, otherwise the sample's gradient itself. B is `batch`, C is `outputs`.
    """

    @property
    def batch(self) -> int:
        """Samples per batch."""
        ...

    @property
    def outputs(self) -> int:
        """Slopes per sample."""
        ...

    @property
    def samples(self) -> int:
        """All samples are numbered below this."""
        ...

    def sizes(self) -> Integers:
        """(rows,) how many samples a row has."""
        ...

    def batches(self, round: int, rows: Integers) -> tuple[Integers, Array]:
        """(R, B) numbers and targets of the samples in the rows' batches."""
        ...

    def share(self, row: int) -> tuple[Integers, Array]:
        """(1, size) numbers and targets of all samples of a row."""
        ...

    def slopes(self, models: Array, picks: Integers, targets: Array) -> Array:
        """(R, B, C) the samples' slopes at models (R, D), divided by B."""
        ...

    def join(self, picks: Integers, slopes: Array, out: Array) -> None:
        """Write the gradients (R, D) of these slopes to `out`."""
        ...


@runtime_checkable
class Bounded(Task, Protocol):
    """A task that knows the constants of the paper's assumptions at all models, not only at some."""

    def variations(self) -> tuple[float, float]:
        """(delta_in, delta_out), exact or bounds; infinite where there is no bound."""
        ...

    def local_losses(self, model: Array) -> Floats:
        """(N,) the honest workers' whole losses at one model (D,)."""
        ...

    def least_loss(self) -> float:
        """A lower bound f* of the average of these losses over all models."""
        ...


@dataclass(frozen=True, repr=False)
class Problem:
    """What to train on and how the data are split; nothing is loaded before `bind`.

    >>> task = problem("quadratic", dimension=2).bind(workers=3)
    >>> task.gradients(task.initial(), 0).shape
    (3, 2)
    >>> problem("least-squares", dataset="mine.csv", batch=8)
    problem('least-squares', dataset='mine.csv', ...)
    """

    name: str
    options: Mapping[str, Any]
    binder: Callable[..., Task]
    _: KW_ONLY
    images: bool = False
    """Whether liars can put a backdoor trigger into its samples."""
    sampled: bool | None = None
    """Whether it binds to a task that is `Sampled`, which variance reduction needs; None: unknown."""

    def __repr__(self) -> str:
        return as_call("problem", self.name, self.options)

    def bind(
        self,
        *,
        workers: int,
        seed: int = 0,
        dtype: str = "float32",
        liars: int = 0,
        threads: int = 1,
        poison: Mapping[str, Any] | None = None,
        sites: Any = None,
    ) -> Task:
        """The task of `workers` honest workers and `liars` that train on poisoned data: flipped labels by default.

        sites  (`problems.data.split.Sites`) divide the data among all sites of a network, not the honest ones only

        `threads` may divide the work of a large call; the numbers do not depend on it, except for problem `torch`.
        """
        choice("dtype", dtype, ("float32", "float64"))
        workers, liars, threads = whole("workers", workers, 1), whole("liars", liars, 0), whole("threads", threads, 1)
        more: dict[str, Any] = {}
        if poison is not None and poison["kind"] != "labels":
            if not self.images:
                what = (
                    "attack backdoor needs images"
                    if poison["kind"] == "backdoor"
                    else "attack trigger-phrase needs text"
                )
                raise ConfigError(f"{what}, problem {self.name} has none; use problem torch")
            more = {"poison": poison}
        if sites is not None:
            if not self.options.get("partition"):
                raise ConfigError(f"problem {self.name} has no samples to divide; use objective: workers")
            more["sites"] = sites
        return self.binder(workers=workers, seed=seed, dtype=np.dtype(dtype), liars=liars, threads=threads, **more)


problems: Registry[Problem] = Registry(
    "problem",
    "byzmesh.problems",
    ("byzmesh.problems", "byzmesh.problems.linear.problems", "byzmesh.problems.neural.problem"),
    Problem,
)


def problem(spec: str | Problem | Mapping[str, Any], /, **options: Any) -> Problem:
    """The problem of a name or a mapping with `name`, with these options.

    >>> problem("softmax", partition="one-class").options["batch"]
    32
    >>> problem("softmax", partitions="iid")
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: problem softmax has no option 'partitions': did you mean 'partition'?
    """
    return problems.build(spec, **options)


def first_models(kind: str, scale: float, rows: int, dimension: int, dtype: Any, seed: int) -> Array:
    """(rows, D) initial models: `zero`; `common`, one N(0, scale^2) vector for all; `normal`, one per row.

    >>> first_models("common", 6.0, 2, 3, "float32", 0).std(axis=0).tolist()
    [0.0, 0.0, 0.0]
    """
    choice("init", kind, INITS)
    if kind == "zero":
        return np.zeros((rows, dimension), dtype)
    # row -1 belongs to nobody: the common vector is not worker 0's
    ids = np.full(rows, -1) if kind == "common" else np.arange(rows)
    models = normals(key(seed, INITIAL), ids, 0, dimension, dtype)
    models *= models.dtype.type(scale)
    return models

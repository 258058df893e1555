"""Linear models of the data: softmax regression, binary logistic regression, least squares.

One worker's loss on a batch is the mean over its samples of link(scores, label), scores = x W + bias. A model is one
vector of D = (F + 1) C numbers: W (F, C) row-major, the C outputs contiguous, then the bias. Weight decay is not part
of the loss: it belongs to the local update (training/local.py).

Measured loss and accuracy are those of the test set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.problems.base import (
    INITS,
    Array,
    Floats,
    Integers,
    Problem,
    check_choice,
    check_positive,
    first_models,
    problems,
)
from byzmesh.problems.datasets import Dataset, dataset
from byzmesh.problems.links import LOGISTIC, SOFTMAX, SQUARES, Link
from byzmesh.problems.partition import make_partition
from byzmesh.problems.rows import Rows, rows_of
from byzmesh.problems.shares import BATCHINGS, Split, count_classes, draw_batches, draw_counts, split_samples

_PUBLISHED = {"batching": "consecutive", "init": "normal", "scale": 6.0}


@dataclass(frozen=True, eq=False)
class LinearTask:
    """A linear model bound to data and workers; see `byzmesh.problems.base.Task`.

    target       (M,) label or number to predict of every training sample
    test_picks   (T,) samples of the test set that count, test_target (T,) theirs
    """

    dimension: int
    workers: int
    rows: int
    dtype: np.dtype[Any]
    seed: int
    outputs: int
    batch: int
    batching: str
    init: str
    scale: float
    link: Link
    split: Split
    train: Rows = field(repr=False)
    test: Rows = field(repr=False)
    target: Array = field(repr=False)
    test_picks: Array = field(repr=False)
    test_target: Array = field(repr=False)
    has_accuracy: bool = True

    def initial(self, kind: str | None = None) -> Array:
        """(rows, D) first models: `zero`, `common` or `normal`; the problem's `init` by default."""
        return first_models(kind or self.init, self.scale, self.rows, self.dimension, self.dtype, self.seed)

    def batches(self, round: int, rows: Integers) -> tuple[Integers, Array]:
        """(R, batch) sample numbers and targets of the rows' batches."""
        return draw_batches(self.split, self.target, rows, round, self.batch, self.batching)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) stochastic gradients of all rows at once, without weight decay."""
        rows = np.arange(len(models)) if rows is None else rows
        out = np.empty_like(models) if out is None else out
        picks, labels = self.batches(round, rows)
        scores = np.empty((*picks.shape, self.outputs), self.dtype)
        self.train.forward(picks, models, scores)
        self.link.delta(scores, labels)
        self.train.backward(picks, scores, out)
        return out

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) mean loss of candidates (R, K, D) on each row's own batch of the round."""
        count, candidates = models.shape[:2]
        picks, labels = self.batches(round, np.arange(count) if rows is None else rows)
        picks, labels = np.repeat(picks, candidates, axis=0), np.repeat(labels, candidates, axis=0)
        flat = np.ascontiguousarray(models, self.dtype).reshape(count * candidates, self.dimension)
        return self._measure(self.train, picks, labels, flat)[0].reshape(count, candidates)

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """Test `loss` (K,) and `accuracy` (K,) of models (K, D); no accuracy for numeric targets."""
        models = np.ascontiguousarray(models, self.dtype)
        picks, labels = self.test_picks[None], self.test_target[None]
        # one model at a time: it stays in the first-level cache while the test set streams by
        each = [self._measure(self.test, picks, labels, models[k : k + 1]) for k in range(len(models))]
        loss = np.array([float(loss[0]) for loss, _ in each])
        accuracy = np.array([float(accuracy[0]) for _, accuracy in each])
        return {"accuracy": accuracy, "loss": loss} if self.has_accuracy else {"loss": loss}

    def _measure(self, rows: Rows, picks: Array, labels: Array, models: Array) -> tuple[Floats, Floats]:
        scores = np.empty((*picks.shape, self.outputs), self.dtype)
        rows.forward(picks, models, scores)
        loss, accuracy = np.empty(len(models)), np.empty(len(models))
        self.link.measure(scores, labels, loss, accuracy)
        return loss, accuracy

    def full_gradient(self, model: Array) -> Floats:
        """(D,) gradient at one model of the average over the honest workers of each one's mean loss on all its data."""
        end = self.split.start[self.workers]
        sizes = np.diff(self.split.start[: self.workers + 1])
        picks = self.split.order[None, :end]
        scores = np.empty((1, end, self.outputs), self.dtype)
        models = np.ascontiguousarray(model, self.dtype)[None]
        self.train.forward(picks, models, scores)
        self.link.delta(scores, self.target[picks])
        weight = np.repeat(end / (self.workers * sizes), sizes)
        scores *= weight[None, :, None].astype(self.dtype)
        gradient = np.empty_like(models)
        self.train.backward(picks, scores, gradient)
        wide: Floats = gradient[0].astype(np.float64)
        return wide

    def describe(self) -> Integers:
        """(rows, classes) samples of each class a row holds; one column for numeric targets."""
        labels, classes = self._classes()
        return count_classes(self.split, labels, classes)

    def draw(self, path: str | Path) -> None:
        """Picture of what each row holds."""
        draw_counts(self.describe(), path)

    def _classes(self) -> tuple[Array, int]:
        if not self.has_accuracy:
            return np.zeros(len(self.target), np.int64), 1
        if self.outputs == 1:
            return (self.target > 0).astype(np.int64), 2
        return self.target, self.outputs


@problems.register("softmax", aliases=("softmax-regression",), published=_PUBLISHED)
def softmax(
    data: str = "mnist",
    data_dir: str | None = None,
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Softmax regression with bias: loss = log sum_c exp s_c - s_y."""
    options = dict(locals())

    def bind(**given: Any) -> LinearTask:
        held = dataset(data, data_dir)
        if held.classes < 2:
            raise ConfigError(f"softmax needs class labels of at least two classes, {held.name} has {held.classes}")
        everything = np.arange(len(held.train_y)), np.arange(len(held.test_y))
        targets = held.train_y.astype(np.int64), held.test_y.astype(np.int64)
        return _bind(options, held, SOFTMAX, held.classes, everything, targets, held.classes - 1, **given)

    return _problem("softmax", options, bind)


@problems.register("logistic", aliases=("logistic-regression",), published=_PUBLISHED)
def logistic(
    data: str = "mnist",
    data_dir: str | None = None,
    classes: str | Sequence[int] = "parity",
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Binary logistic regression: odd against even classes (`parity`), or a pair [a, b] of classes, b the positive."""
    options = dict(locals())

    def bind(**given: Any) -> LinearTask:
        held = dataset(data, data_dir)
        subsets, targets = _two_classes(held, classes)
        return _bind(options, held, LOGISTIC, 1, subsets, targets, 1, **given)

    return _problem("logistic", options, bind)


@problems.register("least-squares", aliases=("linear-regression", "ridge"), published=_PUBLISHED)
def least_squares(
    data: str = "mnist",
    data_dir: str | None = None,
    classes: str | Sequence[int] = "parity",
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Least squares (x w + bias - y)^2 / 2: y the data's number, or -1 and 1 for two classes as in `logistic`."""
    options = dict(locals())

    def bind(**given: Any) -> LinearTask:
        held = dataset(data, data_dir)
        if held.classes:
            subsets, targets = _two_classes(held, classes)
            targets = 2.0 * targets[0] - 1.0, 2.0 * targets[1] - 1.0
            return _bind(options, held, SQUARES, 1, subsets, targets, 0.0, **given)
        everything = np.arange(len(held.train_y)), np.arange(len(held.test_y))
        numbers = held.train_y.astype(np.float64), held.test_y.astype(np.float64)
        mirror = float(numbers[0].min() + numbers[0].max())
        return _bind(options, held, SQUARES, 1, everything, numbers, mirror, **given, has_accuracy=False)

    return _problem("least-squares", options, bind)


def _problem(name: str, options: dict[str, Any], bind: Any) -> Problem:
    """Check the options that the three problems share."""
    make_partition(options["partition"])
    check_positive("batch", options["batch"], whole=True)
    check_positive("scale", options["scale"])
    check_choice("batching", options["batching"], BATCHINGS)
    check_choice("init", options["init"], INITS)
    return Problem(name, options, bind)


def _two_classes(held: Dataset, classes: str | Sequence[int]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Samples of each part that count, and every sample's label 0 or 1."""
    if held.classes < 2:
        raise ConfigError(f"two classes are needed, {held.name} has numeric targets; use least-squares")
    if classes == "parity":
        everything = np.arange(len(held.train_y)), np.arange(len(held.test_y))
        return everything, (held.train_y.astype(np.int64) % 2, held.test_y.astype(np.int64) % 2)
    pair = () if isinstance(classes, str) else tuple(classes)
    if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= label < held.classes for label in pair):
        raise ConfigError(
            f"classes must be parity or a pair of different classes below {held.classes}, got {classes!r}"
        )
    subsets = tuple(np.flatnonzero((y == pair[0]) | (y == pair[1])) for y in (held.train_y, held.test_y))
    targets = tuple((y == pair[1]).astype(np.int64) for y in (held.train_y, held.test_y))
    return (subsets[0], subsets[1]), (targets[0], targets[1])


def _bind(
    options: Mapping[str, Any],
    held: Dataset,
    link: Link,
    outputs: int,
    subsets: tuple[Array, Array],
    targets: tuple[Array, Array],
    mirror: float,
    *,
    workers: int,
    seed: int,
    dtype: np.dtype[Any],
    liars: int,
    has_accuracy: bool = True,
) -> LinearTask:
    train, test = subsets
    split = split_samples(
        options["partition"],
        held.train_y[train] if has_accuracy else targets[0],
        train,
        mirror=mirror,
        workers=workers,
        liars=liars,
        seed=seed,
    )
    return LinearTask(
        dimension=(held.features + 1) * outputs,
        workers=workers,
        rows=workers + liars,
        dtype=dtype,
        seed=seed,
        outputs=outputs,
        batch=options["batch"],
        batching=options["batching"],
        init=options["init"],
        scale=options["scale"],
        link=link,
        split=split,
        train=rows_of(held, "train", outputs, dtype),
        test=rows_of(held, "test", outputs, dtype),
        target=targets[0],
        test_picks=test,
        test_target=targets[1][test],
        has_accuracy=has_accuracy,
    )

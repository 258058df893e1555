"""Regression problems on data: softmax, binary logistic, least squares. Options in, bound `LinearTask` out.

dataset    `mnist`, `fashion-mnist`, `cifar-10`, or a .npz or .csv file
data_dir   folder of the data set's files, if they are not to be downloaded
partition  which worker gets which samples
batch      samples of a gradient
batching   `uniform`: each drawn from all; `consecutive`: so many in a row from a random place; `distinct`: none twice
init       first models: `zero`; `common`, one draw of N(0, scale^2) for all; `normal`, a draw for each worker
scale      standard deviation of that draw, per coordinate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byzmesh.checks import choice, positive, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import INITS, Problem, problems
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.data.datasets import dataset as find
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.data.split import BATCHINGS, Sites, check_batch, split_samples
from byzmesh.problems.linear.losses import LOGISTIC, SOFTMAX, SQUARES, Link
from byzmesh.problems.linear.products import rows_of, sample_lengths
from byzmesh.problems.linear.task import LinearTask
from byzmesh.types import Array

_PUBLISHED = {"batching": "consecutive", "init": "normal", "scale": 6.0}


@problems.register("softmax", aliases=("softmax-regression",), published=_PUBLISHED)
def softmax(
    dataset: str = "mnist",
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
        data = find(dataset, data_dir)
        if data.classes < 2:
            raise ConfigError(f"softmax needs class labels of at least two classes, {data.name} has {data.classes}")
        targets = data.train_y.astype(np.int16), data.test_y.astype(np.int16)
        return _bind(options, data, SOFTMAX, data.classes, _everything(data), targets, data.classes - 1, **given)

    return _problem("softmax", options, bind)


@problems.register("logistic", aliases=("logistic-regression",), published=_PUBLISHED)
def logistic(
    dataset: str = "mnist",
    data_dir: str | None = None,
    classes: str | Sequence[int] = "parity",
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Binary logistic regression: odd against even classes (`parity`), or a pair [a, b] of classes with b positive."""
    options = dict(locals())

    def bind(**given: Any) -> LinearTask:
        data = find(dataset, data_dir)
        subsets, targets = _two_classes(data, classes)
        return _bind(options, data, LOGISTIC, 1, subsets, targets, 1, **given)

    return _problem("logistic", options, bind)


@problems.register("least-squares", aliases=("linear-regression",), published=_PUBLISHED)
def least_squares(
    dataset: str = "mnist",
    data_dir: str | None = None,
    classes: str | Sequence[int] | None = "parity",
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Least squares (x w + bias - y)^2 / 2: y is -1 or 1 for two classes as in `logistic`, the label itself if null."""
    options = dict(locals())

    def bind(**given: Any) -> LinearTask:
        data = find(dataset, data_dir)
        if data.classes and classes is not None:
            subsets, labels = _two_classes(data, classes)
            targets = 2.0 * labels[0] - 1.0, 2.0 * labels[1] - 1.0
            return _bind(options, data, SQUARES, 1, subsets, targets, 0.0, **given)
        targets = data.train_y.astype(np.float64), data.test_y.astype(np.float64)
        mirror = float(targets[0].min() + targets[0].max())
        return _bind(options, data, SQUARES, 1, _everything(data), targets, mirror, **given, has_accuracy=False)

    return _problem("least-squares", options, bind)


def _problem(name: str, options: dict[str, Any], bind: Any) -> Problem:
    """Check the options that the three problems share."""
    partitions.build(options["partition"])
    whole("batch", options["batch"], 1)
    positive("scale", options["scale"])
    choice("batching", options["batching"], BATCHINGS)
    choice("init", options["init"], INITS)
    return Problem(name, options, bind, sampled=True)


def _everything(data: Dataset) -> tuple[Array, Array]:
    return np.arange(len(data.train_y)), np.arange(len(data.test_y))


def _two_classes(data: Dataset, classes: str | Sequence[int]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The samples of each part that are used, and every sample's label 0 or 1."""
    if data.classes < 2:
        raise ConfigError(f"two classes are needed, {data.name} has numeric targets; use least-squares")
    if classes == "parity":
        return _everything(data), (data.train_y.astype(np.int16) % 2, data.test_y.astype(np.int16) % 2)
    pair = () if isinstance(classes, str) else tuple(classes)
    if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= label < data.classes for label in pair):
        raise ConfigError(
            f"classes must be parity or a pair of different classes below {data.classes}, got {classes!r}"
        )
    subsets = tuple(np.flatnonzero((y == pair[0]) | (y == pair[1])) for y in (data.train_y, data.test_y))
    targets = tuple((y == pair[1]).astype(np.int16) for y in (data.train_y, data.test_y))
    return (subsets[0], subsets[1]), (targets[0], targets[1])


def _bind(
    options: Mapping[str, Any],
    data: Dataset,
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
    threads: int,
    sites: Sites | None = None,
    has_accuracy: bool = True,
) -> LinearTask:
    train, test = subsets
    split = split_samples(
        options["partition"],
        data.train_y[train] if data.classes else targets[0],
        train,
        mirror=mirror,
        workers=workers,
        liars=liars,
        seed=seed,
        sites=sites,
    )
    check_batch(split, options["batch"], options["batching"])
    return LinearTask(
        dimension=(data.features + 1) * outputs,
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
        train=rows_of(data, "train", outputs, dtype),
        test=rows_of(data, "test", outputs, dtype),
        target=targets[0],
        test_picks=test,
        test_target=targets[1][test],
        labels=data.train_y if data.classes else np.zeros(len(data.train_y), np.int64),
        classes=max(data.classes, 1),
        class_names=data.class_names,
        has_accuracy=has_accuracy,
        threads=threads,
        lengths=lambda: sample_lengths(data),
    )

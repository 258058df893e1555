"""Which worker gets which training samples.

A partition is a function (labels (M,), workers, generator) -> one array of sample numbers per worker. Every sample goes
to one worker (only `drawn` gives it to several or to nobody), and every worker gets at least one. In a config it is a
name or a mapping:

    partition: iid
    partition: {name: dirichlet, alpha: 0.1}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice, is_number, positive, require, whole
from byzmesh.registry import Registry
from byzmesh.types import Integers

Shares = list[Integers]
Partition = Callable[[npt.NDArray[Any], int, np.random.Generator], Shares]

partitions: Registry[Partition] = Registry("partition", "byzmesh.partitions")
"""`partitions.build("iid")` is a function from labels, a number of workers and a generator to shares."""


@partitions.register("iid")
def iid() -> Partition:
    """Shuffled and split evenly."""

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        return np.array_split(generator.permutation(len(labels)), workers)

    return split


@partitions.register("drawn")
def drawn(size: int = 60) -> Partition:
    """Every worker draws `size` samples at random, with replacement: for more workers than samples.

    >>> [len(share) for share in drawn(size=2)(np.zeros(3), 5, np.random.default_rng(0))]
    [2, 2, 2, 2, 2]
    """
    whole("partition drawn: size", size, 1)

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        return list(generator.integers(len(labels), size=(workers, size)))

    setattr(split, "overlapping", True)  # noqa: B010 (no attribute of functions): `split_samples` asks for it
    return split


@partitions.register("stratified", aliases=("iid-by-class",))
def stratified() -> Partition:
    """Each class spread evenly over the workers, as in the paper's text; its runs, and `iid`, split at random.

    The samples of a class are shuffled and dealt out in turn, one class after the other, so that no two workers differ
    by more than one sample of a class, nor by more than one in all.
    """

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        dealt = np.concatenate([generator.permutation(samples) for samples in _by_class(labels)])
        return [dealt[worker::workers] for worker in range(workers)]

    return split


@partitions.register("one-class", aliases=("non-iid",))
def one_class() -> Partition:
    """One class per worker, in the order of the file.

    With more workers than classes, a class is split evenly among a consecutive group of workers; with fewer, a worker
    gets a consecutive group of classes. The sizes of groups differ by at most one.
    """

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        by_class = _by_class(labels)
        if workers <= len(by_class):
            return [np.concatenate(group) for group in _groups(by_class, workers)]
        members = [len(group) for group in _groups(list(range(workers)), len(by_class))]
        return [share for samples, count in zip(by_class, members) for share in np.array_split(samples, count)]

    return split


@partitions.register("shards")
def shards(k: int = 2) -> Partition:
    """Sorted by class, cut into k shards per worker, shards dealt at random."""
    whole("partition shards: k", k, 1)

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        pieces = np.array_split(np.concatenate(_by_class(labels)), workers * k)
        dealt = generator.permutation(workers * k).reshape(workers, k)
        return [np.concatenate([pieces[piece] for piece in hand]) for hand in dealt]

    return split


@partitions.register("dirichlet")
def dirichlet(alpha: float = 0.5) -> Partition:
    """Each class is divided by proportions drawn from Dirichlet(alpha): small alpha, few classes per worker.

    A worker left with nothing gets one sample from the worker with the most.
    """
    positive("partition dirichlet: alpha", alpha)

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        hands: list[list[Integers]] = [[] for _ in range(workers)]
        for samples in _by_class(labels):
            share = generator.dirichlet(np.full(workers, float(alpha)))
            cuts = np.round(np.cumsum(share)[:-1] * len(samples)).astype(np.int64)
            for hand, piece in zip(hands, np.split(generator.permutation(samples), cuts)):
                hand.append(piece)
        return _nobody_empty([np.concatenate(hand) for hand in hands])

    return split


@partitions.register("quantity")
def quantity(alpha: float = 0.5) -> Partition:
    """Shuffled; sizes drawn from Dirichlet(alpha). A worker left with nothing gets one sample from the largest."""
    positive("partition quantity: alpha", alpha)

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        share = generator.dirichlet(np.full(workers, float(alpha)))
        cuts = np.round(np.cumsum(share)[:-1] * len(labels)).astype(np.int64)
        return _nobody_empty(np.split(generator.permutation(len(labels)), cuts))

    return split


@partitions.register("sizes")
def sizes(shares: Sequence[float] = (1.0,), order: str = "shuffled") -> Partition:
    """Every site of the network, liars included, gets a part in proportion to its number in `shares`.

    What liars have nobody else gets: the honest sites' data do not depend on who lies.

    order  "shuffled", or "class": shuffled and sorted by class before it is cut, so that sites have few classes

    >>> [len(share) for share in sizes(shares=[0.6, 30, 69.4])(np.zeros(1000), 3, np.random.default_rng(0))]
    [6, 300, 694]
    """
    require(
        isinstance(shares, Sequence) and len(shares) > 0 and all(is_number(one) and one > 0 for one in shares),
        f"partition sizes: shares must be numbers above 0, one per site, got {shares!r}",
    )
    choice("partition sizes: order", order, ("shuffled", "class"))
    part = np.cumsum(np.asarray(shares, np.float64) / float(sum(shares)))

    def split(labels: npt.NDArray[Any], workers: int, generator: np.random.Generator) -> Shares:
        require(
            workers == len(part), f"partition sizes: shares must be {workers} numbers, one per site, got {len(part)}"
        )
        cuts = np.round(part[:-1] * len(labels)).astype(np.int64)
        dealt = generator.permutation(len(labels))
        if order == "class":
            dealt = np.concatenate([dealt[place] for place in _by_class(labels[dealt])])
        return _nobody_empty(np.split(dealt, cuts))

    setattr(split, "by_site", True)  # noqa: B010 (no attribute of functions): `Problem.bind` asks for it
    return split


def _by_class(labels: npt.NDArray[Any]) -> Shares:
    """Sample numbers of each class that occurs, in the order of the file."""
    require(labels.dtype.kind != "f", "this partition needs class labels, the data have numeric targets; use iid")
    order = np.argsort(labels, kind="stable")
    _, first = np.unique(labels[order], return_index=True)
    return np.split(order, first[1:])


def _groups(items: list[Any], count: int) -> list[list[Any]]:
    """`count` consecutive groups whose sizes differ by at most one, item i in group floor(i count / len)."""
    groups: list[list[Any]] = [[] for _ in range(count)]
    for place, item in enumerate(items):
        groups[place * count // len(items)].append(item)
    return groups


def _nobody_empty(shares: Shares) -> Shares:
    for worker, share in enumerate(shares):
        if len(share) == 0:
            largest = int(np.argmax([len(other) for other in shares]))
            shares[worker], shares[largest] = shares[largest][-1:], shares[largest][:-1]
    return shares

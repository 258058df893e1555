"""The training samples of every worker, and the batch each draws in a round.

    order  (M',)      sample numbers, worker after worker; 32 bits, because batches read it at random
    start  (rows + 1,) row n has order[start[n] : start[n + 1]]

Rows beyond the honest workers belong to liars that follow the protocol on flipped labels. They get the parts of a
second split by the same partition, so the honest parts do not depend on them; a sample may then occur twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.files import save_figure
from byzmesh.problems.data.partition import partitions
from byzmesh.rng import BATCH, PARTITION, below, generator, key, stream
from byzmesh.types import Integers

BATCHINGS = ("uniform", "consecutive", "distinct")
"""Each sample drawn from all; so many in a row; each drawn from those not drawn yet."""


@dataclass(frozen=True, kw_only=True)
class Sites:
    """Whose rows these are, if the data are divided among all sites of a network: of how many, and which of them."""

    count: int
    of_row: Integers


@dataclass(frozen=True, kw_only=True)
class Split:
    """The samples of every row."""

    order: npt.NDArray[np.int32]
    start: Integers
    honest: int
    mirror: Any
    """A liar's label is `mirror` - y: C - 1 - y for classes."""
    key: np.uint64
    """Key of the batches."""
    at_sites: Integers | None = None
    """(n,) samples of every site of the network, if the data were divided among all of them."""

    def share(self, row: int) -> npt.NDArray[np.int32]:
        """Sample numbers of a row."""
        return self.order[self.start[row] : self.start[row + 1]]


def split_samples(
    spec: str | Mapping[str, Any],
    labels: npt.NDArray[Any],
    subset: Integers,
    *,
    mirror: Any,
    workers: int,
    liars: int,
    seed: int,
    sites: Sites | None = None,
) -> Split:
    """Divide the samples `subset` with these labels among the honest workers, then among the liars.

    sites  divide them among all sites instead, those that lie too, and give every row what its site has
    """
    if workers < 1 or liars < 0:
        raise ConfigError(f"workers must be at least 1 and liars at least 0, got {workers} and {liars}")
    divide = partitions.build(spec)
    if sites is not None:
        return _among_sites(
            divide(labels, sites.count, generator(seed, PARTITION)), sites, subset, mirror, workers, seed
        )
    if len(subset) < max(workers, liars) and not getattr(divide, "overlapping", False):
        raise ConfigError(
            f"{len(subset)} samples cannot be shared among {max(workers, liars)} workers; use fewer, or partition drawn"
        )
    shares = divide(labels, workers, generator(seed, PARTITION))
    if liars:
        shares = shares + divide(labels, max(workers, liars), generator(seed, PARTITION, 1))[:liars]
    sizes = [len(share) for share in shares]
    if min(sizes) == 0:
        raise ConfigError(f"partition {spec!r} leaves worker {sizes.index(0)} without samples; use fewer workers")
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = subset[np.concatenate(shares)].astype(np.int32)
    return Split(order=order, start=start, honest=workers, mirror=mirror, key=key(seed, BATCH))


def _among_sites(shares: list[Integers], sites: Sites, subset: Integers, mirror: Any, workers: int, seed: int) -> Split:
    at_sites = np.array([len(share) for share in shares], np.int64)
    if at_sites.min() == 0:
        raise ConfigError(f"site {at_sites.argmin()} has no samples; use fewer sites, or another partition")
    own = [shares[site] for site in sites.of_row.tolist()]
    start = np.concatenate([[0], np.cumsum([len(share) for share in own])]).astype(np.int64)
    order = subset[np.concatenate(own)].astype(np.int32)
    return Split(order=order, start=start, honest=workers, mirror=mirror, key=key(seed, BATCH), at_sites=at_sites)


def draw_batches(
    split: Split, target: npt.NDArray[Any], rows: Integers, round: int, batch: int, batching: str
) -> tuple[Integers, npt.NDArray[Any]]:
    """(R, batch) sample numbers and targets of the rows' batches in a round."""
    picks = np.empty((len(rows), batch), np.int64)
    labels = np.empty((len(rows), batch), target.dtype)
    way = BATCHINGS.index(batching)
    fill_batches(
        split.key, rows, round, split.order, split.start, split.honest, split.mirror, target, way, picks, labels
    )
    return picks, labels


def check_batch(split: Split, batch: int, batching: str) -> None:
    """`ConfigError` if a row has too few samples for a batch of different ones."""
    fewest = int(np.diff(split.start).min())
    if batching == "distinct" and batch > fewest:
        raise ConfigError(f"batch must be at most {fewest}, the samples of the smallest site, got {batch}")


@exact
def fill_batches(
    key: Any,
    rows: Any,
    round: Any,
    order: Any,
    start: Any,
    honest: Any,
    mirror: Any,
    target: Any,
    way: Any,
    picks: Any,
    labels: Any,
) -> None:
    """`draw_batches` into `picks` and `labels` (R, batch); `way` is the batching's place in `BATCHINGS`."""
    for r in range(rows.shape[0]):
        row = rows[r]
        low, count = start[row], start[row + 1] - start[row]
        state = stream(key, row, round)
        first = below(state, 0, count)
        for s in range(picks.shape[1]):
            place = (first + s) % count if way == 1 else below(state, s, count)
            if way == 2:  # Floyd: a number below the next larger limit, or that limit if it was drawn before
                limit = count - picks.shape[1] + s
                place = below(state, s, limit + 1)
                for before in range(s):
                    if picks[r, before] == order[low + place]:
                        place = limit
                        break
            sample = order[low + place]
            picks[r, s] = sample
            labels[r, s] = target[sample] if row < honest else mirror - target[sample]


def count_classes(split: Split, labels: npt.NDArray[Any], classes: int) -> Integers:
    """(rows, classes) how many samples of each class a row has."""
    rows = len(split.start) - 1
    holder = np.repeat(np.arange(rows), np.diff(split.start))
    flat = np.bincount(holder * classes + labels[split.order].astype(np.int64), minlength=rows * classes)
    return flat.reshape(rows, classes).astype(np.int64)


def draw_counts(counts: Integers, path: str | Path, names: Sequence[str] = ()) -> None:
    """Draw the samples of each row: one bar per row, one colour per class, labelled by its name if it has one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows, classes = counts.shape
    figure = Figure(figsize=(max(4.0, min(0.35 * rows + 2.5, 20.0)), 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    bottom = np.zeros(rows)
    for label in range(classes):
        axes.bar(
            np.arange(rows), counts[:, label], bottom=bottom, width=0.8, label=names[label] if names else str(label)
        )
        bottom += counts[:, label]
    axes.set(xlabel="worker", ylabel="training samples")
    if classes <= 20:
        axes.legend(title="class", fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path, option="path")

"""Linear models of the data: softmax regression, binary logistic regression, least squares.

One worker's loss on a batch is the mean over its samples of link(scores, label), scores = x W + bias. A model is one
vector of D = (F + 1) C numbers: W (F, C) row-major, the C outputs contiguous, then the bias. Weight decay is not part
of the loss: it belongs to the local update (training/local.py).

Loss and accuracy are measured on the test set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.compiled import over_few, over_parts
from byzmesh.errors import ConfigError
from byzmesh.problems.base import StepKernel, first_models
from byzmesh.problems.data.split import BATCHINGS, Split, count_classes, draw_batches, draw_counts
from byzmesh.problems.descent import descend
from byzmesh.problems.linear.losses import SOFTMAX, Link, shorten
from byzmesh.problems.linear.products import Rows
from byzmesh.problems.linear.step_kernel import softmax_steps
from byzmesh.types import Array, Floats, Integers

_TOGETHER = 32  # rows whose models stay in the cache from the forward to the backward product
_SPLIT = 32  # below this many rows a second thread costs more than it saves
_CHUNK = 256  # samples converted to dense at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTask:
    """A linear model bound to data and workers; see `byzmesh.problems.base.Task`.

    target       (M,) what to predict for every training sample; labels (M,) its class in the data set
    test_picks   (T,) samples of the test set that are used, test_target (T,) their targets
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
    labels: Array = field(repr=False)
    classes: int
    has_accuracy: bool
    threads: int
    class_names: tuple[str, ...] = ()
    lengths: Callable[[], Floats] = field(repr=False)
    """-> (M,) ||[x 1]|| of every training sample."""
    longest: float | None = None
    """Samples' gradients are shortened to this length; None: they are not."""

    def clipping_samples(self, longest: float) -> LinearTask:
        """The same task with the gradient of every sample shortened to a length before they are averaged.

        It is [x 1] times the sample's slopes, so its length is ||[x 1]|| times theirs: no gradient has to be written.
        """
        lengths = self.lengths()
        return replace(self, longest=longest, lengths=lambda: lengths)

    def initial(self, kind: str | None = None) -> Array:
        """(rows, D) first models: `zero`, `common` or `normal`; the problem's `init` by default."""
        return first_models(kind or self.init, self.scale, self.rows, self.dimension, self.dtype, self.seed)

    def layers(self, model: Any) -> dict[str, Any]:
        """A model (D,), array or tensor, as `weight` (C, F) and `bias` (C,) of a linear layer: views of it."""
        table = model.reshape(-1, self.outputs)
        return {"weight": table[:-1].T, "bias": table[-1]}

    @property
    def samples(self) -> int:
        """All samples are numbered below this."""
        return len(self.target)

    def sizes(self) -> Integers:
        """(rows,) how many samples a row has."""
        return np.diff(self.split.start)

    def batches(self, round: int, rows: Integers) -> tuple[Integers, Array]:
        """(R, batch) sample numbers and targets of the rows' batches."""
        return draw_batches(self.split, self.target, rows, round, self.batch, self.batching)

    def share(self, row: int) -> tuple[Integers, Array]:
        """(1, size) numbers and targets of all samples of a row."""
        picks = self.split.share(row)[None].astype(np.int64)
        target: Array = self.target[picks]
        return picks, target if row < self.workers else self.split.mirror - target

    def slopes(self, models: Array, picks: Integers, targets: Array) -> Array:
        """(R, B, C) derivatives of the mean loss of R batches by the scores, at models (R, D)."""
        scores = np.empty((*picks.shape, self.outputs), self.dtype)
        self.train.forward(picks, models, scores)
        self.link.delta(scores, targets)
        if self.longest is not None:
            shorten(scores, self.lengths(), picks, self.longest)
        return scores

    def join(self, picks: Integers, slopes: Array, out: Array) -> None:
        """Write the gradients (R, D) of these slopes to `out`."""
        self.train.backward(picks, slopes, out)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) stochastic gradients of all rows at once, without weight decay."""
        rows = self._rows(models, rows)
        models = np.ascontiguousarray(models, self.dtype)
        out = self._checked(out, models)

        def work(part: slice) -> None:
            picks, labels = self.batches(round, rows[part])
            self.join(picks, self.slopes(models[part], picks, labels), out[part])

        over_few(work, len(models), _TOGETHER, _SPLIT, self.threads)
        return out

    def half_steps(
        self, models: Array, round: int, keep: float, step: float, out: Array, peak: Floats, rows: Integers
    ) -> None:
        """See `problems.base.Descends`: the gradients are never written."""
        models = np.ascontiguousarray(models, self.dtype)
        out = self._checked(out, models)
        if not len(rows) == len(peak) == len(models):
            raise ConfigError(f"rows and peak must be as many as the models, {len(models)}")
        kept, size = self.dtype.type(keep), self.dtype.type(step)

        def work(rows: Integers, models: Array, out: Array, peak: Floats) -> None:
            picks, labels = self.batches(round, rows)
            if self.longest is None:
                self.train.half_steps(self.link, picks, labels, models, kept, size, out, peak)
                return
            self.join(picks, self.slopes(models, picks, labels), out)
            descend(models, out, kept, size, out, peak)

        if len(models) <= _TOGETHER:
            work(rows, models, out, peak)
            return
        over_few(
            lambda few: work(rows[few], models[few], out[few], peak[few]), len(models), _TOGETHER, _SPLIT, self.threads
        )

    def step_kernel(self) -> StepKernel | None:
        """The same for a few rows from within compiled code; None if there is no such kernel."""
        descend = self.train.softmax_kernel if self.link is SOFTMAX and self.longest is None else None
        if descend is None or self.rows > _TOGETHER:
            return None
        split, way = self.split, BATCHINGS.index(self.batching)
        drawn = (split.key, split.order, split.start, split.honest, split.mirror, self.target, way)
        return StepKernel(softmax_steps(descend), (drawn, self.train.data, self.batch, self.outputs))

    def _checked(self, out: Array | None, models: Array) -> Array:
        """Where to write rows like the models', after checking what the compiled code does not check."""
        out = np.empty_like(models) if out is None else out
        if out.shape != models.shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise ConfigError(f"out must be a contiguous {self.dtype} array of shape {models.shape}, got {out.shape}")
        return out

    def _rows(self, models: Array, rows: Integers | None) -> Integers:
        """The chosen rows, after checking what the compiled code does not check."""
        chosen = np.arange(len(models)) if rows is None else np.asarray(rows, np.int64)
        if models.shape[-1] != self.dimension or len(models) > self.rows or len(chosen) != len(models):
            raise ConfigError(f"models must be up to {self.rows} rows of {self.dimension} numbers, got {models.shape}")
        if rows is not None and len(chosen) and not (chosen.min() >= 0 and chosen.max() < self.rows):
            raise ConfigError(f"rows must lie between 0 and {self.rows - 1}, got {chosen.min()} to {chosen.max()}")
        return chosen

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) mean loss of candidates (R, K, D) on each row's own batch of the round."""
        count, candidates = models.shape[:2]
        picks, labels = self.batches(round, self._rows(models, rows))
        picks, labels = np.repeat(picks, candidates, axis=0), np.repeat(labels, candidates, axis=0)
        flat = np.ascontiguousarray(models, self.dtype).reshape(count * candidates, self.dimension)
        return self._measure(self.train, picks, labels, flat)[0].reshape(count, candidates)

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """Test `loss` (K,) and `accuracy` (K,) of models (K, D); no accuracy for numeric targets."""
        models = np.ascontiguousarray(models, self.dtype)
        if models.ndim != 2 or models.shape[1] != self.dimension:
            raise ConfigError(f"models must be rows of {self.dimension} numbers, got shape {models.shape}")
        picks, labels = self.test_picks[None], self.test_target[None]
        loss, accuracy = np.empty(len(models)), np.empty(len(models))

        def work(part: slice) -> None:
            # one model at a time: it stays in the L1 cache while the test set streams past
            for k in range(part.start, part.stop):
                loss[k : k + 1], accuracy[k : k + 1] = self._measure(self.test, picks, labels, models[k : k + 1])

        over_parts(work, len(models), 2, self.threads)
        return {"accuracy": accuracy, "loss": loss} if self.has_accuracy else {"loss": loss}

    def class_accuracy(self, models: Array) -> Floats:
        """(K, C) accuracy of models (K, D) on the test samples of each class; NaN for a class that has none."""
        models = np.ascontiguousarray(models, self.dtype)
        classes = np.arange(self.outputs) if self.outputs > 1 else np.unique(self.test_target)
        found = np.full((len(models), len(classes)), np.nan)
        for column, label in enumerate(classes):
            of_class = self.test_target == label
            picks, labels = self.test_picks[of_class][None], self.test_target[of_class][None]
            for k in range(len(models) if picks.size else 0):
                found[k : k + 1, column] = self._measure(self.test, picks, labels, models[k : k + 1])[1]
        return found

    def own_accuracy(self, models: Array, rows: Integers) -> Floats:
        """(K,) fraction of all training samples of each row (K,) that its model (K, D) gets right."""
        models = np.ascontiguousarray(models, self.dtype)
        return np.array(
            [self._measure(self.train, *self.share(n), models[k : k + 1])[1][0] for k, n in enumerate(rows)]
        )

    def _measure(self, rows: Rows, picks: Array, labels: Array, models: Array) -> tuple[Floats, Floats]:
        scores = np.empty((*picks.shape, self.outputs), self.dtype)
        rows.forward(picks, models, scores)
        loss, accuracy = np.empty(len(models)), np.empty(len(models))
        self.link.measure(scores, labels, loss, accuracy)
        return loss, accuracy

    def local_gradients(self, model: Array) -> Floats:
        """(N, D) gradient at one model of each honest worker's mean loss on all its data."""
        models = np.ascontiguousarray(model, self.dtype)[None]
        out = np.empty((self.workers, self.dimension))
        gradient = np.empty_like(models)
        for row in range(self.workers):
            picks, targets = self.share(row)
            self.join(picks, self.slopes(models, picks, targets), gradient)
            out[row] = gradient[0]
        return out

    def local_losses(self, model: Array) -> Floats:
        """(N,) mean loss of each honest worker on all its data at one model, without weight decay."""
        models = np.ascontiguousarray(model, self.dtype)[None]
        return np.array([self._measure(self.train, *self.share(row), models)[0][0] for row in range(self.workers)])

    def least_loss(self) -> float:
        """0: no loss is negative."""
        return 0.0

    def full_gradient(self, model: Array) -> Floats:
        """(D,) gradient at one model of the average over the honest workers of each one's mean loss on all its data."""
        gradient: Floats = self.local_gradients(model).mean(axis=0)
        return gradient

    def smoothness(self) -> float:
        """L of every sample's loss: the link's curvature times the largest ||[x 1]||^2 of the honest workers' data."""
        return self.link.curvature * self._largest()

    def variations(self) -> tuple[float, float]:
        """Bounds on delta_in and delta_out by the longest gradient G of a sample: link's slope times ||[x 1]||.

        delta_in <= G, divided by sqrt(batch) if its samples are drawn one by one; delta_out <= 2 (1 - 1/N) G.
        """
        longest = self.link.slope * math.sqrt(self._largest())
        inner = longest / (math.sqrt(self.batch) if self.batching == "uniform" else 1.0)
        return inner, 2.0 * (1.0 - 1.0 / self.workers) * longest if self.workers > 1 else 0.0

    def _largest(self) -> float:
        """The largest ||[x 1]||^2 of the honest workers' data."""
        held = self.split.order[: self.split.start[self.workers]].astype(np.int64)
        largest = 0.0
        for first in range(0, len(held), _CHUNK):
            picks = held[first : first + _CHUNK, None]
            alone = np.zeros((*picks.shape, self.outputs), self.dtype)
            alone[:, :, 0] = 1.0  # the gradient of one score is the sample itself
            samples = np.empty((len(picks), self.dimension), self.dtype)
            self.train.backward(picks, alone, samples)
            largest = max(largest, float(np.einsum("sd,sd->s", samples, samples).max()))
        return largest

    def describe(self) -> Integers:
        """(rows, classes) how many samples of each class a row has; one column for numeric targets."""
        return count_classes(self.split, self.labels, self.classes)

    def draw(self, path: str | Path) -> None:
        """Draw the samples of each row to a file."""
        draw_counts(self.describe(), path, self.class_names)

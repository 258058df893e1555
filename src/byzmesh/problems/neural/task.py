"""A PyTorch module bound to data and workers: the task of `bm.problem("torch", ...)`.

On the CPU models are NumPy arrays (N, D) that tensors share memory with; on another device they are one tensor there.
Rules, attacks and local updates work on either without a copy.

Liars with poisoned data are rows beyond the honest workers: with flipped labels, or with a backdoor (`Backdoor`).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.problems.base import Array, Floats, Integers
from byzmesh.problems.neural.augment import Augmentation
from byzmesh.problems.neural.flat import Layout
from byzmesh.problems.neural.gradients import Net, batched, borrowed, fastest, loop
from byzmesh.problems.rows import gather
from byzmesh.problems.shares import Split, count_classes, draw_batches, draw_counts
from byzmesh.rng import BATCH, INITIAL, integers, key, uniforms

_EVALUATE = 500  # test samples at a time


@dataclass(frozen=True)
class Backdoor:
    """A white square of `size` pixels in the lower right corner that shall mean class `target`.

    share  part of a liar's batch that carries it
    """

    target: int
    size: int
    share: float

    def stamp(self, images: Any, white: float) -> Any:
        """Images (..., H, W) with the trigger: a copy."""
        stamped = images.clone()
        stamped[..., -self.size :, -self.size :] = white
        return stamped


@dataclass(frozen=True, eq=False)
class TorchTask:
    """See `byzmesh.problems.base.Task`.

    skeleton  the module: its architecture, frozen parameters and constant buffers
    layout    where the trainable parameters lie in a model's vector
    train_x, test_x (M, F) tensors on the device, a feature is scale * x + offset; train_y, test_y (M,)
    """

    workers: int
    rows: int
    dtype: np.dtype[Any]
    seed: int
    threads: int
    device: Any
    factory: Callable[[], Any] = field(repr=False)
    skeleton: Any = field(repr=False)
    net: Net = field(repr=False)
    way: str
    draws: bool
    what: dict[str, Any] = field(repr=False)
    init: str
    batch: int
    batching: str
    shape: tuple[int, ...]
    classes: int
    split: Split = field(repr=False)
    train_x: Any = field(repr=False)
    train_y: Any = field(repr=False)
    test_x: Any = field(repr=False)
    test_y: Any = field(repr=False)
    labels: Array = field(repr=False)
    scale: float
    offset: float
    augment: tuple[Augmentation, ...]
    backdoor: Backdoor | None
    chosen: dict[int, str] = field(default_factory=dict)
    """Number of rows -> way of the gradients, once known; a checkpoint keeps it."""

    @property
    def layout(self) -> Layout:
        """Where the trainable parameters lie in a model's vector."""
        return self.net.layout

    @property
    def dimension(self) -> int:
        """D."""
        return self.layout.dimension

    def initial(self, kind: str | None = None) -> Any:
        """(rows, D) first models: `common`, one fresh module for all, or `own`, a fresh one per row."""
        kind = kind or self.init
        if kind == "common":
            return self._out(self._fresh(-1).repeat(self.rows, 1))
        import torch

        return self._out(torch.stack([self._fresh(row) for row in range(self.rows)]))

    def _fresh(self, row: int) -> Any:
        from byzmesh.problems.neural.flat import flatten

        return flatten(seeded(self.factory, self.seed, row)).to(self.device, _torch_dtype(self.dtype))

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients of the rows' batch losses, without weight decay."""
        chosen = self._rows(models, rows)
        there = self._in(models)
        target = there.new_empty(there.shape) if out is None else self._in(out)
        with self._threads():
            x, y = self.batches(round, chosen)
            way = self._way(there, x, y, target)
            seeds = integers(key(self.seed, BATCH, 3), chosen, round, 1, 1 << 31)[:, 0].tolist() if self.draws else None
            with _forked(self.draws, self.device):
                (batched if way == "batched" else loop)(self.net, there, x, y, target, seeds)
        return self._out(target) if out is None else out

    def _way(self, models: Any, x: Any, y: Any, out: Any) -> str:
        if self.way != "auto" or self.draws or len(models) < 2:
            return "loop" if self.way == "auto" or self.draws else self.way
        if len(models) not in self.chosen:
            self.chosen[len(models)] = fastest(self.net, self.what, models, x, y, out)
        return self.chosen[len(models)]

    def batches(self, round: int, rows: Integers) -> tuple[Any, Any]:
        """Samples (R, B, *shape) and targets (R, B) of the rows' batches, augmented and poisoned."""
        import torch

        picks, _ = draw_batches(self.split, self.labels, rows, round, self.batch, self.batching)
        where = torch.from_numpy(picks).to(self.device)
        x, y = self._samples(self.train_x, where), self.train_y[where]
        for number, augmentation in enumerate(self.augment):
            count = augmentation.count
            drawn = uniforms(key(self.seed, BATCH, 2, number), rows, round, self.batch * count)
            drawn = torch.from_numpy(drawn.reshape(len(rows), self.batch, count)).to(self.device)
            x = augmentation.apply(x, drawn)
        liars = torch.from_numpy(np.flatnonzero(rows >= self.workers)).to(self.device)
        if len(liars):
            y = y.clone()
            if self.backdoor is None:
                y[liars] = (self.split.mirror - y[liars]).to(y.dtype)
            else:
                count = max(1, round_half_up(self.backdoor.share * self.batch))
                x = x.clone()
                x[liars, :count] = self.backdoor.stamp(x[liars, :count], self.white)
                y[liars, :count] = self.backdoor.target
        return x, y

    @property
    def white(self) -> float:
        """The value of a white pixel."""
        return self.scale * 255 + self.offset if self.train_x.dtype.itemsize == 1 else float(self.train_x.max())

    def _samples(self, x: Any, where: Any) -> Any:
        """Samples (..., *shape) at the places `where` (...)."""
        import torch

        if self.device.type == "cpu":  # one pass instead of three
            made = np.empty((1, where.numel(), x.shape[1]), self.dtype)
            kind = self.dtype.type
            gather(x.numpy(), where.numpy().reshape(1, -1), kind(self.scale), kind(self.offset), made)
            batch = torch.from_numpy(made)
        else:
            batch = x[where].to(_torch_dtype(self.dtype)).mul_(self.scale).add_(self.offset)
        return batch.view(*where.shape, *self.shape)

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) loss of candidates (R, K, D) on each row's own batch of the round."""
        import torch

        chosen = self._rows(models, rows)
        there = self._in(models)
        found = np.empty(tuple(there.shape[:2]))
        with self._threads(), torch.no_grad(), borrowed(self.net.module) as parameters, _forked(self.draws, "cpu"):
            x, y = self.batches(round, chosen)
            for row, candidates in enumerate(there):
                for place, vector in enumerate(candidates):
                    self._point(parameters, vector)
                    found[row, place] = float(self.net.loss(self.net.module(x[row]), y[row]))
        return found

    def _point(self, parameters: list[Any], vector: Any) -> None:
        for parameter, view in zip(parameters, self.layout.views(vector).values(), strict=True):
            parameter.data = view

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """Test `loss` (K,), `accuracy` (K,) for classes and, under a backdoor, `backdoor` (K,): how often the trigger
        makes a model see the target class in a test image of another class."""
        import torch

        there = self._in(models)
        if there.ndim != 2 or there.shape[1] != self.dimension:
            raise ConfigError(f"models must be rows of {self.dimension} numbers, got shape {tuple(there.shape)}")
        module = copy.deepcopy(self.skeleton).eval()
        sums = np.zeros((3, len(there)))
        total, others = len(self.test_y), 0
        with self._threads(), torch.inference_mode(), borrowed(module) as parameters:
            for first in range(0, total, _EVALUATE):
                where = torch.arange(first, min(total, first + _EVALUATE), device=self.device)
                x, y = self._samples(self.test_x, where), self.test_y[where]
                stamped = x[:0]
                if self.backdoor is not None:
                    stamped = self.backdoor.stamp(x[y != self.backdoor.target], self.white)
                    others += len(stamped)
                for place, vector in enumerate(there):
                    self._point(parameters, vector)
                    outputs = module(x)
                    sums[0, place] += float(self.net.loss(outputs, y)) * len(where)
                    if self.classes:
                        sums[1, place] += int((outputs.argmax(dim=1) == y).sum())
                    if len(stamped):
                        sums[2, place] += int((module(stamped).argmax(dim=1) == self.backdoor.target).sum())  # type: ignore[union-attr]
        found = {"loss": sums[0] / total}
        if self.classes:
            found = {"accuracy": sums[1] / total, **found}
        if self.backdoor is not None:
            found["backdoor"] = sums[2] / max(1, others)
        return found

    def local_gradients(self, model: Array) -> Floats:
        """(N, D) gradient at one model of each honest worker's mean loss on all its data."""
        import torch

        there = self._in(model)[None]
        found = np.zeros((self.workers, self.dimension))
        part = there.new_empty(there.shape)
        with self._threads(), _forked(self.draws, self.device):
            for row in range(self.workers):
                share = torch.from_numpy(self.split.share(row).astype(np.int64)).to(self.device)
                for where in share.split(_EVALUATE):
                    x, y = self._samples(self.train_x, where), self.train_y[where]
                    loop(self.net, there, x[None], y[None], part)
                    found[row] += part[0].cpu().numpy() * (len(where) / len(share))
        return found

    def full_gradient(self, model: Array) -> Floats:
        """(D,) average of `local_gradients`."""
        gradient: Floats = self.local_gradients(model).mean(axis=0)
        return gradient

    def smoothness(self) -> float:
        """Not known for a module: an error."""
        raise ConfigError("the smoothness of problem torch is not known; certificates of Theorem 1 need softmax")

    def describe(self) -> Integers:
        """(rows, classes) samples of each class a row holds; one column for numeric targets."""
        return count_classes(self.split, self.labels if self.classes else self.labels * 0, max(1, self.classes))

    def draw(self, path: str | Path) -> None:
        """Picture of what each row holds."""
        draw_counts(self.describe(), path)

    def _rows(self, models: Any, rows: Integers | None) -> Integers:
        chosen = np.arange(len(models)) if rows is None else np.asarray(rows, np.int64)
        if models.shape[-1] != self.dimension or len(chosen) != len(models):
            raise ConfigError(
                f"models must be up to {self.rows} rows of {self.dimension} numbers, got {tuple(models.shape)}"
            )
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < self.rows):
            raise ConfigError(f"rows must lie between 0 and {self.rows - 1}, got {chosen.min()} to {chosen.max()}")
        return chosen

    def _in(self, array: Any) -> Any:
        """A tensor on the device that shares memory with a NumPy array."""
        import torch

        if isinstance(array, np.ndarray):
            return torch.from_numpy(np.ascontiguousarray(array, self.dtype))
        return array

    def _out(self, tensor: Any) -> Any:
        return tensor.numpy() if tensor.device.type == "cpu" else tensor

    @contextlib.contextmanager
    def _threads(self) -> Iterator[None]:
        import torch

        before = torch.get_num_threads()
        if before != self.threads:
            torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            if before != self.threads:
                torch.set_num_threads(before)


def seeded(factory: Callable[[], Any], seed: int, row: int) -> Any:
    """A fresh module as row `row` makes it (-1: nobody's, the common one), whatever torch's generator stands at."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(key(seed, INITIAL, row) >> np.uint64(1)))
        return factory()


@contextlib.contextmanager
def _forked(draws: bool, device: Any) -> Iterator[None]:
    """Leave torch's generators as they were, if the module draws."""
    if not draws:
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[device] if getattr(device, "type", "") == "cuda" else []):
        yield


def _torch_dtype(dtype: np.dtype[Any]) -> Any:
    import torch

    return torch.float64 if dtype == np.float64 else torch.float32


def round_half_up(value: float) -> int:
    """The nearest whole number.

    >>> round_half_up(2.5)
    3
    """
    return int(value + 0.5)

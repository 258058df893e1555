"""The samples of a torch problem on their device: every worker's batch of a round, and the test set.

Liars with poisoned data are rows beyond the honest workers: with flipped labels, or with a `Backdoor`.

    x (..., *shape) in the models' dtype, a feature is scale * stored + offset;  y (...) class numbers or targets
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byzmesh.problems.data.split import Split, draw_batches
from byzmesh.problems.linear.products import gather
from byzmesh.problems.neural.augment import Augmentation
from byzmesh.problems.neural.backdoor import Backdoor
from byzmesh.rng import BATCH, key, uniforms
from byzmesh.types import Array, Integers

AT_A_TIME = 500
"""Samples per part of a pass over many."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """Stored samples train_x (M, F), test_x (T, F) and targets train_y (M,), test_y (T,), tensors on the device.

    labels  (M,) the training targets as a NumPy array
    """

    split: Split
    seed: int
    batch: int
    batching: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    device: Any
    scale: float
    offset: float
    labels: Array = field(repr=False)
    train_x: Any = field(repr=False)
    train_y: Any = field(repr=False)
    test_x: Any = field(repr=False)
    test_y: Any = field(repr=False)
    augment: tuple[Augmentation, ...] = ()
    backdoor: Backdoor | None = None
    whole: bool = False
    """Whether modules get whole numbers."""
    tokens: bool = False
    """Whether a sample is a window of tokens, and the targets (..., T) are the next ones."""

    def batches(self, round: int, rows: Integers) -> tuple[Any, Any]:
        """x (R, B, *shape), y (R, B) of the rows' batches, augmented and poisoned."""
        import torch

        picks, _ = draw_batches(self.split, self.labels, rows, round, self.batch, self.batching)
        where = torch.from_numpy(picks).to(self.device)
        x, y = self._pair(self.train_x, self.train_y, where)
        for number, augmentation in enumerate(self.augment):
            shape = len(rows), self.batch, augmentation.count
            drawn = uniforms(key(self.seed, BATCH, 2, number), rows, round, self.batch * augmentation.count)
            x = augmentation.apply(x, torch.from_numpy(drawn.reshape(shape)).to(self.device))
        lying = rows >= self.split.honest
        return self._poisoned(x, y, torch.from_numpy(np.flatnonzero(lying)).to(self.device)) if lying.any() else (x, y)

    def _poisoned(self, x: Any, y: Any, liars: Any) -> tuple[Any, Any]:
        y = y.clone()
        if self.backdoor is None:
            y[liars] = (self.split.mirror - y[liars]).to(y.dtype)
            return x, y
        count = int(self.backdoor.share * self.batch + 0.5)
        for liar in liars.tolist():
            self.backdoor.plant(x[liar, :count], y[liar, :count])
        return x, y

    def share(self, row: int) -> Iterator[tuple[Any, Any]]:
        """All samples of a row, unchanged, in parts."""
        import torch

        held = torch.from_numpy(self.split.share(row).astype(np.int64)).to(self.device)
        for where in held.split(AT_A_TIME):
            yield self._pair(self.train_x, self.train_y, where)

    def test(self) -> Iterator[tuple[Any, Any]]:
        """The test set in parts."""
        import torch

        for where in torch.arange(len(self.test_y), device=self.device).split(AT_A_TIME):
            yield self._pair(self.test_x, self.test_y, where)

    def _pair(self, stored: Any, targets: Any, where: Any) -> tuple[Any, Any]:
        """Samples and targets at the indices `where` (...)."""
        if self.tokens:
            windows = stored[where]
            return windows[..., :-1].contiguous(), windows[..., 1:].contiguous()
        return self._take(stored, where), targets[where]

    def _take(self, stored: Any, where: Any) -> Any:
        """Samples (..., *shape) at the indices `where` (...)."""
        import torch

        if self.whole:
            taken = stored[where]
        elif self.device.type == "cpu":  # one pass instead of three
            made = np.empty((1, where.numel(), stored.shape[1]), self.dtype)
            kind = self.dtype.type
            gather(stored.numpy(), where.numpy().reshape(1, -1), kind(self.scale), kind(self.offset), made)
            taken = torch.from_numpy(made)
        else:
            taken = stored[where].to(torch_dtype(self.dtype)).mul_(self.scale).add_(self.offset)
        return taken.view(*where.shape, *self.shape)


def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """The dtype of tensors for a NumPy dtype."""
    import torch

    return torch.float64 if dtype == np.float64 else torch.float32

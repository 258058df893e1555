"""Quadratic losses without noise: f_n(x) = s/2 ||x - z_n||^2, for examples whose answer is known by hand.

The gradient of f_n is s (x - z_n); the average over the honest workers is smallest at the mean of their centres z_n.
The paper's two examples:

    two-castle problem   targets="halves", curvature=2, init="targets": f_n(x) = (x - z)^2,
                         z = -1 for the first half of the workers and 1 for the second,
                         each starting at its own minimum
    non-doubly           targets="normal" or given, curvature=1: f_n(x) = 1/2 ||x - z_n||^2
    stochastic weights
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.checks import choice, positive, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import INITS, Problem, first_models, problems
from byzmesh.problems.data.split import draw_counts
from byzmesh.rng import PARTITION, key, normals
from byzmesh.types import Array, Floats, Integers

_TARGETS = ("halves", "normal")
_BUFFER, _COLUMNS = 1 << 23, 1 << 20
"""Numbers in a block of differences, and its columns, when many models are evaluated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class QuadraticTask:
    """Quadratics bound to workers; see `byzmesh.problems.base.Task`. `targets` (rows, D) are the centres."""

    dimension: int
    workers: int
    rows: int
    dtype: np.dtype[Any]
    seed: int
    curvature: float
    init: str
    scale: float
    targets: Array = field(repr=False)

    def initial(self, kind: str | None = None) -> Array:
        """(rows, D) first models: as for other problems, or `targets`, each worker at its own minimum."""
        if (kind or self.init) == "targets":
            return self.targets.copy()
        return first_models(kind or self.init, self.scale, self.rows, self.dimension, self.dtype, self.seed)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients s (x - z_n)."""
        out = np.subtract(models, self._centres(len(models), rows), out=out)
        out *= self.dtype.type(self.curvature)
        return out

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) losses f_n of candidates (R, K, D)."""
        return self._loss(models - self._centres(len(models), rows)[:, None])

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """`loss` (K,): the average of the honest workers' f_n at each model (K, D)."""
        given, loss = np.asarray(models), np.zeros((len(models), self.workers))
        some = max(1, _BUFFER // self.dimension)
        few = max(1, some // self.workers)
        for k in range(0, len(given), few):
            for n in range(0, self.workers, some):
                centres = self.targets[n : min(n + some, self.workers)]
                for left in range(0, self.dimension, _COLUMNS):
                    part = slice(left, left + _COLUMNS)
                    gaps = given[k : k + few, None, part] - centres[None, :, part]
                    loss[k : k + few, n : n + some] += self._loss(gaps)
        return {"loss": loss.mean(axis=1)}

    def _centres(self, count: int, rows: Integers | None) -> Array:
        """(R, D) the centres of these rows, without a copy if they are the first ones."""
        first = rows is None or np.array_equal(rows, np.arange(count))
        return self.targets[:count] if first else self.targets[rows]

    def local_gradients(self, model: Array) -> Floats:
        """(N, D) gradients of the honest workers' f_n at one model."""
        gaps: Floats = self.curvature * (np.asarray(model, np.float64) - self.targets[: self.workers])
        return gaps

    def full_gradient(self, model: Array) -> Floats:
        """(D,) gradient of the average of the f_n."""
        gradient: Floats = self.local_gradients(model).mean(axis=0)
        return gradient

    def smoothness(self) -> float:
        """L: the curvature."""
        return self.curvature

    def variations(self) -> tuple[float, float]:
        """(delta_in, delta_out), exact: no noise, and the largest s ||z_n - mean of the centres||."""
        centres = self.targets[: self.workers].astype(np.float64)
        return 0.0, self.curvature * float(np.linalg.norm(centres - centres.mean(axis=0), axis=1).max())

    def local_losses(self, model: Array) -> Floats:
        """(N,) f_n of the honest workers at one model."""
        return self._loss(np.asarray(model) - self.targets[: self.workers])

    def least_loss(self) -> float:
        """f*, exact: the average of the f_n at the mean of the centres."""
        centres = self.targets[: self.workers].astype(np.float64)
        return float(self._loss(centres - centres.mean(axis=0)).mean())

    def describe(self) -> Integers:
        """(rows, 1) ones: each row has its centre."""
        return np.ones((self.rows, 1), np.int64)

    def draw(self, path: str | Path) -> None:
        """Draw the samples of each row to a file."""
        draw_counts(self.describe(), path)

    def _loss(self, gaps: Array) -> Floats:
        wide = gaps.astype(np.float64)
        loss: Floats = 0.5 * self.curvature * np.einsum("...d,...d->...", wide, wide)
        return loss


@problems.register("quadratic")
def quadratic(
    targets: str | Sequence[Sequence[float]] = "halves",
    dimension: int = 1,
    curvature: float = 1.0,
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Deterministic s/2 ||x - z_n||^2: centres `halves` (-1, then 1), `normal` (drawn) or one list per worker."""
    options = dict(locals())
    positive("curvature", curvature)
    whole("dimension", dimension, 1)
    positive("scale", scale)
    choice("init", init, (*INITS, "targets"))
    if isinstance(targets, str):
        choice("targets", targets, _TARGETS)
        given = None
    else:
        try:
            given = np.array(targets, np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"targets must be {', '.join(_TARGETS)} or one list of numbers per worker") from error
        if given.ndim != 2 or not np.isfinite(given).all():
            raise ConfigError(f"targets must be one list of finite numbers per worker, got shape {given.shape}")

    def bind(*, workers: int, seed: int, dtype: np.dtype[Any], liars: int, threads: int) -> QuadraticTask:
        if given is not None and len(given) != workers:
            raise ConfigError(f"targets has {len(given)} rows for {workers} workers; give one per worker")
        size = dimension if given is None else given.shape[1]
        rows = workers + liars
        centres = np.empty((rows, size), dtype)
        if given is not None:
            centres[:workers] = given
        elif targets == "halves":
            centres[:workers] = np.where(np.arange(workers) < workers // 2, -1.0, 1.0)[:, None]
        else:
            for row in range(workers):  # one row of float64 at a time
                centres[row] = normals(key(seed, PARTITION), [row], 0, dimension, np.float64)[0]
        # a liar that flips its labels pulls towards the mirror image of an honest centre
        np.negative(centres[np.arange(liars) % workers], out=centres[workers:])
        return QuadraticTask(
            dimension=size,
            workers=workers,
            rows=rows,
            dtype=dtype,
            seed=seed,
            curvature=curvature,
            init=init,
            scale=scale,
            targets=centres,
        )

    return Problem("quadratic", options, bind, sampled=False)

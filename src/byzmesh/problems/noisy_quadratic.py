"""Quadratic losses with noise, whose constants L, delta_in and delta_out are known exactly at every model.

    f_n(x) = (1/m) sum_i f_n(x; i),    f_n(x; i) = s/2 ||x - z_n - e_ni||^2,    sum_i e_ni = 0

The gradient of a sample drawn at random is s (x - z_n - e_ni): the noise -s e_ni does not depend on the model. Hence

    L          s, the curvature
    delta_in   s sqrt(mean_i ||e_ni||^2), the same for every worker and model
    delta_out  s max_n ||z_n - z||, z the mean of the centres: 0 here, and the minimum of the average of the f_n

The centres z_n and the m samples of each worker are drawn, then moved and scaled so that the two deltas are those asked
for, up to the rounding of `dtype`. A problem to hold theorems against runs with (`byzmesh certify --run`), and small
enough to study many runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byzmesh.checks import at_least, choice, positive, require, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import INITS, Problem, problems
from byzmesh.problems.quadratic import QuadraticTask
from byzmesh.rng import BATCH, PARTITION, integers, key, normals
from byzmesh.types import Array, Floats, Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyQuadraticTask(QuadraticTask):
    """Noisy quadratics bound to workers; see `byzmesh.problems.base.Task` and `Sampled`.

    points     (rows * m, D) the samples z_n + e_ni, row after row; `targets` (rows, D) are their means z_n
    delta_in   as asked for
    """

    delta_in: float
    per_row: int
    points: Array = field(repr=False)

    batch = 1

    @property
    def outputs(self) -> int:
        """D: the slopes of a sample are its gradient."""
        return self.dimension

    @property
    def samples(self) -> int:
        """All samples are numbered below this."""
        return len(self.points)

    def sizes(self) -> Integers:
        """(rows,) how many samples a row has."""
        return np.full(self.rows, self.per_row)

    def batches(self, round: int, rows: Integers) -> tuple[Integers, Array]:
        """(R, 1) the sample that each row draws in a round, and its points (R, 1, D)."""
        picks = self.per_row * np.asarray(rows)[:, None] + integers(key(self.seed, BATCH), rows, round, 1, self.per_row)
        return picks, self.points[picks]

    def share(self, row: int) -> tuple[Integers, Array]:
        """(1, m) numbers of all samples of a row, and their points (1, m, D)."""
        picks = np.arange(row * self.per_row, (row + 1) * self.per_row)[None]
        return picks, self.points[picks]

    def slopes(self, models: Array, picks: Integers, targets: Array) -> Array:
        """(R, B, D) gradients of the samples at models (R, D), divided by B."""
        slopes: Array = (models[:, None] - targets) * self.dtype.type(self.curvature / picks.shape[1])
        return slopes

    def join(self, picks: Integers, slopes: Array, out: Array) -> None:
        """Write the sums (R, D) of these gradients to `out`."""
        slopes.sum(axis=1, out=out)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients s (x - z_n - e_ni) of one sample per row."""
        picks, points = self.batches(round, np.arange(len(models)) if rows is None else rows)
        out = np.empty_like(models) if out is None else out
        self.join(picks, self.slopes(models, picks, points), out)
        return out

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) losses of candidates (R, K, D) on each row's own sample of the round."""
        return self._loss(models - self.batches(round, np.arange(len(models)) if rows is None else rows)[1])

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """`loss` (K,): the average of the honest workers' f_n at each model (K, D)."""
        return {"loss": super().evaluate(models)["loss"] + self._noise}

    def variations(self) -> tuple[float, float]:
        """(delta_in, delta_out), exact up to rounding."""
        return self.delta_in, super().variations()[1]

    def local_losses(self, model: Array) -> Floats:
        """(N,) f_n of the honest workers at one model."""
        return super().local_losses(model) + self._noise

    def least_loss(self) -> float:
        """f*, exact."""
        return super().least_loss() + self._noise

    @property
    def _noise(self) -> float:
        """What the noise adds to every f_n: s/2 mean_i ||e_ni||^2."""
        return self.delta_in**2 / (2.0 * self.curvature)

    def describe(self) -> Integers:
        """(rows, 1) how many samples a row has."""
        return self.sizes()[:, None]


@problems.register("noisy-quadratic")
def noisy_quadratic(
    delta_in: float = 1.0,
    delta_out: float = 1.0,
    dimension: int = 10,
    samples: int = 20,
    curvature: float = 1.0,
    init: str = "zero",
    scale: float = 1.0,
) -> Problem:
    """Mean of s/2 ||x - z_n - e_ni||^2 over `samples` per worker: variations of the gradients exactly as given."""
    options = dict(locals())
    at_least("delta_in", delta_in, 0)
    at_least("delta_out", delta_out, 0)
    whole("dimension", dimension, 1)
    whole("samples", samples, 1)
    require(delta_in == 0 or samples > 1, "delta_in > 0 needs samples of at least 2, got 1")
    positive("curvature", curvature)
    positive("scale", scale)
    choice("init", init, INITS)

    def bind(*, workers: int, seed: int, dtype: np.dtype[Any], liars: int, threads: int) -> NoisyQuadraticTask:
        if workers == 1 and delta_out > 0:
            raise ConfigError(f"delta_out must be 0 for one honest worker, got {delta_out}; use more workers")
        rows = workers + liars
        centres = normals(key(seed, PARTITION), np.arange(workers), 0, dimension, np.float64)
        centres -= centres.mean(axis=0)
        centres *= _scale(delta_out / curvature, np.linalg.norm(centres, axis=1).max())
        # a liar that flips its labels pulls towards the mirror image of an honest centre
        centres = np.concatenate([centres, -centres[np.arange(liars) % workers]])
        noise = normals(key(seed, PARTITION, 1), np.arange(rows * samples), 0, dimension, np.float64)
        noise = noise.reshape(rows, samples, dimension)
        noise -= noise.mean(axis=1, keepdims=True)
        size = np.sqrt((noise**2).sum(axis=2).mean(axis=1))
        noise *= _scale(delta_in / curvature, size)[:, None, None]
        return NoisyQuadraticTask(
            dimension=dimension,
            workers=workers,
            rows=rows,
            dtype=dtype,
            seed=seed,
            curvature=curvature,
            init=init,
            scale=scale,
            targets=centres.astype(dtype),
            delta_in=delta_in,
            per_row=samples,
            points=(centres[:, None] + noise).reshape(-1, dimension).astype(dtype),
        )

    return Problem("noisy-quadratic", options, bind, sampled=True)


def _scale(wanted: float, size: Any) -> Any:
    """wanted / size, 0 if nothing is wanted (of nothing)."""
    return wanted / size if wanted else np.zeros_like(size)

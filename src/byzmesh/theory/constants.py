"""The constants of the assumptions, from a problem's gradients: L, delta_in and delta_out.

    L            every sample's loss is L-smooth. For linear models the loss of a sample (a, y) has curvature at most
                 c ||a||^2, so L <= c max ||a||^2 + decay: c = 1 for least squares, 1/4 logistic, 1/2 softmax (exact
                 bound); for other problems the largest ||grad(x) - grad(y)|| / ||x - y|| seen, which may be too small
    delta_in^2   max over workers and models of E ||stochastic - full gradient||^2
    delta_out^2  max over workers and models of ||full gradient - its mean over the workers||^2

The variations are the largest seen at sampled models. At other models they may be larger, and the inner one is a mean
over sampled batches, with a sampling error: `Constants.how` says "sampled", and they prove no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import Problem, problems
from byzmesh.types import Floats

MOST_DOUBLINGS = 10
CURVATURE = {"least-squares": 1.0, "logistic": 0.25, "softmax": 0.5}


@dataclass(frozen=True)
class Constants:
    """L, delta_in and delta_out, and how each was found: "exact", "bound", "sampled" or "given"."""

    smoothness: float
    delta_in: float
    delta_out: float
    how: dict[str, str]


def estimate_constants(
    problem: str | Problem | Mapping[str, Any],
    *,
    workers: int = 10,
    decay: float = 0.01,
    points: int = 6,
    draws: int = 8,
    seed: int = 0,
) -> Constants:
    """L, delta_in and delta_out of a problem for this many honest workers: what `certify` needs for its bounds.

    L is a bound from the data (exact for quadratics). The variations are the largest seen at `points` models along
    gradient descent from the initial model, with `draws` batches each; they may be larger elsewhere. A step is 1 / L
    or, because L bounds every sample and their mean may be much smoother, 2, 4, ... times that as long as the loss
    falls.

    >>> import byzmesh as bm
    >>> seen = bm.estimate_constants("quadratic", workers=4, decay=0.0)
    >>> seen.smoothness, seen.how["L"]
    (1.0, 'bound')
    """
    task = problems.build(problem).bind(workers=workers, seed=seed, dtype="float64")
    smoothness = task.smoothness() + decay
    model = task.initial()[0].astype(np.float64)

    def slope(at: Floats) -> Floats:
        return task.full_gradient(at) + decay * at

    way = [model]
    for _ in range(max(1, points) - 1):
        way.append(_downhill(way[-1], slope, 1.0 / smoothness))

    def full(at: Any) -> Any:
        return task.local_gradients(at) + decay * at

    def stochastic(at: Any, draw: int) -> Any:
        return task.gradients(np.tile(at, (workers, 1)), draw) + decay * at

    seen = constants_of(full, stochastic, np.array(way), draws=draws, smoothness=smoothness)
    return replace(seen, how={**seen.how, "L": "bound"})


def _downhill(model: Floats, slope: Callable[[Floats], Floats], step: float) -> Floats:
    """One step of gradient descent, doubled while the loss still falls at its end, so never past the minimum."""
    gradient = slope(model)
    after = model - step * gradient
    for _ in range(MOST_DOUBLINGS):
        step *= 2.0
        farther = model - step * gradient
        if not float(slope(farther) @ gradient) > 0.0:
            break
        after = farther
    return after


def linear_model_smoothness(features: npt.ArrayLike, loss: str, decay: float = 0.0, bias: bool = True) -> float:
    """L of a linear model: c max_i (||a_i||^2 + 1 if there is a bias) + decay, over the samples (n, d).

    >>> linear_model_smoothness([[3.0, 4.0]], "logistic", decay=0.5, bias=False)
    6.75
    """
    choice("loss", loss, CURVATURE)
    rows = np.asarray(features, np.float64)
    return CURVATURE[loss] * (float((rows**2).sum(axis=1).max()) + float(bias)) + decay


def constants_of(
    full: Callable[[Floats], npt.ArrayLike],
    stochastic: Callable[[Floats, int], npt.ArrayLike],
    points: npt.ArrayLike,
    *,
    draws: int = 16,
    smoothness: float | None = None,
) -> Constants:
    """Constants from gradients at sampled models.

    full        (D,) model -> (N, D) full gradients of the workers there
    stochastic  (model, number of the draw) -> (N, D) stochastic gradients
    points      (P, D) models; P >= 2 unless `smoothness` is given

    >>> centres = np.array([[0.0], [2.0]])
    >>> seen = constants_of(lambda x: x - centres, lambda x, k: x - centres + (-1.0) ** k, [[0.0], [1.0]])
    >>> seen.smoothness, seen.delta_in, seen.delta_out
    (1.0, 1.0, 1.0)
    """
    models = np.asarray(points, np.float64)
    if models.ndim != 2 or len(models) < (1 if smoothness is not None else 2):
        raise ConfigError(f"points must be of shape (P, D) with P >= 2 models, got {models.shape}")
    whole("draws", draws, 1)
    gradients = np.stack([np.asarray(full(model), np.float64) for model in models])
    outer = ((gradients - gradients.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).max()
    inner = 0.0
    for model, exact in zip(models, gradients):
        total = np.zeros(len(exact))
        for draw in range(draws):
            total += ((np.asarray(stochastic(model, draw), np.float64) - exact) ** 2).sum(axis=1)
        inner = max(inner, float(total.max()) / draws)
    how = {"L": "given" if smoothness is not None else "sampled", "delta_in": "sampled", "delta_out": "sampled"}
    seen = _steepest(models, gradients) if smoothness is None else smoothness
    return Constants(seen, float(np.sqrt(inner)), float(np.sqrt(outer)), how)


def _steepest(models: Floats, gradients: Floats) -> float:
    """The largest change of a gradient per distance between consecutive models."""
    apart = np.sqrt((np.diff(models, axis=0) ** 2).sum(axis=1))
    change = np.sqrt((np.diff(gradients, axis=0) ** 2).sum(axis=2)).max(axis=1)
    if not (apart > 0.0).any():
        raise ConfigError("points must differ from one to the next for L to be sampled, got equal models")
    return float((change[apart > 0.0] / apart[apart > 0.0]).max())

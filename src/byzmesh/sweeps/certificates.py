"""The theory beside a running simulation, and the theory's constants from a problem's data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.problems.base import Problem, problems
from byzmesh.theory import constants


def estimate_constants(
    problem: str | Problem | Mapping[str, Any],
    *,
    workers: int = 10,
    decay: float = 0.01,
    points: int = 6,
    draws: int = 8,
    seed: int = 0,
) -> constants.Constants:
    """L, delta_in and delta_out of a problem for this many honest workers: what `certify` needs for its bounds.

    L is a bound from the data (exact for quadratics). The variations are the largest seen at `points` models on the way
    of plain gradient descent from the initial model, with `draws` batches each: estimates from below.

    >>> import byzmesh as bm
    >>> found = bm.estimate_constants("quadratic", workers=4, decay=0.0)
    >>> found.smoothness, found.how["L"]
    (1.0, 'bound')
    """
    task = problems.build(problem).bind(workers=workers, seed=seed, dtype="float64")
    smoothness = task.smoothness() + decay
    model = task.initial()[0].astype(np.float64)
    way = []
    for _ in range(max(1, points)):
        way.append(model.copy())
        model = model - (task.full_gradient(model) + decay * model) / smoothness * 8.0

    def full(at: Any) -> Any:
        return task.local_gradients(at) + decay * at

    def stochastic(at: Any, draw: int) -> Any:
        return task.gradients(np.tile(at, (workers, 1)), draw) + decay * at

    found = constants.estimate_constants(full, stochastic, np.array(way), draws=draws, smoothness=smoothness)
    return constants.Constants(found.smoothness, found.delta_in, found.delta_out, {**found.how, "L": "bound"})

"""A run round by round, with what the theorems are about: H^k, the gradient at the average, the contraction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.compiled import limit_threads
from byzmesh.errors import ConfigError
from byzmesh.rules.interop import to_host
from byzmesh.simulation.engine import Simulation
from byzmesh.theory.comparison import ROUNDING, Trace
from byzmesh.theory.measured import round_contraction
from byzmesh.theory.mixing import virtual_mixing
from byzmesh.training.spread import spread
from byzmesh.types import Array, Floats, Integers


class _Redrawn:
    """A task with other batches: those of later rounds, which the run does not use."""

    def __init__(self, task: Any, later: int) -> None:
        self._task, self._later = task, later

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients of the later round's batches."""
        gradients: Array = self._task.gradients(models, round + self._later, out, rows)
        return gradients

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) losses on the later round's batches."""
        losses: Floats = self._task.losses(models, round + self._later, rows)
        return losses


def trace_of(simulation: Simulation, draws: int = 1) -> Trace:
    """The trace of a simulation from its start; a draw that diverges ends all of them.

    draws  the first has the batches of the run, the others batches that it does not use; data, first models and liars
           are the same

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="noisy-quadratic", network={"name": "ring", "n": 5}, rule="mean", rounds=3)
    >>> trace_of(run, draws=2).disagreement.shape
    (2, 4)
    """
    series: list[list[list[float]]] = []
    largest = 0.0
    epsilon = float(np.finfo(to_host(simulation.models[:0]).dtype).eps)
    for draw in range(draws):
        simulation = replace(simulation, task=_Redrawn(simulation.task, simulation.rounds if draw else 0))
        mixing = virtual_mixing(simulation.network, simulation.rule).matrix
        decay = simulation.local.decay
        found: list[list[float]] = []
        with limit_threads(simulation.threads):
            while True:
                models = to_host(simulation.models)[simulation.honest_row]
                average = models.mean(axis=0, dtype=np.float64)
                gradient = simulation.task.full_gradient(average.astype(models.dtype)) + decay * average
                size = float(np.sqrt(np.einsum("nd,nd->n", models, models, dtype=np.float64).max()))
                largest = max(largest, size)
                ratio = 0.0
                if found:
                    sent = to_host(simulation.last[0])[simulation.honest_row]
                    ratio = float(round_contraction(sent, models, mixing, ROUNDING * epsilon * size).max())
                found.append([spread(models)[1], float(gradient @ gradient), ratio])
                if simulation.round == simulation.rounds or not simulation.step():
                    break
        series.append(found)
    length = min(map(len, series))
    if length < 2:
        raise ConfigError("the run diverges in its first round; nothing can be said about it")
    values = np.array([found[:length] for found in series])
    return Trace(
        disagreement=values[:, :, 0],
        gradient=values[:, :, 1],
        contraction=values[:, 1:, 2],
        largest=largest,
        epsilon=epsilon,
    )

"""The local part of a round, from the models to the half steps, for simulator and peers.

    step  = schedule(k)
    for each of `steps` updates, with its own batch:
        g     = gradient estimate at x                 (training/variance.py: plain, SAGA, L-SVRG)
        x     = (1 - decay step) x - step (g or v)     (training/local.py: momentum, clipping)

The simulator has all its workers in one `LocalRound`, R rows without a loop over them; a peer is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byzmesh.problems.base import Descends, Task
from byzmesh.rules.interop import from_host, to_host
from byzmesh.training.local import LocalOptions, local_update
from byzmesh.training.schedules import Schedule
from byzmesh.training.variance import estimator
from byzmesh.types import Array, Floats, Integers

_MOMENTUM, _GRADIENTS = "state/local", "gradients/"
"""Names of the arrays in checkpoints."""


class LocalRound:
    """The local part of every round, for some rows of a task.

    rows      (R,) rows of the task, which determine data and draws
    schedule  round -> step size
    options   momentum, clipping, updates per round, variance reduction

    >>> import byzmesh as bm
    >>> task = bm.problem("quadratic", dimension=2).bind(workers=3)
    >>> local = LocalRound(task, np.array([1]), lambda k: 0.1, LocalOptions(momentum="heavy-ball"))
    >>> models = task.initial()[[1]]
    >>> local.start(models)
    >>> local.half_steps(models, 0).shape, sorted(local.states())
    ((1, 2), ['state/local'])
    """

    def __init__(self, task: Task, rows: Integers, schedule: Schedule, options: LocalOptions, seed: int = 0) -> None:
        self.task, self.rows, self.schedule, self.steps, self.decay = task, rows, schedule, options.steps, options.decay
        self._descends = task if options.plain and isinstance(task, Descends) else None
        self._update = local_update(options)
        self._estimator = estimator(task, rows, options.variance, options.refresh, seed)

    def start(self, models: Array) -> None:
        """Reset all states; `models` (R, D) are the first ones."""
        self._gradients = _empty_like(models)
        # a round of one step no longer needs the gradients once it has the half steps
        self._half = self._gradients if self.steps == 1 else _empty_like(models)
        self._momentum: Any = self._update.init(models)
        self._kept = self._estimator.init(models)
        self._peak = np.empty(len(models))

    def half_steps(self, models: Array, round: int) -> Array:
        """(R, D) the half steps from `models` in a round; the next call overwrites them."""
        size, current = self.schedule(round), models
        batches = range(round * self.steps, (round + 1) * self.steps)
        if self._descends is not None:
            for batch in batches:
                if current is self._half:
                    self._half, self._gradients = self._gradients, self._half
                keep = 1.0 - self.decay * size
                self._descends.half_steps(current, batch, keep, size, self._half, self._peak, self.rows)
                current = self._half
            return self._half
        for batch in batches:
            self._kept = self._estimator.apply(current, batch, self._kept, self._gradients)
            self._momentum = self._update.apply(current, self._gradients, size, self._momentum, self._half)
            current = self._half
        return self._half

    @property
    def peak(self) -> Floats | None:
        """(R,) largest absolute value of each row of the last half steps, infinity if not finite; None: unknown."""
        return None if self._descends is None else self._peak

    def losses(self, round: int) -> Callable[[Array], Floats]:
        """(R, K, D) -> (R, K): losses of candidates on each row's first batch of a round."""
        return lambda candidates: self.task.losses(candidates, round * self.steps, self.rows)

    def apart(self, models: Any) -> Any:
        """The models, copied if the next half steps would overwrite them."""
        if isinstance(models, np.ndarray):
            return models.copy() if np.may_share_memory(models, self._half) else models
        half: Any = self._half
        return models.clone() if models.data_ptr() == half.data_ptr() else models

    def states(self) -> dict[str, Array]:
        """What the next round needs besides the models, by name, for a checkpoint."""
        momentum = {} if self._momentum is None else {_MOMENTUM: to_host(self._momentum)}
        return momentum | {f"{_GRADIENTS}{name}": values for name, values in self._kept.items()}

    def resume(self, states: Mapping[str, Array]) -> None:
        """Continue from what `states` returned; other names in the mapping are ignored. Call `start` first."""
        if self._momentum is not None:
            self._momentum = from_host(states[_MOMENTUM], self._momentum)
        self._kept = {name: states[f"{_GRADIENTS}{name}"] for name in self._kept}


def _empty_like(models: Any) -> Array:
    made: Array = np.empty_like(models) if isinstance(models, np.ndarray) else models.new_empty(models.shape)
    return made

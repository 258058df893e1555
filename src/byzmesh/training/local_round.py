"""The local part of a round, from the models to the half steps, for simulator and peers.

    step  = schedule(k)
    for each of `steps` updates, with its own batch:
        g     = gradient estimate at x                 (training/variance.py: plain, SAGA, L-SVRG)
        x     = (1 - decay step) x - step (g or v)     (training/local.py: momentum, clipping, optimizers)
    after the exchange: the outer step                 (training/outer.py)

The last columns of a module's models may be buffers that its forward pass changes (problems/neural/buffers.py): no
optimizer touches them, and local ones are zero in what is sent.

The simulator has all its workers in one `LocalRound`, R rows without a loop over them; a peer is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.problems.base import ClipsSamples, Descends, HasStepKernel, StepKernel, Task
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.interop import from_host, to_host
from byzmesh.training.local import LocalOptions, local_update
from byzmesh.training.schedules import Schedule
from byzmesh.training.variance import averaged, estimator
from byzmesh.types import Array, Floats, Integers

_GRADIENTS, _OUTER = "gradients/", "state/outer"
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
        if options.clip_samples is not None:
            if not isinstance(task, ClipsSamples):
                raise ConfigError(
                    "local clip_samples needs a problem that knows the gradient of every sample: softmax, logistic or "
                    "least-squares; use clip"
                )
            task = task.clipping_samples(options.clip_samples)
        self.task, self.rows, self.schedule, self.steps, self.decay = task, rows, schedule, options.steps, options.decay
        self._descends = task if options.plain and isinstance(task, Descends) else None
        self._update = local_update(options, getattr(task, "layout", None))
        made = estimator(task, rows, options.variance, options.refresh, seed)
        self._estimator = made if options.accumulate == 1 else averaged(made, options.accumulate)
        self._outer = options.outer
        self._buffers: int = getattr(task, "running", 0)
        self._hidden = getattr(task, "buffers", None) == "local"

    def start(self, models: Array) -> None:
        """Reset all states; `models` (R, D) are the first ones."""
        self._gradients = _empty_like(models)
        # a round of one step no longer needs the gradients once it has the half steps
        self._half = self._gradients if self.steps == 1 else _empty_like(models)
        self._scratch = self._gradients
        self._momentum: Any = self._update.init(models)
        self._kept = self._estimator.init(models)
        self._peak = np.empty(len(models))
        self._velocity = self._outer.init(models)

    def half_steps(self, models: Array, round: int, resting: Integers | None = None) -> Array:
        """(R, D) the half steps from `models` in a round; the next call overwrites them.

        resting  positions of the rows that do nothing in this round: no step, and what they remember stays
        """
        if resting is not None and len(resting):
            half: Any = self._without(resting, models, round)
        else:
            half = self._steps(models, round)
        if self._hidden:
            self._own = half[:, -self._buffers :] + 0
            half[:, -self._buffers :] = 0
        made: Array = half
        return made

    def shown(self, models: Any) -> Any:
        """The models without what is never sent: local buffers are zero in it."""
        if not self._hidden:
            return models
        shown = models + 0
        shown[:, -self._buffers :] = 0
        return shown

    def kept(self, models: Any, new: Any) -> Any:
        """New models with the local buffers of the former ones."""
        if self._hidden:
            new[:, -self._buffers :] = models[:, -self._buffers :]
        return new

    def _steps(self, models: Array, round: int) -> Array:
        size, current = self.schedule(round), models
        if size == 0.0:
            return self._unmoved(models)
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
            new = self._new_buffers(current) if self._buffers else None
            self._momentum = self._update.apply(current, self._gradients, size, self._momentum, self._half)
            if new is not None:
                self._half[:, -self._buffers :] = new
            current = self._half
        return self._half

    def step_kernel(self) -> StepKernel | None:
        """The half steps of a round as a kernel, if a round is one plain step and nothing else."""
        alone = self.steps == 1 and not self._buffers and not self.needs_former
        return self._descends.step_kernel() if alone and isinstance(self._descends, HasStepKernel) else None

    @property
    def place(self) -> Array:
        """(R, D) where the next half steps will be."""
        return self._half

    def _new_buffers(self, models: Any) -> Any:
        """(R, B) what the last forward pass made of the buffers; no gradient for them remains."""
        change = self._gradients[:, -self._buffers :]
        new = models[:, -self._buffers :] - change
        change[:] = 0
        return new

    def _unmoved(self, models: Array) -> Array:
        """The half steps of a round without a step: no gradient is computed, and no state changes."""
        self._half[...] = models
        if self._descends is not None:
            self._peak[:] = peaks(models)
        return self._half

    def go_on_from(self, half: Array) -> Array:
        """Other half steps (R, D) instead of the last ones: what a channel left of them for their workers too."""
        self._half[...] = half
        if self._descends is not None:
            self._peak[:] = peaks(self._half)
        return self._half

    def write_to(self, place: Array) -> None:
        """Let the next half steps be written to `place` (R, D), if a round has one step; those before stay."""
        self._half, self._gradients = place, place if self.steps == 1 else self._scratch

    def outer(self, models: Array, agreed: Array, resting: Integers | None = None) -> Array:
        """(R, D) the next models, from the former ones and what the rule made of the half steps."""
        after: Any = self._moved(models, agreed, resting)
        if self._buffers:
            after = after + 0  # a rule may remember what it returned
            after[:, -self._buffers :] = self._own if self._hidden else agreed[:, -self._buffers :]
        made: Array = after
        return made

    def _moved(self, models: Array, agreed: Array, resting: Integers | None) -> Array:
        if self._velocity is None or resting is None or not len(resting):
            return self._outer.apply(models, agreed, self._velocity)
        before = to_host(self._velocity)[resting]
        after = self._outer.apply(models, agreed, self._velocity)
        self._velocity[resting] = from_host(before, self._velocity)
        return after

    @property
    def needs_former(self) -> bool:
        """Whether `outer` reads the former models."""
        return self._outer.name != "none"

    def _without(self, resting: Integers, models: Array, round: int) -> Array:
        """The half steps of all, undone where a row rests."""
        undo = self._estimator.undo(self._kept, resting), self._update.undo(self._momentum, resting)
        half, kept = self._steps(models, round), models[resting]
        half[resting] = kept
        for restore in undo:
            restore()
        if self._descends is not None:
            self._peak[resting] = peaks(kept)
        return half

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
        velocity = {} if self._velocity is None else {_OUTER: to_host(self._velocity)}
        kept = {f"{_GRADIENTS}{name}": values for name, values in self._kept.items()}
        return self._update.saved(self._momentum) | kept | velocity

    def resume(self, states: Mapping[str, Array]) -> None:
        """Continue from what `states` returned; other names in the mapping are ignored. Call `start` first."""
        self._momentum = self._update.resumed(self._momentum, states)
        if self._velocity is not None:
            self._velocity = from_host(states[_OUTER], self._velocity)
        self._kept = {name: states[f"{_GRADIENTS}{name}"] for name in self._kept}


def learn(task: Task, rows: Integers, rounds: int, schedule: Schedule, options: LocalOptions) -> Array:
    """(D,) what these rows of a task learn together in so many rounds, with one average of all after every round.

    >>> import byzmesh as bm
    >>> task = bm.problem("quadratic", dimension=1).bind(workers=2)
    >>> learn(task, np.arange(2), 100, lambda k: 0.5, LocalOptions(decay=0.0)).shape
    (1,)
    """
    local = LocalRound(task, rows, schedule, options)
    models = task.initial()[rows]
    local.start(models)
    for round in range(rounds):
        average = to_host(local.half_steps(models, round)).mean(axis=0)
        models = from_host(np.tile(average, (len(rows), 1)), models)
    learned: Array = to_host(models).mean(axis=0)
    return learned


def _empty_like(models: Any) -> Array:
    made: Array = np.empty_like(models) if isinstance(models, np.ndarray) else models.new_empty(models.shape)
    return made

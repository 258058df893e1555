"""The round loop: Algorithm 1 for all honest workers at once.

    k-th round    half = models - step g               (training: local round, one batched call)
                  forged = what liars send             (attacks)
                  models = rule(half, forged)          (rules: all receivers at once)

There is no Python loop over workers or neighbours. Every draw is a function of (seed, purpose, worker, round), so the
state of a run is its models, the small states of rule, local update and attack, and the series measured so far. A
checkpoint contains these, and a resumed run equals an uninterrupted one bit for bit (same CPU type, same threads).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.compiled import computing_time, limit_threads
from byzmesh.errors import ConfigError
from byzmesh.progress import progress_bar
from byzmesh.round import Round
from byzmesh.rules.inbox import sent_by
from byzmesh.rules.interop import to_host
from byzmesh.simulation.carrying import Courier
from byzmesh.simulation.changing import Changing
from byzmesh.simulation.live import NOBODY
from byzmesh.simulation.parts import DIVERGED, FINISHED, RUNNING
from byzmesh.simulation.run import Run
from byzmesh.simulation.saving import restore, save
from byzmesh.training.metrics import metric_of

TOGETHER = 16
"""Rounds in one compiled call: so many that it costs nothing, so few that an interrupt need not wait."""


@dataclass(kw_only=True)
class Simulation(Changing):
    """A simulation to run step by step.

    Iterating yields a dict of the metrics at every evaluation; `run()` runs to the end. Its parts cannot be
    replaced: the config describes them, and much is prepared from them.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rounds=2)
    >>> run.step()
    True
    >>> run.round, run.models.shape
    (1, (5, 1))
    >>> run.rule = bm.rule("mean")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: rule of a simulation cannot be changed; build another simulation with it
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start()

    def start(self) -> None:
        """Go back to round 0."""
        first = self.task.initial()
        self.models = first[self.task_row] if self.attack.poisons_data or len(first) > len(self.task_row) else first
        self.local_round.start(self.models)
        self.courier = None
        if self.channel:
            shown = self.local_round.shown(self.models)
            self.courier = Courier(self.channel, shown, self.exchange.receiver, self.seed, self.network.links)
        self.sent_bytes = np.zeros(len(self.models), np.int64)
        self.round = 0
        self.status = RUNNING
        self.seconds = 0.0
        self.rule_state = self.rule.init(self.local_round.shown(self.models))
        self.attack_state = None if self.attack.poisons_data or self.live else self.attack.init(self.scene)
        self.trials = None if self.live else self._trials()
        self._begin()
        self.counts = None
        self._met = {}
        if self.live:
            self.live.past.forget()
        self.series = {}
        self.per_worker = {}
        self.last = (None, None)
        self.futures = {}

    def step(self) -> bool:
        """Compute one round; False if an honest model is beyond `LOST` or not finite, which ends the run."""
        return self._go(1)

    def _go(self, most: int) -> bool:
        """Compute one round, or up to so many of them if they are one compiled call; False as `step` says it."""
        k = self.round
        if self.attack.horizon and k % self.attack.horizon == 0:
            self.before = {name: values.copy() for name, values in self.local_round.states().items()}
            self.courier_before = () if self.courier is None else self.courier.state
        asleep = self._meet(self.live, k) if self.live else NOBODY
        if self._whole is not None and self._in_one_call(self._whole, most):
            return True
        self.half = self.local_round.half_steps(self.models, k, asleep)
        round = Round(number=k, total=self.rounds, step_size=self.schedule(k), seed=self.seed)
        if self.courier is not None:
            sent = sent_by(self.rule, self.half, self.local_round.shown(self.models))
            kept = self.courier.carry(sent, k, reuse=self.attack.fixed or not self._lies)
            if self.courier.channel.stays:
                self.half = self.local_round.go_on_from(kept)
        found = self._prepared_round(round) or self._whole_round(round)
        if found is None:
            self.status = DIVERGED
            return False
        agreed, coefficients, present, state = found
        before = self.models
        self.models = self.local_round.outer(before, agreed, asleep)
        if self.live:
            self.live.remember(self.half, self.local_round.peak, self.local_round.shown(before))
        self._remember(state, asleep)
        if len(asleep):
            self.models[asleep] = before[asleep]
        self._count(self.half if self.rule.sends == "half" else before, coefficients, present)
        return True

    def steps(self, count: int) -> bool:
        """Compute so many rounds, as one compiled call where that is possible; False as `step` says it."""
        last = self.round + count
        while self.round < last:
            if not self._go(last - self.round):
                return False
        return True

    def advance(self) -> dict[str, float]:
        """Evaluate at round 0, or compute a round and evaluate if due; the metrics, or an empty dict.

        Rounds that are one compiled call are computed `TOGETHER` at a time, up to the next evaluation.
        """
        began = computing_time()
        due = self.round == 0 and not self.series
        if not due:
            count = 1
            if self._whole is not None:
                left = self.evaluate_every - self.round % self.evaluate_every
                count = max(1, min(left, self.rounds - self.round, TOGETHER))
            due = self.steps(count) and (self.round % self.evaluate_every == 0 or self.round == self.rounds)
        record = self.evaluate() if due else {}
        if self.status == RUNNING and self.round >= self.rounds:
            self.status = FINISHED
        self.seconds += computing_time() - began
        return record

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Run to the end, yielding the metrics at every evaluation (including round 0)."""
        with limit_threads(self.threads):
            while self.status == RUNNING:
                record = self.advance()
                if record:
                    yield record

    def run(self, *, progress: bool = False) -> Run:
        """Run to the end; with `progress`, a bar in a notebook or a terminal tells of every evaluation."""
        with progress_bar(progress) as tell:
            for record in self:
                shown = ", ".join(metric_of(name).text(record[name]) for name in ("accuracy", "loss") if name in record)
                tell(self.round / max(self.rounds, 1), f"round {self.round} of {self.rounds}: {shown}")
        return self.result()

    def result(self) -> Run:
        """The result so far."""
        return Run(
            config=self.config,
            metrics={name: np.array(values) for name, values in self.series.items()},
            workers={name: np.array(values) for name, values in self.per_worker.items()},
            models=to_host(self.models)[self.honest_row],
            edges=None if self.counts is None else self.counts.edges(self.network.byzantine),
            status=self.status,
            rounds=self.round,
            seconds=self.seconds,
        )

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: one file, replaced in one step."""
        save(self, path)

    def restore(self, path: str | Path) -> None:
        """Go back to a checkpoint of the same config."""
        restore(self, path)

    def extend(self, path: str | Path) -> None:
        """Continue from the last checkpoint of the same config with fewer rounds.

        The caller must know that no round depends on the number of rounds. The evaluation at that run's last round is
        dropped unless this run has it too.
        """
        restore(self, path, fewer_rounds=True)
        if self.round % self.evaluate_every and self.series["round"][-1] == self.round:
            for values in (*self.series.values(), *self.per_worker.values()):
                values.pop()
        self.status = RUNNING


class _Part:
    """A field that is set once. Without `__get__`, so that reading it costs no call, nor setting anything else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set__(self, owner: Any, value: Any) -> None:
        if self.name in owner.__dict__:
            raise ConfigError(f"{self.name} of a simulation cannot be changed; build another simulation with it")
        owner.__dict__[self.name] = value


for _name in Simulation.__dataclass_fields__:
    setattr(Simulation, _name, _Part(_name))

"""Runs of an audit: what is asked for, what may be spent on it, and what came of it."""

from __future__ import annotations

import itertools
import math
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from byzmesh.attacks.base import attacks
from byzmesh.config.cell import Cell, make_cell
from byzmesh.config.code import CodeReader
from byzmesh.config.keys import assign
from byzmesh.config.schema import resolve
from byzmesh.errors import ByzmeshError
from byzmesh.problems.base import KnowsItsData
from byzmesh.reports.aggregation import value_of
from byzmesh.store import ENDED, RunRecord, Store, open_store
from byzmesh.studies.audit.lies import FAMILIES, Lie
from byzmesh.sweeps.build import build
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.sweep import cores, sweep

Bound: TypeAlias = str | int | tuple[int, ...]
"""An f, for all or one per honest worker."""
WARMING = ("target", "riding, negative", "ALIE", "sign-flipping")
"""Families that between them need nearly all compiled code."""
QUIET = Lie(family="nobody lies", strength=None, attack={"name": "none"})
LOUD = Lie(family="sign-flipping", strength=None, attack={"name": "sign-flipping"})
"""A lie that goes with every problem."""
ALONE = "NoComm"
"""The rule of workers that hear nobody."""
PERFECT = {"accuracy": 100.0, "loss": 0.0}
"""What a lie is held against if the run without liars fails (it may have too few neighbours for f)."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A run of an audit.

    value    accuracy in percent, or the loss of a problem without accuracy; NaN if the run has no result
    damage   by how much it is worse than the run without liars from the same start after as many rounds; NaN if there
             is none
    lost     the damage as a part of what that run reaches
    """

    rule: str
    lie: Lie
    start: str
    seed: int
    rounds: int
    stage: int
    key: str
    config: Mapping[str, Any] = field(repr=False)
    f: Bound | None = None
    """Instead of the config's f; None: as configured."""
    value: float = math.nan
    metric: str = "accuracy"
    damage: float = math.nan
    lost: float = math.nan
    status: str = "not run"
    seen: float = math.nan
    """Accuracy on the workers' own data, if it was measured: what they can see themselves."""
    seconds: float = 0.0
    """Per round."""

    @property
    def diverged(self) -> bool:
        """Whether the models left the range of numbers: accuracy 0, loss infinite."""
        return self.status == "diverged"


@dataclass(kw_only=True)
class Budget:
    """Short runs per rule; and seconds, and rounds of all runs together, if they are limited."""

    runs: int
    seconds: float = math.inf
    rounds: float = math.inf
    began: float = field(default_factory=time.monotonic)
    spent: int = 0
    """Rounds."""

    def seconds_left(self, part: float = 1.0) -> float:
        """Until this part of the time is over."""
        return part * self.seconds - (time.monotonic() - self.began)

    def rounds_left(self, part: float = 1.0) -> float:
        """Until this part of the rounds is spent."""
        return part * self.rounds - self.spent

    @property
    def over(self) -> bool:
        """Whether nothing more may be run."""
        return self.seconds_left() <= 0.0 or self.rounds_left() <= 0.0


@dataclass(kw_only=True)
class Search:
    """An audit under way: configs as written, rules, starts, and how to compute runs."""

    written: Mapping[str, Any]
    rules: Mapping[str, Any]
    starts: Sequence[str]
    own_start: str
    """Of `starts`, that of the config, or the first."""
    rounds: int
    liars: int
    store: Path
    budget: Budget
    folder: str = "."
    compute: Mapping[str, Any] = field(default_factory=dict)
    show: Show = lambda backlog, record: None
    measured: tuple[str, ...] = ("gradient",)
    """In the last stage."""
    interrupted: bool = False
    cut_short: bool = False
    """Whether runs were left out, as the time or the rounds were over."""
    failures: dict[str, list[str]] = field(default_factory=dict)
    """By rule: the runs that failed, and why."""
    trials: list[Trial] = field(default_factory=list)
    due: dict[str, list[Trial]] = field(default_factory=lambda: defaultdict(list))
    """By rule: trials that were to go on to a next stage."""
    _asked: dict[tuple[str, str], None] = field(default_factory=dict)
    _failed: set[tuple[str, str]] = field(default_factory=set)
    """Rules and families of the first stage; and of runs that failed."""

    def own_lies(self) -> list[Lie]:
        """The config's attack, if it has one."""
        own = self.written.get("attack") or "none"
        name = attacks.entry_of(own).name
        if name == "none":
            return []
        if isinstance(own, str):
            own = {"name": own}
        asked = dict(own) if isinstance(own, Mapping) else {"name": own.name, **own.options}
        numbers = [(option, value) for option, value in asked.items() if type(value) in (int, float)]
        option, strength = numbers[0] if len(numbers) == 1 else ("", None)
        return [Lie(family=f"the config's {name}", strength=strength, attack=asked, option=option)]

    def check(self) -> None:
        """Raise what is wrong with the config, with one of the rules there or with its attack, before anything runs."""
        for rule in self.rules:
            task = build(self.cell(rule, LOUD, self.starts[0], 0, 1, (), None).config).task
            if isinstance(task, KnowsItsData) and "accuracy" in task.evaluate(task.initial()[:1]):
                self.measured = ("gradient", "own_accuracy")
            for lie in self.own_lies():
                build(self.cell(rule, lie, self.starts[0], 0, 1, (), None).config)
        self._read_again()

    def cell(
        self, rule: str, lie: Lie, start: str, seed: int, rounds: int, measure: Sequence[str], f: Bound | None
    ) -> Cell:
        """The run; `ByzmeshError` if the config does not go with the lie (a backdoor without images, say)."""
        raw: dict[str, Any] = {
            **self.written,
            "rule": self.rules.get(rule, rule),
            "attack": dict(lie.attack),
            "seed": seed,
        }
        if start:
            assign(raw, "problem.init", start)
        raw |= {"rounds": rounds, "evaluate_every": max(1, rounds // 10) if measure else rounds}
        if f is not None:
            raw = {name: value for name, value in raw.items() if name != "b"}
            raw["f"] = list(f) if isinstance(f, tuple) else f
        if measure:
            raw["measure"] = [*raw.get("measure", []), *measure]
        return make_cell(resolve(raw, self.folder), reader=self._reader)

    def __post_init__(self) -> None:
        self._read_again()

    def _read_again(self) -> None:
        """After code was run: what a closure of the user's keeps is part of its identity, and sweeps read it anew."""
        self._reader = CodeReader()

    def warm_up(self) -> None:
        """Two rounds under some lies, not stored, and then the clock: compiling for the first time takes a minute."""
        for rule, family in itertools.product(self.rules, WARMING):
            with suppress(ByzmeshError):  # the search says what fails, and why
                build(self.cell(rule, FAMILIES[family].at(family, None), self.starts[0], 0, 2, (), None).config).run()
        self._read_again()
        self.budget.began = time.monotonic()

    def run(self, asked: Sequence[Trial], part: float = 1.0) -> list[Trial]:
        """The trials with their results; those that this part of the time or rounds did not allow for are left out."""
        deadline = time.monotonic() + max(self.budget.seconds_left(part), 1.0)
        spent = list(itertools.accumulate(trial.rounds for trial in asked))
        within = bisect_right(spent, self.budget.rounds_left(part))
        self.cut_short |= within < len(asked)
        self._asked |= {
            (trial.rule, trial.lie.family): None for trial in asked if trial.stage == 1 and trial.lie is not QUIET
        }
        asked = asked[:within]
        if not asked:
            return []
        self.budget.spent += spent[len(asked) - 1]
        late = False

        def show(backlog: Backlog, record: RunRecord | None) -> None:
            nonlocal late
            self.show(backlog, record)
            if time.monotonic() > deadline:
                late = True
                raise KeyboardInterrupt

        swept = sweep([trial.config for trial in asked], self.store, show=show, retry_failed=True, **self.compute)
        self.interrupted = swept.interrupted and not late
        self.cut_short |= late and not set(swept.statuses.values()) <= {*ENDED, "failed"}
        self._read_again()
        done = self._read(asked)
        self.trials += done
        return done

    def untried(self, rule: str) -> tuple[str, ...]:
        """Families that the first stage was to try and did not: the time or the rounds were over."""
        met = {(trial.rule, trial.lie.family) for trial in self.trials} | self._failed
        return tuple(family for name, family in self._asked if name == rule and (name, family) not in met)

    def _read(self, asked: Sequence[Trial]) -> list[Trial]:
        with open_store(self.store, readonly=True) as opened:
            found = [_result(trial, opened) for trial in asked]
            failed = [(trial, opened.get(trial.key).failure or "") for trial in found if trial.status == "failed"]
        for trial, why in failed:
            last = (why.strip() or "unknown").splitlines()[-1]
            self.failures.setdefault(trial.rule, []).append(f"{trial.lie.name}: {last}")
            self._failed.add((trial.rule, trial.lie.family))
        quiet = {(t.rule, t.start, t.rounds, t.seed, t.f): t for t in found if t.lie is QUIET}
        ended = [trial for trial in found if trial.status in ENDED]
        return [_judged(t, quiet.get((t.rule, t.start, t.rounds, t.seed, t.f))) for t in ended]

    @property
    def parallel(self) -> int:
        """How many runs are computed at once."""
        workers = self.compute.get("workers")
        return max(1, cores() if workers is None else workers)

    def trial(
        self,
        rule: str,
        lie: Lie,
        start: str,
        seed: int,
        rounds: int,
        stage: int,
        *,
        measure: Sequence[str] = (),
        f: Bound | None = None,
    ) -> Trial | None:
        """A trial to run; None if there is no such run."""
        try:
            cell = self.cell(rule, lie, start, seed, rounds, measure, f)
        except ByzmeshError:
            return None
        return Trial(
            rule=rule,
            lie=lie,
            start=start,
            seed=seed,
            rounds=rounds,
            stage=stage,
            key=cell.key,
            config=cell.config,
            f=f,
        )


def _result(trial: Trial, opened: Store) -> Trial:
    """The trial with what the store knows of it; a run that diverged has accuracy 0."""
    record = opened.get(trial.key)
    if record.status not in ENDED:
        return replace(trial, status=record.status)
    series = opened.series(trial.key)
    metric = "accuracy" if "accuracy" in series else "loss"
    value = value_of(series, metric) if record.status == "finished" else 0.0 if metric == "accuracy" else math.inf
    seconds = (record.seconds or 0.0) / max(record.rounds or 1, 1)
    seen = value_of(series, "own_accuracy") if "own_accuracy" in series and record.status == "finished" else math.nan
    return replace(trial, value=value, metric=metric, status=record.status, seconds=seconds, seen=seen)


def _judged(trial: Trial, quiet: Trial | None) -> Trial:
    if quiet is None:
        return trial
    if quiet.value == math.inf:  # nobody lying diverges, too: there is nothing to lose
        same = trial.value == quiet.value
        return replace(trial, damage=0.0 if same else -math.inf, lost=0.0 if same else -1.0)
    failed = quiet.status == "failed"
    reached = PERFECT[trial.metric] if failed else quiet.value
    damage = reached - trial.value if trial.metric == "accuracy" else trial.value - reached
    return replace(trial, damage=math.nan if failed else damage, lost=damage / max(abs(reached), 1e-12))

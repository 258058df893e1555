"""Successive halving: many lies for a few rounds, the harmful ones and their like for more, the worst for all.

    stage    runs (of a budget of `runs` per rule)    rounds        what
    1        6/10                                     1/8           every family once, then from every start, then
                                                                    its further strengths, from one start
    2        3/10                                     1/4           the worst quarter of them, and lies like these
    3        1/10                                     1/2           the worst of stage 2
    last     finalists x seeds                        all           the worst of stage 3, with seeds not used before

In the first stages a lie is judged by what is lost of what a run without liars from the same start reaches in as many
rounds (from some starts a run is slow by itself). In the last the accuracy counts.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from byzmesh.config.cell import Cell, make_cell
from byzmesh.config.code import CodeReader
from byzmesh.config.keys import assign
from byzmesh.config.schema import resolve
from byzmesh.errors import ByzmeshError
from byzmesh.reports.aggregation import value_of
from byzmesh.store import ENDED, RunRecord, Store, open_store
from byzmesh.studies.audit.lies import FAMILIES, Lie, every_lie, refined
from byzmesh.sweeps.build import build
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.sweep import cores, sweep

SHARES = (0.6, 0.3, 0.1)
"""Parts of the budget of short runs by stage."""
ROUNDS = (8, 4, 2)
"""A stage's runs have this fraction of the rounds: 1/8, ..."""
TIMES = (0.4, 0.65, 0.75)
"""With a limit on the time: when a stage must be over, as a part of it."""
KEEP = 4
"""One of so many goes on to the second stage."""
LEAST_ROUNDS = 20
WARMING = ("target", "riding, negative", "ALIE", "sign-flipping")
"""Families that between them need nearly all compiled code."""
LIKELIEST = "target"
"""The family that was the worst for most rules: tried first, because the time may be over at any moment."""
QUIET = Lie(family="nobody lies", strength=None, attack={"name": "none"})
LOUD = Lie(family="sign-flipping", strength=None, attack={"name": "sign-flipping"})
"""A lie that goes with every problem."""
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
    f: str | int | None = None
    """Instead of the config's f; None: as configured."""
    value: float = math.nan
    metric: str = "accuracy"
    damage: float = math.nan
    lost: float = math.nan
    status: str = "not run"
    seconds: float = 0.0
    """Per round."""


@dataclass
class Budget:
    """Short runs per rule, and seconds if they are limited."""

    runs: int
    seconds: float | None = None
    began: float = field(default_factory=time.monotonic)

    def left(self, part: float = 1.0) -> float:
        """Seconds until this part of the time is over."""
        return math.inf if self.seconds is None else part * self.seconds - (time.monotonic() - self.began)


@dataclass(kw_only=True)
class Search:
    """An audit under way: configs as written, rules, starts, and how to compute runs."""

    written: Mapping[str, Any]
    rules: Mapping[str, Any]
    starts: Sequence[str]
    rounds: int
    store: Path
    budget: Budget
    folder: str = "."
    compute: Mapping[str, Any] = field(default_factory=dict)
    show: Show = lambda backlog, record: None
    interrupted: bool = False
    failures: dict[str, list[str]] = field(default_factory=dict)
    """By rule: the runs that failed, and why."""
    trials: list[Trial] = field(default_factory=list)

    def own_lies(self) -> list[Lie]:
        """The config's attack, if it has one."""
        own = self.written.get("attack", "none")
        asked = dict(own) if isinstance(own, Mapping) else {"name": own}
        return [] if own == "none" else [Lie(family=f"the config's {asked['name']}", strength=None, attack=asked)]

    def check(self) -> None:
        """Raise what is wrong with the config, with one of the rules there or with its attack, before anything runs."""
        for rule in self.rules:
            build(self.cell(rule, LOUD, self.starts[0], 0, 1, (), None).config)
            for lie in self.own_lies():
                self.cell(rule, lie, self.starts[0], 0, 1, (), None)

    def cell(
        self, rule: str, lie: Lie, start: str, seed: int, rounds: int, measure: Sequence[str], f: str | int | None
    ) -> Cell:
        """The run; `ByzmeshError` if the config does not go with the lie (a backdoor without images, say)."""
        raw: dict[str, Any] = {**self.written, "rule": self.rules[rule], "attack": dict(lie.attack), "seed": seed}
        if start:
            assign(raw, "problem.init", start)
        raw |= {"rounds": rounds, "evaluate_every": max(1, rounds // 10) if measure else rounds}
        if f is not None:
            raw = {name: value for name, value in raw.items() if name != "b"} | {"f": f}
        if measure:
            raw["measure"] = [*raw.get("measure", []), *measure]
        return make_cell(resolve(raw, self.folder), reader=self._reader)

    def __post_init__(self) -> None:
        self._reader = CodeReader()

    def warm_up(self) -> None:
        """Two rounds under some lies, not stored, and then the clock: compiling for the first time takes a minute."""
        for rule, family in itertools.product(self.rules, WARMING):
            with suppress(ByzmeshError):  # the search says what fails, and why
                build(self.cell(rule, FAMILIES[family].at(family, None), self.starts[0], 0, 2, (), None).config).run()
        self.budget.began = time.monotonic()

    def run(self, asked: Sequence[Trial], until: float) -> list[Trial]:
        """The trials with their results; those that the time did not allow for are left out."""
        deadline = time.monotonic() + until
        late = False

        def show(backlog: Backlog, record: RunRecord | None) -> None:
            nonlocal late
            self.show(backlog, record)
            if time.monotonic() > deadline:
                late = True
                raise KeyboardInterrupt

        swept = sweep([trial.config for trial in asked], self.store, show=show, retry_failed=True, **self.compute)
        self.interrupted = swept.interrupted and not late
        done = self._read(asked)
        self.trials += done
        return done

    def _read(self, asked: Sequence[Trial]) -> list[Trial]:
        with open_store(self.store, readonly=True) as opened:
            found = [_result(trial, opened) for trial in asked]
            failed = [(trial, opened.get(trial.key).failure or "") for trial in found if trial.status == "failed"]
        for trial, why in failed:
            last = (why.strip() or "unknown").splitlines()[-1]
            self.failures.setdefault(trial.rule, []).append(f"{trial.lie.name}: {last}")
        quiet = {(t.rule, t.start, t.rounds, t.seed, t.f): t for t in found if t.lie is QUIET}
        ended = [trial for trial in found if trial.status in ENDED]
        return [_judged(t, quiet.get((t.rule, t.start, t.rounds, t.seed, t.f))) for t in ended]

    def stage(self, number: int, candidates: Mapping[str, Sequence[tuple[Lie, str]]], until: float) -> list[Trial]:
        """Run a stage: for every rule its (lie, start), and before the first one from a start nobody lying."""
        rounds = max(LEAST_ROUNDS, self.rounds // ROUNDS[number - 1])
        seed = int(self.written.get("seed") or 0)
        told = [(rule, each, start) for rule, lie, start in _in_turn(candidates) for each in (QUIET, lie)]
        once = {(rule, lie.name, start): (rule, lie, start) for rule, lie, start in told}
        return self.run(
            [
                trial
                for rule, lie, start in once.values()
                if (trial := self.trial(rule, lie, start, seed, rounds, number)) is not None
            ],
            until,
        )

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
        f: str | int | None = None,
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


def _in_turn(candidates: Mapping[str, Sequence[tuple[Lie, str]]]) -> list[tuple[str, Lie, str]]:
    """One of every rule, then the next of every rule, ...: if the time ends, it ends for all."""
    lines = [[(rule, *one) for one in chosen] for rule, chosen in candidates.items()]
    return [one for row in itertools.zip_longest(*lines) for one in row if one is not None]


def finalists(search: Search, count: int) -> dict[str, list[Trial]]:
    """The first three stages: for every rule its most harmful trials, at most `count`, no family twice at one start."""
    number = search.budget.runs
    everything = in_order([*search.own_lies(), *every_lie()], search.starts)
    first = sorted(everything[: max(1, round(SHARES[0] * number))], key=lambda one: one[0].family != LIKELIEST)
    chosen = dict.fromkeys(search.rules, first)
    worst: dict[str, list[Trial]] = {}
    for stage in range(1, len(SHARES) + 1):
        if search.interrupted or search.budget.left() <= 0.0:
            break
        search.stage(stage, chosen, search.budget.left(TIMES[stage - 1]))
        worst = {rule: ranked(search.trials, rule) for rule in search.rules}
        if stage == len(SHARES):
            break
        room = max(1, round(SHARES[stage] * number))
        rounds = search.rounds // ROUNDS[stage]
        chosen = {rule: _next(found, room, rounds, grow=stage == 1) for rule, found in worst.items()}
    return {rule: _different(found)[:count] for rule, found in worst.items()}


def in_order(lies: Sequence[Lie], starts: Sequence[str]) -> list[tuple[Lie, str]]:
    """What the first stage tries, as much of it as the budget allows: (lie, start).

    Every family once, the starts in turn; then its first strength from the other starts; then its further strengths
    from one start, so that they can be compared; then these from the other starts.
    """
    first = {lie.family: lie for lie in reversed(lies)}
    turn = {family: place for place, family in enumerate(dict.fromkeys(lie.family for lie in lies))}
    return [
        (lie, starts[(turn[lie.family] + lap) % len(starts)])
        for leading in (True, False)
        for lap in range(len(starts))
        for lie in lies
        if (first[lie.family] is lie) == leading
    ]


def ranked(trials: Sequence[Trial], rule: str) -> list[Trial]:
    """A rule's trials by their stage, latest first, then by what was lost, most first; each lie and start once."""
    mine = [t for t in trials if t.rule == rule and t.lie is not QUIET and not math.isnan(t.lost)]
    latest: dict[tuple[str, str], Trial] = {}
    for trial in sorted(mine, key=lambda t: (-t.stage, -t.lost)):
        latest.setdefault((trial.lie.name, trial.start), trial)
    return list(latest.values())


def _next(found: Sequence[Trial], room: int, rounds: int, *, grow: bool) -> list[tuple[Lie, str]]:
    """Who goes on: the worst, and after the first stage also what can be made of them, the worst one's first."""
    if not grow:
        return [(t.lie, t.start) for t in found[:room]]
    kept = found[: max(1, min(room // 2, len(found) // KEEP))]
    like = [(lie, t.start) for t in kept for lie in refined(t.lie, rounds)]
    each = {(lie.name, start): (lie, start) for lie, start in [*((t.lie, t.start) for t in kept), *like]}
    return list(each.values())[:room]


def _different(found: Sequence[Trial]) -> list[Trial]:
    """The worst of every family and start."""
    first: dict[tuple[str, str], Trial] = {}
    for trial in found:
        first.setdefault((trial.lie.family, trial.start), trial)
    return list(first.values())


def affordable(search: Search, chosen: Mapping[str, Sequence[Trial]], seeds: int) -> int:
    """How many rounds the last stage's runs can have in the time that is left; at least those of the stage before."""
    seconds = seeds * sum(trial.seconds for found in chosen.values() for trial in found)
    workers = search.compute.get("workers")
    parallel = max(1, cores() if workers is None else workers)
    left = search.budget.left()
    if not math.isfinite(left) or seconds == 0.0:
        return search.rounds
    least = max(LEAST_ROUNDS, search.rounds // ROUNDS[-1])
    return max(least, min(search.rounds, int(0.9 * left * parallel / seconds)))


def _result(trial: Trial, opened: Store) -> Trial:
    """The trial with what the store knows of it; a run that diverged has accuracy 0."""
    record = opened.get(trial.key)
    if record.status not in ENDED:
        return replace(trial, status=record.status)
    series = opened.series(trial.key)
    metric = "accuracy" if "accuracy" in series else "loss"
    value = value_of(series, metric) if record.status == "finished" else 0.0 if metric == "accuracy" else math.inf
    seconds = (record.seconds or 0.0) / max(record.rounds or 1, 1)
    return replace(trial, value=value, metric=metric, status=record.status, seconds=seconds)


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

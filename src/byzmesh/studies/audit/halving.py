"""Successive halving: many lies for a few rounds, the harmful ones and their like for more, the worst for all.

    stage    runs (of a budget of `runs` per rule)    rounds        what
    1        6/10                                     1/8           every family once, then from every start, then
                                                                    its further strengths, from one start
    2        3/10                                     1/4           the worst quarter of them, and lies like these
    3        1/10                                     1/2           the worst of stage 2, and lies like these
    last     finalists x seeds                        all           the worst of stage 3 and the config's attack from
                                                                    its start, with seeds not used before

In the first stages a lie is judged by what is lost of what a run without liars from the same start reaches in as many
rounds (from some starts a run is slow by itself). In the last the accuracy counts. With a limit on the time, lies that
take too much of a stage come last in it, and do not reach the last stage if others do: `unfinished` finds them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from byzmesh.studies.audit.lies import Lie, every_lie, refined
from byzmesh.studies.audit.trials import QUIET, Search, Trial

SHARES = (0.6, 0.3, 0.1)
"""Parts of the budget of short runs by stage."""
LAST = len(SHARES) + 1
"""The number of the last stage."""
ROUNDS = (8, 4, 2)
"""A stage's runs have this fraction of the rounds: 1/8, ..."""
TIMES = (0.4, 0.65, 0.75)
"""With a limit on the time or the rounds: what part of it may be spent when a stage is over."""
KEEP = 4
"""One of so many goes on to the next stage."""
TOO_SLOW = 0.25
"""With a limit on the time: what part of a stage's time is too much for one of its runs."""
LEAST_ROUNDS = 20
LIKELIEST = "target"
"""The family that was the worst for most rules: tried first, because the time may be over at any moment."""


def rounds_of(search: Search, stage: int) -> int:
    """Rounds of a stage's runs: its fraction, not below `LEAST_ROUNDS`, and never more than are asked for."""
    return min(search.rounds, max(LEAST_ROUNDS, search.rounds // ROUNDS[stage - 1]))


def too_slow(search: Search, trial: Trial, stage: int) -> bool:
    """Whether such a run would take too much of a stage's time."""
    time_of_stage = (TIMES[stage - 1] - ((0.0, *TIMES)[stage - 1])) * search.budget.seconds
    return trial.seconds * rounds_of(search, stage) > TOO_SLOW * time_of_stage


def run_stage(search: Search, stage: int, candidates: Mapping[str, Sequence[tuple[Lie, str]]]) -> None:
    """Run a stage: for every rule its (lie, start), and before the first one from a start nobody lying."""
    rounds = rounds_of(search, stage)
    seed = int(search.written.get("seed") or 0)
    told = [(rule, each, start) for rule, lie, start in _in_turn(candidates) for each in (QUIET, lie)]
    once = {(rule, lie.name, start): (rule, lie, start) for rule, lie, start in told}
    search.run(
        [
            trial
            for rule, lie, start in once.values()
            if (trial := search.trial(rule, lie, start, seed, rounds, stage)) is not None
        ],
        TIMES[stage - 1],
    )


def _in_turn(candidates: Mapping[str, Sequence[tuple[Lie, str]]]) -> list[tuple[str, Lie, str]]:
    """One of every rule, then the next of every rule, ...: if the time ends, it ends for all."""
    lines = [[(rule, *one) for one in chosen] for rule, chosen in candidates.items()]
    return [one for row in itertools.zip_longest(*lines) for one in row if one is not None]


def finalists(search: Search, count: int, seeds: int) -> dict[str, list[Trial]]:
    """The first three stages: for every rule its most harmful trials, at most `count`, no family twice at one start."""
    number = search.budget.runs
    everything = in_order([*search.own_lies(), *every_lie()], search.starts)
    first = sorted(everything[: max(1, round(SHARES[0] * number))], key=lambda one: one[0].family != LIKELIEST)
    chosen = dict.fromkeys(search.rules, first)
    worst: dict[str, list[Trial]] = {}
    for stage in range(1, len(SHARES) + 1):
        if search.interrupted or search.budget.over:
            search.cut_short = True
            break
        run_stage(search, stage, chosen)
        for rule, before in worst.items():
            due = {(lie.name, start) for lie, start in chosen[rule]}
            search.due[rule] += [trial for trial in before if (trial.lie.name, trial.start) in due]
        worst = {rule: ranked(search.trials, rule) for rule in search.rules}
        if stage == len(SHARES):
            break
        room = max(1, round(SHARES[stage] * number))
        chosen = {rule: _next(search, found, room, stage + 1) for rule, found in worst.items()}
    share = search.budget.seconds_left() * search.parallel / (count * seeds * max(len(search.rules), 1))
    shortest = rounds_of(search, len(ROUNDS))
    able = {rule: [t for t in found if t.seconds * shortest <= share] or found for rule, found in worst.items()}
    chosen_last = {rule: _different(found)[:count] for rule, found in able.items()}
    for rule, found in worst.items():
        search.due[rule] += [trial for trial in found if trial not in able[rule]] + chosen_last[rule]
    return {rule: _with_own(search, rule, found) for rule, found in chosen_last.items()}


def unfinished(search: Search, rule: str) -> Trial | None:
    """The most harmful of a rule's trials that were to go on and did not, as there was no time for it.

    None if one that did go on to the last stage had done more harm before it.
    """
    last = {(t.lie.name, t.start): t.stage for t in sorted(search.trials, key=lambda t: t.stage) if t.rule == rule}
    before = ranked([trial for trial in search.trials if trial.stage <= len(SHARES)], rule)
    went_on = [trial.lost for trial in before if last[trial.lie.name, trial.start] > len(SHARES)]
    left = [t for t in search.due[rule] if t.stage == last[t.lie.name, t.start] and t.lost > max(went_on, default=-1e9)]
    return max(left, key=lambda trial: trial.lost, default=None)


def _with_own(search: Search, rule: str, found: list[Trial]) -> list[Trial]:
    """The finalists and the config's attack from its start: it may be one that short runs do not show."""
    there = [(trial.config["attack"], trial.start) for trial in found]
    new = [
        replace(trial, seconds=max((t.seconds for t in search.trials if (t.rule, t.lie) == (rule, lie)), default=0.0))
        for lie in search.own_lies()
        if (trial := search.trial(rule, lie, search.own_start, 0, 1, 0))
        and (trial.config["attack"], trial.start) not in there
    ]
    return [*found, *new] if found else []


def short_runs(runs: int, starts: int) -> float:
    """How many runs of full length have as many rounds as a rule's short ones, nobody lying from each start included.

    >>> short_runs(200, 3)
    42.625
    """
    return sum((share * runs + starts) / part for share, part in zip(SHARES, ROUNDS, strict=True))


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


def _next(search: Search, found: Sequence[Trial], room: int, stage: int) -> list[tuple[Lie, str]]:
    """Who goes on, in turn, as the budget may end: the worst, and what can be made of them and was not tried before."""
    kept = found[: max(1, min(room // 2, len(found) // KEEP))]
    tried = {(t.lie.name, t.start) for t in found}
    rounds = rounds_of(search, stage)
    like = {(lie.name, t.start): (lie, t.start) for t in kept for lie in refined(t.lie, rounds, search.liars)}
    new = [one for name, one in like.items() if name not in tried]
    quick = [(t.lie, t.start) for t in kept if not too_slow(search, t, stage)]
    slow = [(t.lie, t.start) for t in kept if too_slow(search, t, stage)]
    in_turn = [one for pair in itertools.zip_longest(quick, new) for one in pair if one is not None]
    return [*in_turn[: room - len(slow)], *slow]


def _different(found: Sequence[Trial]) -> list[Trial]:
    """The worst of every family and start; the config's attack may be one of the families, and is there once then."""
    first: dict[tuple[str, str], Trial] = {}
    for trial in found:
        first.setdefault((trial.lie.family, trial.start), trial)
    once: dict[tuple[str, str], Trial] = {}
    for trial in first.values():
        once.setdefault((str(trial.config["attack"]), trial.start), trial)
    return list(once.values())


def affordable(search: Search, chosen: Mapping[str, Sequence[Trial]], seeds: int, quiet: int, more: int) -> int:
    """How many rounds the last runs can have in the time and the rounds that are left; at least those before them.

    seeds  runs for every one that was chosen; for every rule also `quiet` runs without liars, and `more` with the worst
    """
    seconds = 0.0
    for rule, found in chosen.items():
        alone = max((t.seconds for t in search.trials if t.rule == rule and t.lie is QUIET), default=0.0)
        lying = [trial.seconds for trial in found]
        seconds += seeds * sum(lying) + quiet * alone + more * max(lying, default=0.0)
    runs = sum(seeds * len(found) + quiet + more for found in chosen.values())
    in_time = 0.9 * search.budget.seconds_left() * search.parallel / seconds if seconds else math.inf
    in_rounds = search.budget.rounds_left() / max(runs, 1)
    return int(max(rounds_of(search, len(ROUNDS)), min(search.rounds, in_time, in_rounds)))

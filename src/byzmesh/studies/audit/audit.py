"""`audit`: the worst case of a config over attacks, their parameters, starts and seeds, within a budget.

What is found is the worst *found*: a lower bound on the damage. The seeds of the last stage are not those by which its
lies were chosen, so its mean is not flattered by the choice; which of the finalists is the worst is chosen by these
means themselves, which the interval does not cover.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from byzmesh.checks import choice, finite, positive, whole
from byzmesh.config.overrides import read_config
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, NoLiars
from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.rules.base import rules as rule_registry
from byzmesh.store import open_store
from byzmesh.studies.audit.fault_bound import ASKED, compare_bounds
from byzmesh.studies.audit.halving import LAST, LEAST_ROUNDS, affordable, finalists, short_runs, unfinished
from byzmesh.studies.audit.lies import starts_of
from byzmesh.studies.audit.trials import ALONE, QUIET, Budget, Search, Trial
from byzmesh.studies.audit.unavoidable import unavoidable
from byzmesh.studies.audit.verdicts import Audit, Case, Verdict
from byzmesh.sweeps.queue import Show

SHORT, LONG, SEEDS = 200, 10, 5
MOST = 2**53
"""Rounds: what every part of an audit can count."""
FRESH = 1000
"""The last stage's seeds are the config's seed plus this, and the next ones."""


def audit(
    config: str | Path | Mapping[str, Any],
    *,
    rules: Sequence[Any] | str | Mapping[str, Any] | Rule = (),
    starts: Sequence[str] | str = (),
    runs: int = SHORT,
    rounds: int | None = None,
    minutes: float | None = None,
    total_rounds: int | None = None,
    seeds: int = SEEDS,
    finals: int = LONG // SEEDS,
    at_least: float | None = None,
    store: str | Path = "runs.db",
    workers: int | None = None,
    dask: str | None = None,
    show: Show = lambda backlog, record: None,
) -> Audit:
    """The worst accuracy that liars can force on a config's rule, or on several rules: the worst that is found.

    config    a file or a mapping, as for `simulate`; its attack is one of those tried
    rules     specs of rules to audit, or one (default: the config's)
    starts    first models to try, or one: zero, common, normal; torch: common, own (default: all that the problem has)
    runs      short runs per rule, in three stages of successive halving
    rounds    of the runs in the last stage (default: the config's, or with `total_rounds` fewer, so that all runs fit)
    minutes   limit on the time: what is not tried by then is left out, and the last stage has fewer rounds if need be;
              compiling, which the first audit on a machine begins with, does not count
    total_rounds  limit on the rounds of all runs together; it finds the same on every machine
    seeds     fresh seeds of the last stage
    finals    lies per rule in the last stage
    at_least  accuracy in percent that the worst case shall have (for a loss: at most): `Audit.holds`
    store     of the runs; the same call continues where it was

    >>> import byzmesh as bm, tempfile
    >>> config = {"problem": {"name": "noisy-quadratic", "dimension": 3}, "network": "paper/two-castle", "rounds": 40}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = bm.audit(config, rules=["ios"], runs=5, seeds=2, store=f"{folder}/runs.db", workers=0)
    >>> found["IOS"].worst.trial.lie.family != "nobody lies", len(found["IOS"].worst.values)
    (True, 2)
    """
    whole("runs", runs, 1)
    whole("seeds", seeds, 1)
    whole("finals", finals, 1)
    if at_least is not None:
        finite("at_least", at_least)
    if minutes is not None:
        positive("minutes", minutes)
    if total_rounds is not None:
        whole("total_rounds", total_rounds, 1, MOST)
    written = read_config(config) if isinstance(config, str | Path) else dict(config)
    if rounds is not None:
        written["rounds"] = whole("rounds", rounds, 1, MOST)
    plain = resolve({**written, "attack": "none"})
    written |= {"measure": plain["measure"], "problem": plain["problem"]}
    whole("rounds", plain["rounds"], 1, MOST)
    liars = len(Network.from_spec(plain["network"]).byzantine)
    if liars == 0:
        raise NoLiars()
    known = starts_of(plain["problem"])
    starts = [starts] if isinstance(starts, str) else starts
    if starts and not known:
        raise ConfigError(f"problem {plain['problem']['name']} has one start; leave starts out")
    for start in starts:
        choice("a start of an audit", start, known)
    specs = [rules] if isinstance(rules, str | Mapping | Rule) else rules
    named = _named(specs or [written.get("rule") or plain["rule"]])
    tried = tuple(dict.fromkeys(starts)) or known or ("",)
    own = plain["problem"].get("init", "")
    longest = plain["rounds"]
    if total_rounds is not None and rounds is None:
        runs_of_a_rule = short_runs(runs, len(tried)) + (finals + 1) * seeds + 2 * len(tried) + len(ASKED)
        longest = min(longest, max(LEAST_ROUNDS, int(total_rounds / runs_of_a_rule) // len(named)))
    search = Search(
        written=written,
        rules=named,
        starts=tried,
        own_start=own if own in tried else tried[0],
        rounds=longest,
        liars=liars,
        store=Path(store),
        budget=Budget(runs=runs, seconds=60.0 * (minutes or math.inf), rounds=total_rounds or math.inf),
        compute={"workers": workers, "dask": dask},
        show=show,
    )
    search.check()
    with open_store(search.store):  # to report from, also if the budget is too small for a first run
        pass
    if minutes is not None and dask is None:
        search.warm_up()
    chosen = finalists(search, finals, seeds)
    cut_short = search.cut_short
    last = affordable(search, chosen, seeds, 2 * len(search.starts), len(ASKED))
    first = int(written.get("seed") or 0) + FRESH
    told = [
        (rule, trial, seed)
        for place in range(finals + 1)
        for seed in range(first, first + seeds)
        for rule, found in chosen.items()
        for trial in found[place : place + 1]
    ]
    told += [(rule, trial, first) for rule, found in chosen.items() for trial in _without_liars(found)]
    told += [(ALONE, trial, first) for trial in _without_liars([one for found in chosen.values() for one in found])]
    asked = [
        made
        for rule, trial, seed in told
        if (made := search.trial(rule, trial.lie, trial.start, seed, last, LAST, measure=search.measured)) is not None
    ]
    done = [] if search.interrupted else search.run(asked)
    verdicts = tuple(_verdict(rule, done, search) for rule in search.rules)
    if not search.interrupted and not search.budget.over:
        worst = {verdict.rule: verdict.worst.trial for verdict in verdicts if verdict.worst and verdict.worst.final}
        bounds = compare_bounds(search, worst)
        verdicts = tuple(replace(verdict, bounds=bounds.get(verdict.rule, {})) for verdict in verdicts)
    lies = [trial.key for trial in asked if trial.lie is not QUIET]
    return Audit(
        verdicts=verdicts,
        rounds=last,
        complete=bool(lies) and set(lies) <= {trial.key for trial in done},
        limit=unavoidable(plain),
        store=Path(store),
        cut_short=cut_short,
        interrupted=search.interrupted,
        at_least=at_least,
    )


def _named(specs: Sequence[Any]) -> dict[str, Any]:
    """Rules by the names that tables show, with the options that were given if two rules share a name.

    >>> list(_named(["IOS", "cc", {"name": "CC", "tau": 0.5}]))
    ['IOS', 'CC', 'CC(tau=0.5)']
    """
    names = [rule_registry.build(spec).name for spec in specs]
    return {
        name + (_given(spec) if names.count(name) > 1 else ""): spec for name, spec in zip(names, specs, strict=True)
    }


def _given(spec: Any) -> str:
    options = {} if isinstance(spec, str) else spec if isinstance(spec, Mapping) else spec.options
    told = ", ".join(f"{option}={value}" for option, value in options.items() if option != "name")
    return f"({told})" if told else ""


def _without_liars(found: Sequence[Trial]) -> list[Trial]:
    """For each start of the finalists, the run in which nobody lies."""
    return list({trial.start: replace(trial, lie=QUIET) for trial in found}.values())


def _verdict(rule: str, done: Sequence[Trial], search: Search) -> Verdict:
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in done:
        if trial.rule == rule and trial.lie is not QUIET:
            groups.setdefault((trial.lie.name, trial.start), []).append(trial)
    cases = [
        Case(
            trial=group[0],
            values=tuple(t.value for t in group),
            keys=tuple(t.key for t in group),
            seen=tuple(t.seen for t in group),
            diverged=sum(t.diverged for t in group),
        )
        for group in groups.values()
    ]
    cases.sort(key=lambda case: case.mean if case.trial.metric == "accuracy" else -case.mean)
    left = unfinished(search, rule)
    if left and not (cases and cases[0].as_bad_as(left)):
        cases.insert(0, Case(trial=left, values=(left.value,), keys=(left.key,), diverged=int(left.diverged)))
    mine = tuple(trial for trial in search.trials if trial.rule == rule)
    stage = cases[0].trial.stage if cases else LAST
    return Verdict(
        rule=rule,
        cases=tuple(cases),
        quiet={t.start: t for t in mine if t.lie is QUIET and t.stage <= stage},
        trials=mine,
        failures=tuple(search.failures.get(rule, ())),
        untried=search.untried(rule),
        alone={t.start: t for t in done if t.rule == ALONE and t.lie is QUIET},
    )

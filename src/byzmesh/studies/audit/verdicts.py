"""What an audit found: the cases of a rule, the verdict on it, and all verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.rules.base import rules
from byzmesh.studies.audit.halving import LAST
from byzmesh.studies.audit.trials import QUIET, Trial
from byzmesh.studies.audit.unavoidable import Unavoidable
from byzmesh.studies.seeds import estimate


@dataclass(frozen=True, kw_only=True)
class Case:
    """A lie from a start: its value over the last stage's fresh seeds, and half the width of its 95% interval.

    If the time, or the rounds, were over before its last stage it is one run of the search, not `final`.
    """

    trial: Trial
    values: tuple[float, ...]
    keys: tuple[str, ...]
    seen: tuple[float, ...] = ()
    """The accuracy on the workers' own data: what they can see themselves; NaN where it was not measured."""
    diverged: int = 0
    """How many of the runs diverged: their accuracy counts as 0, their loss as infinite."""

    @property
    def final(self) -> bool:
        """Whether it is of the last stage, with seeds that did not choose it."""
        return self.trial.stage == LAST

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return float(np.mean(self.values))

    @property
    def sees(self) -> float:
        """Mean of `seen`; NaN if a run did not measure it."""
        return float(np.mean(self.seen)) if self.seen else math.nan

    @property
    def by_coordinate(self) -> bool:
        """Whether the rule takes no message as a whole, so that there is nobody it trusts."""
        return rules.build(self.trial.config["rule"]).coordinatewise

    def meets(self, wanted: float) -> bool:
        """Whether the mean is as good as wanted."""
        return self.mean >= wanted if self.trial.metric == "accuracy" else self.mean <= wanted

    def as_bad_as(self, trial: Trial) -> bool:
        """Whether the mean, or a value within its interval, is no better than that of one run."""
        half = 0.0 if math.isnan(self.half) else self.half
        return self.mean - half <= trial.value if trial.metric == "accuracy" else self.mean + half >= trial.value

    @property
    def half(self) -> float:
        """Half the width of the 95% interval (Student); NaN for one seed, or if a run diverged to an infinite loss.

        >>> from byzmesh.studies.audit.trials import QUIET
        >>> one = Trial(rule="IOS", lie=QUIET, start="zero", seed=0, rounds=9, stage=4, key="", config={})
        >>> round(Case(trial=one, values=(1.0, 3.0), keys=()).half, 2)
        12.71
        """
        return estimate(self.values)[1] if np.isfinite(self.values).all() else math.nan


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the audit found about a rule.

    cases   the finalists over fresh seeds, the worst first; before them the most harmful run of the search for whose
            last stage there was no time, if it is below their interval; empty if nothing was tried, or all runs failed
    quiet   start -> the run without liars that has as many rounds as the worst case, or fewer
    alone   start -> that of workers that hear nobody, whom no lie can harm; of the last stage
    trials  every run of the search that has a result
    failures  the runs that failed, and why
    untried  families of lies that the first stage was to try and did not: the time or the rounds were over
    bounds  (whether the worst lie is told, f) -> value of one run; empty if the rule takes no f (fault_bound.py)
    """

    rule: str
    cases: tuple[Case, ...]
    quiet: Mapping[str, Trial]
    trials: tuple[Trial, ...] = field(repr=False)
    failures: tuple[str, ...] = field(default=(), repr=False)
    untried: tuple[str, ...] = field(default=(), repr=False)
    alone: Mapping[str, Trial] = field(default_factory=dict)
    bounds: Mapping[tuple[bool, str | int], float] = field(default_factory=dict)

    @property
    def worst(self) -> Case | None:
        """The worst case."""
        return self.cases[0] if self.cases else None


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of an audit: `print` shows it, `to_dict` is for programs, `write` makes the files."""

    verdicts: tuple[Verdict, ...]
    rounds: int
    complete: bool
    """Whether every run of the last stage in which somebody lies has a result, and there is one."""
    limit: Unavoidable
    store: Path
    cut_short: bool = False
    """Whether the time or the rounds were over before the search was."""
    interrupted: bool = False
    at_least: float | None = None

    def __getitem__(self, rule: str) -> Verdict:
        """The verdict on a rule, by its name."""
        return next(verdict for verdict in self.verdicts if verdict.rule == rule)

    @property
    def holds(self) -> bool:
        """Whether every rule has a worst case; with `at_least`, one that is not below it, and nothing is `lacking`."""
        cases = [verdict.worst for verdict in self.verdicts]
        if self.at_least is None:
            return None not in cases
        return not self.lacking and all(case and case.final and case.meets(self.at_least) for case in cases)

    @property
    def lacking(self) -> str:
        """Why the search is no pass of `at_least`, whatever it found: runs with liars that failed, a last stage that is
        not complete, families that the number of runs allows for and that were not tried. Empty if it is one.
        """
        if any(not why.startswith(f"{QUIET.name}: ") for verdict in self.verdicts for why in verdict.failures):
            return "runs with liars failed"
        if not self.complete or any(verdict.untried for verdict in self.verdicts):
            return "the search is not complete: give it more time or rounds"
        return ""

    @property
    def failures(self) -> tuple[str, ...]:
        """Runs that failed, and why: lies that do not go with the problem, say."""
        return tuple(f"{verdict.rule}, {why}" for verdict in self.verdicts for why in verdict.failures)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        from byzmesh.studies.audit.report import as_dict

        return as_dict(self)

    def write(self, out: str | Path) -> list[Path]:
        """Write `audit.json`, `.md` and `.html`, and for every rule `worst-RULE.yaml`, which repeats its worst case."""
        from byzmesh.studies.audit.report import write_audit

        return write_audit(self, Path(out))

    def __str__(self) -> str:
        from byzmesh.studies.audit.report import as_text

        return as_text(self)

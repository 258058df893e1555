"""What f costs: what `f: tolerable` loses where nobody lies, and what an exact f loses once it is wrong.

    nobody lies      f = 0, which is then exact, and f: tolerable     the difference is what caution costs
    the worst lie    f: exact, one too few and one too many at every worker (at least 0, at most what the rule allows
                     there; left out if no worker's is then wrong in that way), and f: tolerable

One run each, with the first seed of the last stage and its rounds: differences of a point may be chance. Rules that
take no f are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.networks import Network
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.rules.base import rules as rule_registry
from byzmesh.studies.audit.trials import QUIET, Bound, Search, Trial

if TYPE_CHECKING:
    from byzmesh.studies.audit.verdicts import Audit

ASKED: tuple[tuple[bool, str | int], ...] = (
    (False, 0),
    (False, "tolerable"),
    (True, "exact"),
    (True, "one too few"),
    (True, "one too many"),
    (True, "tolerable"),
)
"""Whether the worst lie is told, and f."""


def compare_bounds(search: Search, worst: Mapping[str, Trial]) -> dict[str, dict[tuple[bool, str | int], float]]:
    """For every rule that takes f: (whether the worst lie is told, f) -> accuracy or loss, if the time allows."""
    if search.written.get("process"):
        return {}  # weights change: there is no tolerable f
    asked = {
        (rule, lying, f): trial
        for lying, f in ASKED
        for rule, case in worst.items()
        if rule_registry.build(search.rules[rule]).uses_f
        if (told := _told(f, search.rules[rule], case.config["network"])) is not None
        and (
            trial := search.trial(
                rule,
                case.lie if lying else QUIET,
                case.start,
                case.seed,
                case.rounds,
                5,
                measure=("gradient",),
                f=told,
            )
        )
        is not None
    }
    if not asked:
        return {}
    value = {trial.key: trial.value for trial in search.run(list(asked.values()))}
    found: dict[str, dict[tuple[bool, str | int], float]] = {}
    for (rule, lying, f), trial in asked.items():
        if trial.key in value:
            found.setdefault(rule, {})[lying, f] = value[trial.key]
    return found


def _told(f: str | int, rule: Any, spec: Any) -> Bound | None:
    """The bound as a config has it; None if nobody can be told too few, or too many."""
    if f not in ("one too few", "one too many"):
        return f
    network, more = Network.from_spec(spec), 1 if f == "one too many" else -1
    largest = rule_registry.build(rule).largest_f
    allowed = [max(0, largest(int(degree))) for degree in network.layout.degree]
    told = np.clip(network.lying_neighbours + more, 0, allowed)
    wrong = bool((more * (told - network.lying_neighbours) > 0).any())
    return tuple(told.tolist()) if wrong else None


def bounds_grid(audit: Audit) -> Grid | None:
    """What f costs: one line per rule that takes f."""
    rows = tuple(
        (verdict.rule, tuple(_bound(verdict.bounds.get(asked, math.nan)) for asked in ASKED))
        for verdict in audit.verdicts
        if verdict.bounds
    )
    if not rows:
        return None
    return Grid(
        name="bounds",
        title="What f costs",
        corner="rule",
        columns=tuple(f"{'worst lie' if lying else 'nobody lies'}, f: {f}" for lying, f in ASKED),
        rows=rows,
        note="One run each. If nobody lies, f = 0 is exact: what a tolerable f loses to it is the price of caution. "
        "Under the worst lie, what one too few loses to the exact f is the price of trust. "
        "Rules that take no f are left out.",
    )


def _bound(value: float) -> GridCell:
    return EMPTY if math.isnan(value) else GridCell(f"{value:.2f}", value=value)

"""An audit as tables, a chart and sentences: the verdict, the last stage, what was tried, who was trusted."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from byzmesh.reports.aggregation import value_of
from byzmesh.reports.charts import Chart, Curve
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.store import Store, open_store
from byzmesh.studies.audit.halving import SHARES
from byzmesh.studies.audit.trials import QUIET, Trial

if TYPE_CHECKING:
    from byzmesh.studies.audit.verdicts import Audit, Case, Verdict

SHOWN = 20
"""The most trials that the table of what was tried shows for a rule."""
NAMED = 5
"""The most families of lies that a note names."""
LABELS = {"rounds": "rounds that the wrong model is trained"}
"""A strength in words, where its option's name would mislead."""


def verdict_grid(audit: Audit) -> Grid:
    """One line per rule: the worst case, its interval, the lie, the start; what is reached without liars, and alone."""
    rows = []
    for verdict in audit.verdicts:
        case = verdict.worst
        if case is None:
            rows.append((verdict.rule, (GridCell(without_case(verdict)), *[EMPTY] * 6)))
            continue
        quiet, alone = verdict.quiet.get(case.trial.start), verdict.alone.get(case.trial.start)
        own = math.nan if alone is None else alone.seen
        tone = "" if audit.at_least is None else "same" if case.meets(audit.at_least) else "far-below"
        cells = (
            GridCell(f"{case.mean:.2f}", _seeds(case), value=case.mean, tone=tone),
            GridCell(case.trial.lie.name, _options(case.trial)),
            GridCell(case.trial.start or "as configured"),
            EMPTY if quiet is None else GridCell(f"{quiet.value:.2f}", _apart(quiet, case), value=quiet.value),
            EMPTY if alone is None else GridCell(f"{alone.value:.2f}", _apart(alone, case), value=alone.value),
            EMPTY
            if math.isnan(case.sees)
            else GridCell(f"{case.sees:.1f}", "" if math.isnan(own) else f"alone {own:.1f}", value=case.sees),
            GridCell(f"{sum(t.lie is not QUIET for t in verdict.trials)}"),
        )
        rows.append((verdict.rule, cells))
    metric = next((v.worst.trial.metric for v in audit.verdicts if v.worst), "accuracy")
    unit = "accuracy (%)" if metric == "accuracy" else "loss"
    sees = any(v.worst and not math.isnan(v.worst.sees) for v in audit.verdicts)
    untried = list(dict.fromkeys(family for verdict in audit.verdicts for family in verdict.untried))
    return Grid(
        name="verdict",
        title=f"Worst {unit} found, {audit.rounds:,} rounds",
        corner="rule",
        columns=("worst case", "lie", "start", "nobody lies", "alone", "on own data", "runs tried"),
        rows=tuple(rows),
        note="Mean and 95% interval over seeds that were not used to choose the lie. The worst found, not a bound. "
        "Alone: every worker hears nobody."
        + (" On own data: what workers can see themselves, in the worst case and alone." if sees else "")
        + (" A run that diverged has accuracy 0." if metric == "accuracy" and _diverged(audit) else "")
        + (" The time or the rounds were over before the search was." if audit.cut_short else "")
        + (f" Never tried: {_first(untried)}." if untried else "")
        + ("" if audit.complete else " Some runs of the last stage are missing.")
        + (f" {len(audit.failures)} runs failed; the first: {audit.failures[0]}." if audit.failures else ""),
    )


def finalists_grid(verdict: Verdict) -> Grid:
    """The last stage of a rule."""
    rows = tuple(
        (
            f"{case.trial.lie.name}, start {case.trial.start or 'as configured'}",
            (
                GridCell(f"{case.mean:.2f}", "" if math.isnan(case.half) else f"± {case.half:.2f}", value=case.mean),
                GridCell(", ".join(f"{value:.1f}" for value in case.values)),
            ),
        )
        for case in verdict.cases
        if case.final
    )
    return Grid(name="finalists", title="Last stage", corner="lie", columns=("mean", "by seed"), rows=rows)


def tried_grid(verdict: Verdict) -> Grid:
    """The most harmful trials of the search, by stage."""
    searched = (trial for trial in verdict.trials if trial.stage < 4 and trial.lie is not QUIET)
    found = sorted(searched, key=lambda t: (-t.stage, -_sortable(t.damage)))
    rows = tuple(
        (
            f"{trial.lie.name}, start {trial.start or 'as configured'}",
            (
                GridCell(str(trial.stage), value=trial.stage),
                GridCell(f"{trial.rounds:,}", value=trial.rounds),
                GridCell(f"{trial.value:.2f}", value=trial.value),
                EMPTY if math.isnan(trial.damage) else GridCell(f"{trial.damage:.2f}", value=trial.damage),
            ),
        )
        for trial in found[:SHOWN]
    )
    note = f"The {SHOWN} most harmful of {len(found)}; all are in audit.json." if len(found) > SHOWN else ""
    return Grid(
        name="tried",
        title="What was tried",
        corner="lie",
        columns=("stage", "rounds", next((trial.metric for trial in found), "value"), "damage"),
        rows=rows,
        note=note,
    )


def strength_charts(verdict: Verdict) -> list[Chart]:
    """Damage against strength: a chart per option, a facet per family, a curve per start and number of rounds.

    Short runs, where at least three strengths were tried: the second stage has most of the worst families.
    """
    lines: dict[str, dict[str, dict[float, float]]] = {}
    options = {trial.lie.family: trial.lie.option for trial in verdict.trials}
    for trial in verdict.trials:
        if trial.stage <= len(SHARES) and trial.lie.strength is not None and math.isfinite(trial.damage):
            curves = lines.setdefault(trial.lie.family, {})
            start = f"start {trial.start or 'as configured'}, {trial.rounds:,} rounds"
            curves.setdefault(start, {})[trial.lie.strength] = trial.damage
    facets = {
        family: tuple(
            Curve(name=start, x=tuple(sorted(points)), y=tuple(points[x] for x in sorted(points)))
            for start, points in curves.items()
            if len(points) >= 3
        )
        for family, curves in lines.items()
    }
    most = {family: max(max(curve.y) for curve in curves) for family, curves in facets.items() if curves}
    by_option: dict[str, dict[str, tuple[Curve, ...]]] = {}
    for family in sorted(most, key=lambda one: -most[one]):
        shown = by_option.setdefault(options[family], {})
        shown[family] = (*facets[family], _nobody(facets[family]))
    unit = "points" if all(trial.metric == "accuracy" for trial in verdict.trials) else "loss"
    return [
        Chart(
            title="Damage against strength",
            x_label=LABELS.get(option, option),
            y_label=f"damage ({unit})",
            facets=shown,
            marks=True,
        )
        for option, shown in by_option.items()
    ]


def _nobody(curves: Sequence[Curve]) -> Curve:
    """No damage: where the other curves would be if nobody lied."""
    along = [x for curve in curves for x in curve.x]
    return Curve(name=QUIET.name, x=(min(along), max(along)), y=(0.0, 0.0))


def trusted(audit: Audit, case: Case | None) -> list[dict[str, Any]]:
    """In the worst case's first run, by receiver: how often each liar was trusted, and the honest sender least so.

    Empty for rules that take no message as a whole. A liar of whom nothing came has None.
    """
    if case is None:
        return []
    with open_store(audit.store, readonly=True) as opened:
        edges = opened.edges(case.keys[0])
    lying = set(case.trial.config["network"]["byzantine"])
    told = []
    for receiver in sorted(set(edges[:, 1].tolist())):
        share = {int(s): round(1.0 - cut / came, 4) for s, r, cut, came in edges.tolist() if r == receiver and came}
        honest = {sender: value for sender, value in share.items() if sender not in lying and sender != receiver}
        least = min(honest, key=lambda sender: honest[sender], default=None)
        told.append(
            {
                "worker": int(receiver),
                "liars": {int(s): share.get(int(s)) for s, r, _, _ in edges.tolist() if r == receiver and s in lying},
                "least_trusted_honest": None if least is None else {least: honest[least]},
            }
        )
    return told


def trust_grid(audit: Audit, case: Case | None) -> Grid | None:
    """Who was believed."""
    told = trusted(audit, case)
    if not told:
        return None
    rows = tuple(
        (
            f"worker {line['worker']}",
            (
                GridCell(
                    ", ".join(
                        f"nothing came of {liar}" if share is None else f"{liar} in {share:.0%}"
                        for liar, share in line["liars"].items()
                    )
                    or "none"
                ),
                GridCell(
                    ", ".join(f"{peer} in {share:.0%}" for peer, share in (line["least_trusted_honest"] or {}).items())
                ),
            ),
        )
        for line in told
    )
    return Grid(
        name="trust",
        title="Who was trusted in the worst case",
        corner="receiver",
        columns=("lying neighbours", "least trusted honest neighbour"),
        rows=rows,
        note="In which share of the rounds their messages were taken, wholly or in part.",
    )


def trust_text(audit: Audit, case: Case) -> str:
    """What there is to say about trust where `trusted` has no table; else nothing."""
    if trusted(audit, case):
        return ""
    if case.by_coordinate:
        return "Who was trusted: the rule works on each coordinate separately; it takes or cuts no message as a whole."
    return "Who was trusted: the rule does not say whose messages it took."


def unavoidable_sentences(audit: Audit, store: Store) -> tuple[str, ...]:
    """The limits, and the squared gradient norm at the end of the worst runs."""
    seen = []
    for verdict in audit.verdicts:
        if verdict.worst is not None:
            series = store.series(verdict.worst.keys[0])
            if "gradient" in series:
                seen.append(f"{verdict.rule} {value_of(series, 'gradient'):.3g}")
    ends = (f"At the end of the worst runs the squared gradient norm is: {', '.join(seen)}.",) if seen else ()
    return (*audit.limit.sentences(), *ends)


def verdict_text(verdict: Verdict) -> str:
    """The verdict on a rule in a sentence."""
    case = verdict.worst
    if case is None:
        return f"{verdict.rule}: {without_case(verdict)}."
    unit = "%" if case.trial.metric == "accuracy" else ""
    start = f" from the start {case.trial.start}" if case.trial.start else ""
    quiet, alone = verdict.quiet.get(case.trial.start), verdict.alone.get(case.trial.start)
    reached = f" ({case.diverged} of {len(case.values)} runs diverged)" if case.diverged else ""
    if quiet is not None and quiet.diverged:
        reached += "; it diverges if nobody lies, too"
    elif quiet is not None:
        apart = _apart(quiet, case)
        reached += f"; {quiet.value:.1f}{unit} if nobody lies" + (f" ({apart})" if apart else "")
    if alone is not None:
        reached += "; diverges" if alone.diverged else f"; {alone.value:.1f}{unit}"
        reached += " if every worker trains alone"
    if not math.isnan(case.sees):
        reached += f"; on their own data workers see {case.sees:.1f}%"
        reached += "" if alone is None or math.isnan(alone.seen) else f", alone {alone.seen:.1f}%"
    limit = "" if case.final else f" One run of the search, {case.trial.rounds:,} rounds: its last stage has no result."
    lie = f"{case.trial.lie.name}{start}{reached}"
    return f"{verdict.rule}: {case.trial.metric} {case.mean:.1f}{unit} under {lie}.{limit}"


def without_case(verdict: Verdict) -> str:
    """Why a rule has no worst case."""
    if any(not why.startswith(f"{QUIET.name}: ") for why in verdict.failures):
        which = " with liars" if verdict.trials else ""
        return f"all {len(verdict.failures)} runs{which} failed: {verdict.failures[0]}"
    return "nothing tried: the time or the rounds were over before the first lie; give it more"


def _apart(beside: Trial, case: Case) -> str:
    """How the run beside a worst case differs from it but for the lie: it diverged, or there was no time for it."""
    told = ["diverged"] * beside.diverged
    told += [f"{beside.rounds:,} rounds"] * (beside.rounds != case.trial.rounds)
    told += [f"seed {beside.seed}"] * (beside.seed != case.trial.seed)
    return ", ".join(told)


def _first(names: Sequence[str]) -> str:
    """Some names, and how many more."""
    more = len(names) - NAMED
    return "; ".join(names[:NAMED]) + (f"; {more} more families" if more > 0 else "")


def _diverged(audit: Audit) -> bool:
    """Whether a run in the table of verdicts diverged."""
    worst = [(verdict, verdict.worst) for verdict in audit.verdicts if verdict.worst]
    beside = [reached.get(case.trial.start) for one, case in worst for reached in (one.quiet, one.alone)]
    return any(case.diverged for _, case in worst) or any(run is not None and run.diverged for run in beside)


def _seeds(case: Case) -> str:
    if not case.final:
        told = f"search only: one seed, {case.trial.rounds:,} rounds"
    else:
        interval = "" if math.isnan(case.half) else f"± {case.half:.2f}, "
        told = "one seed" if len(case.values) == 1 else f"{interval}{len(case.values)} seeds"
    return told + (f", {case.diverged} diverged" if case.diverged else "")


def _options(trial: Trial) -> str:
    return json.dumps(trial.config["attack"], separators=(", ", ": ")).replace('"', "")


def _sortable(value: float) -> float:
    return -math.inf if math.isnan(value) else value

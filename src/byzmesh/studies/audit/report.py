"""An audit as text, JSON, Markdown and HTML, and the config that repeats its worst case."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from byzmesh.files import folder, write
from byzmesh.networks import Network
from byzmesh.reports.charts import draw_charts
from byzmesh.reports.html import Report, Section
from byzmesh.reports.provenance import describe
from byzmesh.reports.text_table import to_markdown
from byzmesh.reports.trust import heatmap, picture
from byzmesh.reports.writing import write_report
from byzmesh.store import Store, open_store
from byzmesh.studies.audit.fault_bound import bounds_grid
from byzmesh.studies.audit.tables import (
    finalists_grid,
    strength_charts,
    tried_grid,
    trust_grid,
    trust_text,
    trusted,
    unavoidable_sentences,
    verdict_grid,
    verdict_text,
    without_case,
)

if TYPE_CHECKING:
    from byzmesh.studies.audit.trials import Trial
    from byzmesh.studies.audit.verdicts import Audit, Verdict


def as_dict(audit: Audit) -> dict[str, Any]:
    """Plain values; numbers that are not finite are None."""
    limit = audit.limit
    return {
        "rounds": audit.rounds,
        "store": str(audit.store),
        "interrupted": audit.interrupted,
        "complete": audit.complete,
        "cut_short": audit.cut_short,
        "at_least": audit.at_least,
        "holds": audit.holds,
        "failures": list(audit.failures),
        "unavoidable": {
            **{name: _finite(getattr(limit, name)) for name in (*_fields(limit), "gradient", "accuracy")},
        },
        "rules": [_of_rule(audit, verdict) for verdict in audit.verdicts],
    }


def _of_rule(audit: Audit, verdict: Verdict) -> dict[str, Any]:
    return {
        "rule": verdict.rule,
        "quiet": {start: _beside(trial) for start, trial in verdict.quiet.items()},
        "alone": {start: _beside(trial) for start, trial in verdict.alone.items()},
        "cases": [
            {
                "attack": dict(case.trial.config["attack"]),
                "start": case.trial.start,
                "final": case.final,
                "metric": case.trial.metric,
                "mean": _finite(case.mean),
                "half": _finite(case.half),
                "values": [_finite(value) for value in case.values],
                "seen": [_finite(value) for value in case.seen],
                "diverged": case.diverged,
                "rounds": case.trial.rounds,
                "keys": list(case.keys),
                "config": dict(case.trial.config),
            }
            for case in verdict.cases
        ],
        "untried": list(verdict.untried),
        "trust": trusted(audit, verdict.worst),
        "by_coordinate": verdict.worst is not None and verdict.worst.by_coordinate,
        "bounds": [{"lie": lying, "f": f, "value": _finite(value)} for (lying, f), value in verdict.bounds.items()],
        "trials": [
            {
                "stage": trial.stage,
                "lie": trial.lie.name,
                "start": trial.start,
                "seed": trial.seed,
                "rounds": trial.rounds,
                "value": _finite(trial.value),
                "damage": _finite(trial.damage),
                "key": trial.key,
            }
            for trial in verdict.trials
        ],
    }


def _beside(trial: Trial) -> dict[str, Any]:
    """A run in which nobody lies, or is heard."""
    return {
        "value": _finite(trial.value),
        "seen": _finite(trial.seen),
        "rounds": trial.rounds,
        "seed": trial.seed,
        "diverged": trial.diverged,
    }


def as_text(audit: Audit) -> str:
    """The verdict and what f costs as Markdown, the limit below."""
    grids = [grid for grid in (verdict_grid(audit), bounds_grid(audit)) if grid]
    return "\n".join([*map(to_markdown, grids), str(audit.limit)])


def html_report(audit: Audit, store: Store) -> Report:
    """One section per rule after the verdict."""
    names = {
        trial.key: f"{verdict.rule}, {trial.lie.name}, {trial.start}"
        for verdict in audit.verdicts
        for trial in verdict.trials
    }
    slugs = _slugs(audit)
    sections = [
        Section(
            name="verdict",
            title="Verdict",
            text=tuple(map(verdict_text, audit.verdicts)),
            grids=tuple(grid for grid in (verdict_grid(audit), bounds_grid(audit)) if grid),
        ),
        Section(name="unavoidable", title="What is unavoidable", text=unavoidable_sentences(audit, store)),
    ]
    for number, verdict in enumerate(audit.verdicts):
        case, charts = verdict.worst, strength_charts(verdict)
        last = finalists_grid(verdict) if any(one.final for one in verdict.cases) else None
        found = None if case is None else heatmap(store, case.keys[0])
        drawn = None if case is None else picture(Network.from_spec(case.trial.config["network"]), "Network")
        sections.append(
            Section(
                name=f"rule-{number}",
                title=verdict.rule,
                text=tuple(filter(None, (_again(slugs[verdict.rule]), trust_text(audit, case))))
                if case is not None
                else (f"{without_case(verdict)}.",),
                grids=tuple(grid for grid in (last, trust_grid(audit, case), tried_grid(verdict)) if grid),
                charts=tuple(charts),
                heatmaps={} if found is None else {"worst case": found},
                pictures=() if drawn is None else (drawn,),
            )
        )
    lead = (
        "The worst that liars did, over attacks, their strengths, starts and seeds, by successive halving. It is the "
        "worst found within the budget: a rule is at most as good as this."
    )
    stored = {run.key: run for run in store.list()}
    runs = describe([stored[key] for key in names if key in stored], names)
    return Report("byzmesh: audit", (lead,), tuple(sections), runs)


def write_audit(audit: Audit, out: Path) -> list[Path]:
    """Write all files of an audit."""
    folder(out)
    written = [
        write(out / "audit.json", json.dumps(as_dict(audit), indent=1, allow_nan=False) + "\n"),
        write(out / "audit.md", as_text(audit) + "\n"),
    ]
    slugs = _slugs(audit)
    for verdict in audit.verdicts:
        if verdict.worst is not None:
            config = {name: value for name, value in verdict.worst.trial.config.items() if name != "labels"}
            text = yaml.safe_dump(config, sort_keys=False)
            written.append(write(out / f"worst-{slugs[verdict.rule]}.yaml", text))
        charts = strength_charts(verdict)
        if charts:
            written.append(draw_charts(charts, out / f"strength-{slugs[verdict.rule]}.png"))
    with open_store(audit.store, readonly=True) as opened:
        written.append(write_report(html_report(audit, opened), out / "audit.html"))
    return written


def slug(name: str) -> str:
    """A rule's name as part of a file's.

    >>> slug("NNM(CooMed)")
    'nnm-coomed'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _slugs(audit: Audit) -> dict[str, str]:
    """A part of a file's name for every rule; those that would share one, as `a=1` and `a=-1` do, are numbered."""
    slugs = [slug(verdict.rule) for verdict in audit.verdicts]
    return {
        verdict.rule: name if slugs.count(name) == 1 else f"{name}--{number}"
        for number, (verdict, name) in enumerate(zip(audit.verdicts, slugs, strict=True), 1)
    }


def _again(slug: str) -> str:
    return f"byzmesh run worst-{slug}.yaml repeats the first seed of the worst case."


def _fields(limit: Any) -> Sequence[str]:
    return tuple(limit.__dataclass_fields__)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

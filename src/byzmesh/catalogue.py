"""Listings of rules, attacks, topologies, metrics and all other named parts."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from byzmesh.registry import Entry, Registry


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One registered part, as a listing shows it."""

    name: str
    aliases: tuple[str, ...]
    options: dict[str, Any]
    summary: str
    published: dict[str, Any]
    """Options of the published runs, if they differ from the text's definition."""
    uses_f: bool | None = None
    feasible: str = ""
    """Condition on f for d neighbours (S = d + 1), rules only."""
    unit: str = ""
    direction: str = ""
    """Which way is better: up, down or none; metrics only, as are unit and scale."""
    scale: str = ""


HEADINGS = {"feasible": "feasible f", "direction": "better", "summary": "what it does"}
"""Headings of columns that differ from the name of the field."""


class Listing(list[Listed]):
    """A list of `Listed` that prints as a table."""

    def __repr__(self) -> str:
        columns = {
            "name": [item.name for item in self],
            "aliases": [", ".join(item.aliases) for item in self],
            "options": [_options(item) for item in self],
            **{field: [getattr(item, field) for item in self] for field in ("feasible", "unit", "direction", "scale")},
            "summary": [item.summary for item in self],
        }
        shown = [[HEADINGS.get(name, name), *cells] for name, cells in columns.items() if any(cells)]
        widths = [max(map(len, cells)) for cells in shown]
        rows = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in zip(*shown))
        return "\n".join(row.rstrip() for row in rows)


def _options(item: Listed) -> str:
    return ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}" for name, default in item.options.items()
    )


def _listed(entry: Entry[Any], **facts: Any) -> Listed:
    return Listed(
        name=entry.name,
        aliases=entry.aliases,
        options=entry.options,
        summary=entry.summary,
        published=dict(entry.published),
        **facts,
    )


def list_rules() -> Listing:
    """All rules: names, aliases, options, whether they use f, and which f is feasible.

    >>> [item.name for item in list_rules() if item.uses_f][:4]
    ['bucketing', 'Bulyan', 'ClippedGossip', 'CS+']
    """
    from byzmesh.rules.base import rules as registry

    def listed(entry: Entry[Any]) -> Listed:
        if inspect.Parameter.empty in entry.options.values():
            return _listed(entry, feasible="depends on its options")
        feasible = registry.build(entry.name).feasible
        if feasible is None:
            return _listed(entry, uses_f=False, feasible="any (f is not used)")
        return _listed(entry, uses_f=True, feasible=feasible.condition)

    return Listing(map(listed, registry.entries()))


def list_attacks() -> Listing:
    """All attacks: names, aliases, options.

    >>> "ALIE" in [item.name for item in list_attacks()]
    True
    """
    from byzmesh.attacks.base import attacks as registry

    return Listing(_listed(entry) for entry in registry.entries())


def list_topologies() -> Listing:
    """All topologies: names and parameters.

    >>> "two-castle" in [item.name for item in list_topologies()]
    True
    """
    from byzmesh.networks.topologies import topologies as registry

    return Listing(_listed(entry) for entry in registry.entries())


def list_metrics() -> Listing:
    """All metrics: names, unit, which way is better, linear or log scale.

    >>> [(item.name, item.unit, item.direction) for item in list_metrics()][:2]
    [('accuracy', 'percent', 'up'), ('average_accuracy', 'percent', 'up')]
    """
    from byzmesh.training.metrics import metrics as registry

    entries = [(entry, registry.build(entry.name)) for entry in registry.entries()]
    return Listing(
        _listed(entry, unit=metric.unit, direction=metric.direction, scale=metric.scale) for entry, metric in entries
    )


_FACTS = {"rules": ("uses_f", "feasible"), "metrics": ("unit", "direction", "scale")}
"""Additional columns of some listings."""


def everything(kind: str) -> list[dict[str, Any]]:
    """All parts of one kind as plain rows for the command line: name, options and what each does.

    >>> [row["name"] for row in everything("profiles")]
    ['text', 'paper']
    """
    if kind == "profiles":
        from byzmesh.training.profiles import PROFILES

        return [{"name": name, "options": dict(options)} for name, options in PROFILES.items()]
    lists = {"rules": list_rules, "attacks": list_attacks, "topologies": list_topologies, "metrics": list_metrics}
    if kind in lists:
        items = lists[kind]()
    else:
        items = Listing(_listed(entry) for entry in registries()[kind].entries())
    from byzmesh.problems.neural.modules import FROM_DATA

    # arguments that users do not choose
    filled_in = {"modules": FROM_DATA, "weights": ("links", "adjacency")}.get(kind, ())
    rows = []
    for item in items:
        row = {
            "name": item.name,
            "aliases": list(item.aliases),
            "options": {
                name: None if value is inspect.Parameter.empty else value
                for name, value in item.options.items()
                if name not in filled_in
            },
            "summary": item.summary,
        }
        rows.append(row | {field: getattr(item, field) for field in _FACTS.get(kind, ())})
    return rows


def registries() -> dict[str, Registry[Any]]:
    """Every registry, by the word for its parts.

    >>> sorted(registries())[:4]
    ['attacks', 'augmentations', 'codecs', 'metrics']
    """
    from byzmesh.attacks.base import attacks
    from byzmesh.networks.topologies import topologies
    from byzmesh.networks.weights import schemes
    from byzmesh.peers.codecs import codecs
    from byzmesh.problems import partitions, problems
    from byzmesh.problems.neural.augment import augmentations
    from byzmesh.problems.neural.modules import modules
    from byzmesh.rules.base import rules
    from byzmesh.training.metrics import metrics
    from byzmesh.training.schedules import schedules

    return {
        "rules": rules,
        "attacks": attacks,
        "topologies": topologies,
        "weights": schemes,
        "problems": problems,
        "partitions": partitions,
        "modules": modules,
        "augmentations": augmentations,
        "schedules": schedules,
        "codecs": codecs,
        "metrics": metrics,
    }


def printable(kind: str, rows: list[dict[str, Any]]) -> Any:
    """The rows as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=kind, title_justify="left")
    known = ("name", "aliases", "options", "feasible", "unit", "direction", "scale", "summary")
    headings = [heading for heading in known if any(row.get(heading) for row in rows)]
    for heading in headings:
        table.add_column(HEADINGS.get(heading, heading))
    for row in rows:
        options = ", ".join(name if value is None else f"{name}={value}" for name, value in row["options"].items())
        cells = {**row, "options": options, "aliases": ", ".join(row.get("aliases", []))}
        table.add_row(*(escape(str(cells[heading])) for heading in headings))
    return table

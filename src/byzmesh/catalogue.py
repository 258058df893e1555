"""Listings of rules, attacks, topologies, metrics and all other named parts."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

from byzmesh.entries import Entry
from byzmesh.registry import Registry


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

    >>> [(item.feasible, item.uses_f) for item in list_rules() if item.name in ("Krum", "WeiMean")]
    [('f <= d - 2', True), ('any (f is not used)', False)]
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
    return _listing("attacks")


def list_topologies() -> Listing:
    """All topologies: names and parameters.

    >>> "two-castle" in [item.name for item in list_topologies()]
    True
    """
    return _listing("topologies")


def list_processes() -> Listing:
    """All processes that change a network from round to round: names and options.

    >>> "random-pull" in [item.name for item in list_processes()]
    True
    """
    return _listing("processes")


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


def list_problems() -> Listing:
    """All problems: names and options.

    >>> "softmax" in [item.name for item in list_problems()]
    True
    """
    return _listing("problems")


def list_partitions() -> Listing:
    """All ways to split data among the workers.

    >>> "dirichlet" in [item.name for item in list_partitions()]
    True
    """
    return _listing("partitions")


def list_schedules() -> Listing:
    """All step-size schedules.

    >>> "constant" in [item.name for item in list_schedules()]
    True
    """
    return _listing("schedules")


def list_weights() -> Listing:
    """All schemes of mixing weights.

    >>> "equal" in [item.name for item in list_weights()]
    True
    """
    return _listing("weights")


def list_modules() -> Listing:
    """All torch modules for problem `torch`.

    >>> "cnn" in [item.name for item in list_modules()]
    True
    """
    return _listing("modules")


def list_augmentations() -> Listing:
    """All changes to training images for problem `torch`.

    >>> "flip" in [item.name for item in list_augmentations()]
    True
    """
    return _listing("augmentations")


def list_stages() -> Listing:
    """All stages of channels: what can happen to a vector on its way.

    >>> "float16" in [item.name for item in list_stages()]
    True
    """
    return _listing("stages")


def _listing(kind: str) -> Listing:
    from byzmesh.problems.neural.modules import FROM_DATA

    def chosen(entry: Entry[Any]) -> dict[str, Any]:
        """What users choose: a module's shape follows from the data, a weight scheme's first argument is the graph."""
        names = [name for name in list(entry.options)[1:] if name != "samples"] if kind == "weights" else entry.options
        return {name: entry.options[name] for name in names if kind != "modules" or name not in FROM_DATA}

    return Listing(replace(_listed(entry), options=chosen(entry)) for entry in registries()[kind].entries())


_FACTS = {"rules": ("uses_f", "feasible"), "metrics": ("unit", "direction", "scale")}
"""Additional columns of some listings."""


def everything(kind: str) -> list[dict[str, Any]]:
    """All parts of one kind as plain rows for the command line: name, options and what each does.

    >>> [row["name"] for row in everything("profiles")]
    ['text', 'paper', 'guarded']
    """
    if kind == "profiles":
        from byzmesh.training.profiles import PROFILES

        return [
            {"name": name, "options": {**options, "rule": dict(options["rule"])}} for name, options in PROFILES.items()
        ]
    facts = {"rules": list_rules, "metrics": list_metrics}
    items = facts[kind]() if kind in facts else _listing(kind)
    rows = []
    for item in items:
        row = {
            "name": item.name,
            "aliases": list(item.aliases),
            "options": {
                name: None if value is inspect.Parameter.empty else value for name, value in item.options.items()
            },
            "summary": item.summary,
        }
        rows.append(row | {field: getattr(item, field) for field in _FACTS.get(kind, ())})
    return rows


def registries() -> dict[str, Registry[Any]]:
    """Every registry, by the word for its parts.

    >>> sorted(registries())[:4]
    ['attacks', 'augmentations', 'metrics', 'modules']
    """
    from byzmesh.attacks.base import attacks
    from byzmesh.channels import stages
    from byzmesh.networks.processes import processes
    from byzmesh.networks.topologies import topologies
    from byzmesh.networks.weights import schemes
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
        "processes": processes,
        "weights": schemes,
        "problems": problems,
        "partitions": partitions,
        "modules": modules,
        "augmentations": augmentations,
        "schedules": schedules,
        "stages": stages,
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

"""What there is: rules, attacks and topologies with their options, and the doors for third parties' own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byzmesh.registry import Entry, Registry


@dataclass(frozen=True)
class Listed:
    """One registered thing, as a listing shows it."""

    name: str
    aliases: tuple[str, ...]
    options: dict[str, Any]
    summary: str
    published: dict[str, Any]
    """Options of the published runs where they differ from the text's definition."""
    uses_f: bool | None = None
    feasible: str = ""
    """Condition on f for d neighbours (S = d + 1), rules only."""


class Listing(list[Listed]):
    """A list of `Listed` that prints as a table."""

    def __repr__(self) -> str:
        rows = [(item.name, ", ".join(item.aliases), _options(item), item.feasible, item.summary) for item in self]
        rows.insert(0, ("name", "aliases", "options", "feasible f", "what it does"))
        if not any(row[3] for row in rows[1:]):
            rows = [(row[0], row[1], row[2], "", row[4]) for row in rows]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0]) if width or cell) for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)


def _options(item: Listed) -> str:
    return ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}" for name, default in item.options.items()
    )


def _listed(entry: Entry[Any], **facts: Any) -> Listed:
    return Listed(entry.name, entry.aliases, entry.options, entry.summary, dict(entry.published), **facts)


def list_rules() -> Listing:
    """All rules: names, aliases, options, whether they use f, and which f is feasible.

    >>> [item.name for item in list_rules() if item.uses_f][:4]
    ['bucketing', 'Bulyan', 'ClippedGossip', 'CS+']
    """
    from byzmesh.rules.base import rules as registry

    return Listing(
        _listed(
            entry,
            uses_f=registry.build(entry.name).uses_f,
            feasible=entry.facts.get("feasible", "any (f is not used)"),
        )
        for entry in registry.entries()
    )


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


def everything(kind: str) -> list[dict[str, Any]]:
    """A kind of thing as plain rows for the command line: name, options and what it does.

    >>> [row["name"] for row in everything("profiles")]
    ['text', 'paper']
    """
    if kind == "profiles":
        from byzmesh.training.profiles import PROFILES

        return [{"name": name, "options": dict(options)} for name, options in PROFILES.items()]
    if kind in ("rules", "attacks", "topologies"):
        items = {"rules": list_rules, "attacks": list_attacks, "topologies": list_topologies}[kind]()
    else:
        items = Listing(_listed(entry) for entry in _registries()[kind].entries())
    from byzmesh.problems.neural.modules import FROM_DATA

    # arguments that are not a user's choice
    filled_in = {"modules": FROM_DATA, "weights": ("adjacency",)}.get(kind, ())
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
        rows.append(row | ({"uses_f": item.uses_f, "feasible": item.feasible} if kind == "rules" else {}))
    return rows


def _registries() -> dict[str, Registry[Any]]:
    """What has no listing of its own: what networks, problems and step sizes are made of."""
    from byzmesh.networks.weights import schemes
    from byzmesh.problems import partitions, problems
    from byzmesh.problems.neural.augment import augmentations
    from byzmesh.problems.neural.modules import modules
    from byzmesh.training.schedules import schedules

    return {
        "weights": schemes,
        "problems": problems,
        "partitions": partitions,
        "modules": modules,
        "augmentations": augmentations,
        "schedules": schedules,
    }


def printable(kind: str, rows: list[dict[str, Any]]) -> Any:
    """The rows as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=kind, title_justify="left")
    headings = [heading for heading in ("name", "aliases", "options", "feasible", "summary") if heading in rows[0]]
    for heading in headings:
        table.add_column({"feasible": "feasible f", "summary": "what it does"}.get(heading, heading))
    for row in rows:
        options = ", ".join(name if value is None else f"{name}={value}" for name, value in row["options"].items())
        cells = {**row, "options": options, "aliases": ", ".join(row.get("aliases", []))}
        table.add_row(*(escape(str(cells[heading])) for heading in headings))
    return table


Door = Callable[[Callable[..., Any]], Callable[..., Any]]


def _door(registry: Registry[Any], name: str, aliases: tuple[str, ...], facts: dict[str, str] | None = None) -> Door:
    return registry.register(name, aliases=aliases, facts=facts)


def register_rule(name: str, *, aliases: tuple[str, ...] = (), feasible: str = "") -> Door:
    """Decorator for a function that returns a `Rule`; its parameters become the rule's options.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_rule("half-and-half")
    ... def half_and_half(own: float = 0.5):
    ...     "Own model and the plain mean of the neighbours."
    ...     import byzmesh as bm, numpy as np
    ...     def coefficients(block):
    ...         near = block.present.astype(float)
    ...         near[:, 0] = 0.0
    ...         out = (1 - own) * near / np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    ...         out[:, 0] = 1.0 - out.sum(axis=1)
    ...         return out
    ...     return bm.gram_rule("half-and-half", coefficients, options={"own": own})
    >>> bm.aggregate("half-and-half", np.zeros(1), np.ones((2, 1)), own=0.25)
    array([0.75])
    """
    from byzmesh.rules.base import rules as registry

    return _door(registry, name, aliases, {"feasible": feasible} if feasible else None)


def register_attack(name: str, *, aliases: tuple[str, ...] = ()) -> Door:
    """Decorator for a function that returns an `Attack`; its parameters become the attack's options."""
    from byzmesh.attacks.base import attacks as registry

    return _door(registry, name, aliases)


def register_topology(name: str, *, aliases: tuple[str, ...] = ()) -> Door:
    """Decorator for a function that returns a networkx graph on 0 .. n-1."""
    from byzmesh.networks.topologies import topologies as registry

    return _door(registry, name, aliases)

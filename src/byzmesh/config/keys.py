"""Dotted paths into a config as a user writes it, where a name alone may stand for a mapping with that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError
from byzmesh.networks.graph import as_mapping
from byzmesh.networks.topologies import topologies
from byzmesh.problems.base import problems
from byzmesh.problems.data.partition import partitions
from byzmesh.registry import Registry
from byzmesh.rules.base import rules
from byzmesh.training.schedules import schedules

_REGISTRIES: dict[str, Registry[Any]] = {
    "rule": rules,
    "rule.inner": rules,
    "attack": attacks,
    "problem": problems,
    "problem.partition": partitions,
    "network": topologies,
    "step": schedules,
}


def registry_of(path: str) -> Registry[Any] | None:
    """What the name at a path is a name of; None if it is no name.

    >>> registry_of("rule.name") is rules, registry_of("rounds")
    (True, None)
    """
    return _REGISTRIES.get(path.removesuffix(".name"))


def place(config: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path; a name on the way there becomes a mapping with that name.

    >>> config = {"rule": "CC"}
    >>> place(config, "rule.tau", 0.1)
    >>> config
    {'rule': {'name': 'CC', 'tau': 0.1}}
    """
    here = config
    *way, last = path.split(".")
    for depth, part in enumerate(way):
        held = here.get(part)
        if held is None:
            held = {}
        elif isinstance(held, str):
            held = as_mapping(held) if way[: depth + 1] == ["network"] else {"name": held}
        elif not isinstance(held, Mapping):
            raise ConfigError(f"{path} cannot be set: {'.'.join(way[: depth + 1])} is {held!r}, not a mapping")
        # A copy: the mapping may be shared with other points of the grid.
        here[part] = dict(held)
        here = here[part]
    here[last] = dict(value) if isinstance(value, Mapping) else value


def lookup(config: Mapping[str, Any], path: str) -> Any:
    """What is written at a path; None if nothing is.

    >>> lookup({"rule": "CC"}, "rule.name"), lookup({"rule": "CC"}, "rule.tau")
    ('CC', None)
    """
    held: Any = config
    for part in path.split("."):
        if isinstance(held, str):
            held = {"name": held}
        if not isinstance(held, Mapping):
            return None
        held = held.get(part)
    return held


def matches(path: str, held: Any, wanted: Any) -> bool:
    """Whether what is written at a path is what is wanted: the same value, a part of it, or one of a list.

    Names count as the same under all their aliases, and a name alone matches with whatever options.

    >>> matches("rule", {"name": "tm", "c": 1}, "TriMean"), matches("seed", 3, [1, 2])
    (True, False)
    """
    if isinstance(wanted, list) and any(matches(path, held, item) for item in wanted):
        return True
    if isinstance(wanted, Mapping):
        return all(matches(f"{path}.{key}", lookup({"": held}, f".{key}"), item) for key, item in wanted.items())
    known = registry_of(path)
    if known is not None and isinstance(wanted, str):
        name = lookup({"": held}, ".name") if not isinstance(held, str) else held
        return isinstance(name, str) and _canonical(known, name) == _canonical(known, wanted)
    return bool(held == wanted)


def _canonical(registry: Registry[Any], name: str) -> str:
    try:
        return registry.entry(name).name
    except ConfigError:
        return name

"""Dotted paths into a config as a user writes it, where a bare name may stand for a mapping with that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.channels import stages
from byzmesh.errors import ConfigError
from byzmesh.networks.processes import processes
from byzmesh.networks.specs import as_mapping
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
    "attack.inner": attacks,
    "attack.other": attacks,
    "problem": problems,
    "problem.partition": partitions,
    "network": topologies,
    "process": processes,
    "channel": stages,
    "step": schedules,
}


def registry_of(path: str) -> Registry[Any] | None:
    """The registry of the name at a path; None if there is no name.

    >>> registry_of("rule.name") is rules, registry_of("rounds")
    (True, None)
    """
    return _REGISTRIES.get(path.removesuffix(".name"))


def assign(config: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path; a name on the way there becomes a mapping with that name.

    >>> config = {"rule": "CC"}
    >>> assign(config, "rule.tau", 0.1)
    >>> config
    {'rule': {'name': 'CC', 'tau': 0.1}}
    """
    here = config
    *way, last = path.split(".")
    for depth, part in enumerate(way):
        inner = here.get(part)
        if inner is None:
            inner = {}
        elif isinstance(inner, str):
            inner = as_mapping(inner) if way[: depth + 1] == ["network"] else {"name": inner}
        elif not isinstance(inner, Mapping):
            raise ConfigError(f"{path} cannot be set: {'.'.join(way[: depth + 1])} is {inner!r}, not a mapping")
        # A copy, because other points of the grid may use the same mapping.
        here[part] = dict(inner)
        here = here[part]
    here[last] = dict(value) if isinstance(value, Mapping) else value


def lookup(config: Mapping[str, Any], path: str) -> Any:
    """The value at a path; None if there is none.

    >>> lookup({"rule": "CC"}, "rule.name"), lookup({"rule": "CC"}, "rule.tau")
    ('CC', None)
    """
    value: Any = config
    for part in path.split("."):
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def matches(path: str, value: Any, wanted: Any) -> bool:
    """Whether the value at a path matches: it is the same, contains the wanted mapping, or is in the wanted list.

    All aliases of a name match, and a bare name matches any options.

    >>> matches("rule", {"name": "tm", "c": 1}, "TriMean"), matches("seed", 3, [1, 2])
    (True, False)
    """
    if isinstance(wanted, list) and any(matches(path, value, item) for item in wanted):
        return True
    if isinstance(wanted, Mapping):
        return all(matches(f"{path}.{key}", lookup({"": value}, f".{key}"), item) for key, item in wanted.items())
    known = registry_of(path)
    if known is not None and isinstance(wanted, str):
        name = lookup({"": value}, ".name") if not isinstance(value, str) else value
        return isinstance(name, str) and _canonical(known, name) == _canonical(known, wanted)
    return bool(value == wanted)


def _canonical(registry: Registry[Any], name: str) -> str:
    try:
        return registry.entry(name).name
    except ConfigError:
        return name

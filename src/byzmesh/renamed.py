"""Options that have been renamed, and options that parts did not always have.

Neither may change the identity of a run. So keys are computed, and configs stored, with the first name of an option and
without a later option that has the value by which the part behaves as before: stores of any age and runs planned today
agree. All other code sees today's options: they are translated when a stored config is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_DATASET = MappingProxyType({"data": "dataset"})
_RENAMED: dict[tuple[str, str], Mapping[str, str]] = {
    ("problem", name): _DATASET for name in ("softmax", "logistic", "least-squares")
}
"""(key of a config, name of the part) -> first name of an option -> today's."""
_SCALED = MappingProxyType({"scale": 1.0})
_ADDED: dict[tuple[str, str], Mapping[str, Any]] = {
    **{("attack", name): _SCALED for name in ("sign-flipping", "isolation", "min-max", "min-sum")},
    ("attack", "adaptive"): MappingProxyType({"horizon": 1}),
    ("attack", "ascent"): MappingProxyType({"length": None}),
    ("problem", "torch"): MappingProxyType({"base": None, "adapter": None, "buffers": None, "precision": None}),
}
"""(key of a config, name of the part) -> option that it got later -> the value that it had before, in effect."""


def renamed(kind: str, name: str) -> Mapping[str, str]:
    """The renamed options of a rule, attack, problem, ...: first name -> today's.

    >>> dict(renamed("problem", "softmax")), dict(renamed("rule", "IOS"))
    ({'data': 'dataset'}, {})
    """
    return _RENAMED.get((kind, name), MappingProxyType({}))


def as_stored(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the first name of every option, and without later options that change nothing.

    >>> as_stored({"problem": {"name": "softmax", "dataset": "mnist"}, "seed": 3})
    {'problem': {'name': 'softmax', 'data': 'mnist'}, 'seed': 3}
    >>> as_stored({"attack": {"name": "ascent", "period": 10, "length": None}})
    {'attack': {'name': 'ascent', 'period': 10}}
    >>> as_stored({"problem": {"name": "torch", "dataset": "mnist"}})
    {'problem': {'name': 'torch', 'dataset': 'mnist'}}
    >>> [as_stored({"attack": {"name": "min-max", "scale": scale}}) for scale in (1.0, 2.0)]
    [{'attack': {'name': 'min-max'}}, {'attack': {'name': 'min-max', 'scale': 2.0}}]
    """
    old = _translated(config, {part: {now: first for first, now in names.items()} for part, names in _RENAMED.items()})
    for key, part, later in _late(old):
        old[key] = {option: value for option, value in part.items() if option not in later or value != later[option]}
    return old


def as_of_today(config: Mapping[str, Any]) -> dict[str, Any]:
    """A stored config with today's names and options.

    >>> as_of_today({"problem": {"name": "softmax", "data": "mnist"}, "seed": 3})
    {'problem': {'name': 'softmax', 'dataset': 'mnist'}, 'seed': 3}
    """
    new = _translated(config, _RENAMED)
    for key, part, later in _late(new):
        new[key] = {**part, **{option: value for option, value in later.items() if option not in part}}
    return new


def _late(config: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """(key, part, options that it got later) of a config."""
    parts = {key: part for key, part in config.items() if isinstance(part, Mapping)}
    return [(key, parts[key], later) for (key, name), later in _ADDED.items() if parts.get(key, {}).get("name") == name]


def spellings(path: str) -> tuple[str, ...]:
    """The paths under which the field at today's path is stored.

    >>> spellings("problem.dataset"), spellings("rule.tau")
    (('problem.dataset', 'problem.data'), ('rule.tau',))
    """
    return (path, *(first for first, now in _PATHS.items() if now == path))


def path_of_today(path: str) -> str:
    """Today's path for a stored one.

    >>> path_of_today("problem.data"), path_of_today("seed")
    ('problem.dataset', 'seed')
    """
    return _PATHS.get(path, path)


_PATHS = {f"{key}.{first}": f"{key}.{now}" for (key, _), names in _RENAMED.items() for first, now in names.items()}


def _translated(config: Mapping[str, Any], names: Mapping[tuple[str, str], Mapping[str, str]]) -> dict[str, Any]:
    result = dict(config)
    for (key, name), options in names.items():
        part = result.get(key)
        if isinstance(part, Mapping) and part.get("name") == name:
            result[key] = {options.get(option, option): value for option, value in part.items()}
    return result

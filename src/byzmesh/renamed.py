"""Options that have been renamed.

Renaming an option must not change the identity of a run. So keys are computed, and configs stored, with the first name
of an option: stores of any age and runs planned today agree. All other code sees today's name: it is translated when a
stored config is read.
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


def renamed(kind: str, name: str) -> Mapping[str, str]:
    """The renamed options of a rule, attack, problem, ...: first name -> today's.

    >>> dict(renamed("problem", "softmax")), dict(renamed("rule", "IOS"))
    ({'data': 'dataset'}, {})
    """
    return _RENAMED.get((kind, name), MappingProxyType({}))


def as_stored(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the first name of every option.

    >>> as_stored({"problem": {"name": "softmax", "dataset": "mnist"}, "seed": 3})
    {'problem': {'name': 'softmax', 'data': 'mnist'}, 'seed': 3}
    >>> as_stored({"problem": {"name": "torch", "dataset": "mnist"}})
    {'problem': {'name': 'torch', 'dataset': 'mnist'}}
    """
    return _translated(config, {part: {now: first for first, now in names.items()} for part, names in _RENAMED.items()})


def as_of_today(config: Mapping[str, Any]) -> dict[str, Any]:
    """A stored config with today's names.

    >>> as_of_today({"problem": {"name": "softmax", "data": "mnist"}, "seed": 3})
    {'problem': {'name': 'softmax', 'dataset': 'mnist'}, 'seed': 3}
    """
    return _translated(config, _RENAMED)


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

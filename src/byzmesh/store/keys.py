"""A run's key, from its resolved config and the code that computes it; and the flat fields that filters use.

    key = SHA-256( JSON of the config )                      if all code is built in (`code` is empty)
    key = SHA-256( JSON of the config, JSON of the code )    otherwise

JSON is canonical: sorted names, no spaces, ASCII, floats in their shortest exact form.

Names that a config gives (`byzmesh.naming`) are not part of the key, and options go by the first name that they had
(`byzmesh.renamed`). The order of fields does not matter; every value and its type do: `1`, `1.0`, `True` and `"1"` are
four different values. So resolving a config must always give the same type of number. NaN and infinity have no JSON
form and are refused; so is a dot in a name, because dots separate levels in filters.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from byzmesh.checks import is_whole
from byzmesh.errors import ConfigError
from byzmesh.naming import without_names
from byzmesh.renamed import as_stored

NO_CODE: Mapping[str, str] = MappingProxyType({})
LONGEST_INDEXED = 64
"""Longer values (an edge list, say) are indexed by their hash."""


def plain(value: Any, path: str = "config") -> Any:
    """The value as dicts, lists and JSON scalars; an error names the path of a value that JSON lacks."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"{path} = {value!r} cannot be part of a key: give a finite number, or null for none")
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str) or "." in name:
                raise ConfigError(f"{path} has the name {name!r}: names must be strings without a dot; rename it")
        return {name: plain(inner, f"{path}.{name}") for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, f"{path}[{position}]") for position, inner in enumerate(value)]
    raise ConfigError(
        f"{path} is a {type(value).__name__}, which JSON cannot hold: "
        "give a string, number, boolean, null, list or mapping"
    )


def dump(value: Any) -> str:
    """Canonical JSON of a plain value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(config: Mapping[str, Any]) -> str:
    """Canonical JSON of a config.

    >>> canonical({"seed": 3, "rule": {"name": "IOS", "f": 1}})
    '{"rule":{"f":1,"name":"IOS"},"seed":3}'
    """
    return dump(plain(config))


def config_key(config: Mapping[str, Any], code: Mapping[str, str] = NO_CODE) -> str:
    """The key of a run: SHA-256 of the canonical JSON of its config and, unless that is empty, of its code; 64 digits.

    >>> config_key({"seed": 3, "lr": 0.9})[:8]
    '716f903b'
    >>> config_key({"lr": 0.9, "seed": 3})[:8]
    '716f903b'
    >>> config_key({"lr": 0.9, "seed": 3, "labels": {"case": "names do not count"}})[:8]
    '716f903b'
    >>> config_key({"lr": 0.9, "seed": 4})[:8] == config_key({"lr": 0.9, "seed": 3})[:8]
    False
    >>> config_key({"lr": 0.9, "seed": 3}, {"rule mine": "5f1c"})[:8]
    '14e778a0'
    """
    return key_of(config_text(config), code_json(code))


def config_text(config: Mapping[str, Any]) -> str:
    """The stored form of a config, from which its key is computed: canonical JSON, no names, options as first named.

    >>> config_text({"problem": {"name": "softmax", "dataset": "mnist"}, "labels": {"case": "iid"}})
    '{"problem":{"data":"mnist","name":"softmax"}}'
    """
    return canonical(as_stored(without_names(config)))


def code_json(code: Mapping[str, str]) -> str:
    """Canonical JSON of the identities of code: part -> text."""
    if not all(isinstance(part, str) and isinstance(identity, str) for part, identity in code.items()):
        raise ConfigError(f"code must map names of parts to texts, got {dict(code)!r}")
    return dump(dict(code))


def key_of(config: str, code: str = "{}") -> str:
    """The key of a run whose config and code are canonical JSON."""
    text = config if code == "{}" else f"{config}\n{code}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Leaves of a config by dotted path. A list is one leaf, and so is an empty mapping.

    >>> flatten({"rule": {"name": "IOS", "f": 1}, "byzantine": [7, 9]})
    {'rule.name': 'IOS', 'rule.f': 1, 'byzantine': [7, 9]}
    """
    leaves: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            leaves.update(flatten(value, f"{prefix}{name}."))
        else:
            leaves[prefix + name] = value
    return leaves


def indexed(value: Any) -> int | float | str:
    """The value that the index of fields stores for a leaf; equal values are equal in SQLite.

    Numbers stay numbers (a filter for 1 also finds 1.0); everything else is its JSON text, or its hash if that is long.

    >>> indexed(0.5), indexed("0.5"), indexed(True), indexed([7, 9])
    (0.5, '"0.5"', 'true', '[7,9]')
    """
    if isinstance(value, float):
        return value
    if is_whole(value) and -(2**63) <= value < 2**63:
        return int(value)
    text = dump(value)
    return text if len(text) <= LONGEST_INDEXED else "#" + hashlib.sha256(text.encode("ascii")).hexdigest()

"""Parts of a config in their canonical form."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.network import Network, network, topologies
from byzmesh.network.weights import schemes
from byzmesh.registry import Registry


def named(key: str, value: Any) -> dict[str, Any]:
    """A mapping with `name` from a name or from such a mapping.

    >>> named("rule", "ios"), named("rule", {"name": "cc", "tau": 1})
    ({'name': 'ios'}, {'name': 'cc', 'tau': 1})
    """
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping):
        if "name" not in value:
            raise ConfigError(f"config {key} is a mapping without 'name', got keys {sorted(map(str, value))}")
        return dict(value)
    if hasattr(value, "name") and hasattr(value, "options"):
        return {"name": value.name, **value.options}
    raise ConfigError(f"config {key} must be a name or a mapping with 'name' and options, got {value!r}")


def with_defaults(
    registry: Registry[Any], spec: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The spec with its canonical name and every option written out; `defaults` come before the factory's own."""
    options = {key: value for key, value in spec.items() if key != "name"}
    entry = registry.check_options(spec["name"], options)
    merged = {option: options.get(option, defaults.get(option, default)) for option, default in entry.options.items()}
    return {
        "name": entry.name,
        **{option: _typed(f"{entry.name}.{option}", merged[option], entry.options[option]) for option in merged},
    }


def _typed(name: str, value: Any, default: Any) -> Any:
    """A number as a float where the default is one: 1 and 1.0 and YAML's unquoted 1e-5 (a string) mean the same."""
    if not isinstance(default, float) or default is inspect.Parameter.empty:
        return value
    if isinstance(value, bool):
        raise ConfigError(f"config {name} must be a number, got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"config {name} must be a number, got {value!r}") from None


def build_network(spec: Any, folder: Path = Path()) -> Network:
    """The network that a config means."""
    if isinstance(spec, Network):
        return spec
    if isinstance(spec, str):
        path = folder / spec
        if spec.endswith((".json", ".edges", ".txt", ".csv", ".graphml")):
            return Network.from_file(path)
        return network(spec)
    if not isinstance(spec, Mapping):
        raise ConfigError(f"config network must be a name, a file or a mapping, got {spec!r}")
    given = dict(spec)
    placement = {key: given.pop(key) for key in ("byzantine", "weights") if given.get(key) is not None}
    for key in ("byzantine", "weights"):
        given.pop(key, None)
    if "file" in given:
        _only(given, "file", "seed")
        return Network.from_file(folder / str(given["file"]), **placement, seed=given.get("seed", 0))
    if "edges" in given:
        _only(given, "edges", "n", "seed", "name")
        pairs = [tuple(edge) for edge in given["edges"]]
        return Network.from_edges(pairs, given.get("n"), **placement, seed=given.get("seed", 0))
    if "name" not in given:
        raise ConfigError(f"config network needs 'name', 'file' or 'edges', got keys {sorted(map(str, given))}")
    return network(given.pop("name"), **placement, **given)


def _only(given: Mapping[str, Any], *known: str) -> None:
    for key in given:
        if key not in known:
            raise UnknownOption(f"config network has no key {key!r} beside {known[0]!r}: {nearest(key, known)}")


def canonical_network(spec: Any, folder: Path) -> dict[str, Any]:
    """A network by its topology and parameters where it has a registered one, by its edges otherwise."""
    built = build_network(spec, folder)
    weights: Any = built.weights if built.weights in schemes.names() else built.mixing.tolist()
    rest = {"byzantine": built.byzantine.tolist(), "weights": weights}
    name = spec if isinstance(spec, str) else spec.get("name") if isinstance(spec, Mapping) else None
    if name is not None and "edges" not in (spec if isinstance(spec, Mapping) else {}) and not is_file(spec):
        options = (
            {k: v for k, v in spec.items() if k in topologies.entry(name).options} if isinstance(spec, Mapping) else {}
        )
        return {**with_defaults(topologies, {"name": name, **options}), **rest}
    line, column = np.nonzero(np.triu(built.adjacency))
    edges = np.stack([line, column], axis=1).tolist()
    return {"edges": edges, "n": built.n, **rest}


def is_file(spec: Any) -> bool:
    """Whether a network is given by a file: a name with a file's ending, or a mapping with `file`."""
    if isinstance(spec, Mapping):
        return "file" in spec
    return isinstance(spec, str) and spec.endswith((".json", ".edges", ".txt", ".csv", ".graphml"))


def plain(value: Any) -> Any:
    """Nested dicts, lists and scalars of Python's own types only.

    >>> plain({"a": (np.int64(1), np.float32(0.5))})
    {'a': [1, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ConfigError(f"a config holds numbers, strings, lists and mappings, got {type(value).__name__} {value!r}")

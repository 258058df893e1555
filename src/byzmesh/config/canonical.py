"""Parts of a config in their canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks.processes import process
from byzmesh.networks.specs import as_mapping
from byzmesh.networks.topologies import topologies
from byzmesh.networks.weights import schemes

UNNAMED = ("adjacency", "edges", "networkx")
"""Names of networks that the user did not name."""


def canonical_network(spec: Any) -> dict[str, Any]:
    """A network by its topology and parameters if that is registered, otherwise by its edges.

    A user's own graph has a label: the stem of its file, or the name given in Python.
    """
    built = Network.from_spec(spec)
    weights: Any = built.weights if built.weights in schemes.names() else built.mixing.tolist()
    rest: dict[str, Any] = {"byzantine": built.byzantine.tolist(), "weights": weights}
    if built.samples is not None:
        rest["samples"] = built.samples.tolist()
    given = {"label": spec.name} if isinstance(spec, Network) else as_mapping(spec)
    if "name" in given:
        options = {key: value for key, value in given.items() if key in topologies.entry(given["name"]).options}
        return {**topologies.canonical({"name": given["name"], **options}), **rest}
    edges = built.links.edges().tolist()
    label = Path(given["file"]).stem if "file" in given else given.get("label")
    named: dict[str, Any] = {} if label in (None, *UNNAMED) else {"label": label}
    if built.names is not None:
        named["names"] = list(built.names)
    one_way = {"directed": True} if built.directed else {}
    return {"edges": edges, "n": built.n, **one_way, **rest, **named}


def canonical_process(spec: Any) -> list[dict[str, Any]]:
    """Processes in order with every option written out; a file of edges becomes the edges. `static` is no process.

    >>> canonical_process("loss"), canonical_process("static")
    ([{'name': 'link-loss', 'p': 0.1}], [])
    """
    return [{"name": one.name, **one.options} for one in process(spec)]


def plain(value: Any) -> Any:
    """The value as nested dicts, lists and scalars of built-in types.

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
    raise ConfigError(
        f"a config consists of numbers, strings, lists and mappings, got {type(value).__name__} {value!r}"
    )

"""Names in a config, which are not part of a run's identity: configs that differ only in names are one run.

labels          names given by the user or by a grid's `case`
network.label   the name of a user's own graph: the stem of its file
network.names   what the user calls its nodes
plugins         where the code of a user's own parts is (the identity of that code is part of the run's key)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = ("labels", "plugins", "network.label", "network.names")


def is_name(path: str) -> bool:
    """Whether a dotted path of a config leads to a name.

    >>> is_name("labels.case"), is_name("network.label"), is_name("rule.name")
    (True, True, False)
    """
    return any(path == name or path.startswith(f"{name}.") for name in NAMES)


def without_names(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The config without its names: the part that identifies a run.

    >>> without_names({"seed": 3, "labels": {"case": "iid"}, "network": {"edges": [[0, 1]], "label": "mine"}})
    {'seed': 3, 'network': {'edges': [[0, 1]]}}
    """
    return {
        key: without_names(value, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in config.items()
        if not is_name(f"{prefix}{key}")
    }


def only_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """The names alone; `merged` puts both together again.

    >>> only_names({"seed": 3, "labels": {"case": "iid"}, "network": {"edges": [[0, 1]], "label": "mine"}})
    {'labels': {'case': 'iid'}, 'network': {'label': 'mine'}}
    """
    names = {key: config[key] for key in ("labels", "plugins") if config.get(key)}
    network = config.get("network")
    if isinstance(network, Mapping) and (
        given := {key: network[key] for key in ("label", "names") if network.get(key)}
    ):
        names["network"] = given
    return names


def merged(config: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The config with these names added; they replace equal ones.

    >>> merged({"seed": 3, "labels": {"case": "iid"}}, {"labels": {"data": "mnist"}})
    {'seed': 3, 'labels': {'case': 'iid', 'data': 'mnist'}}
    """
    result = dict(config)
    for key, value in names.items():
        former = result.get(key)
        result[key] = {**former, **value} if isinstance(former, Mapping) and isinstance(value, Mapping) else value
    return result

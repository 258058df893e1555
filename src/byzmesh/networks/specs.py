"""A network as users write it: a topology with its parameters, a file, or a list of edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from byzmesh.checks import flag
from byzmesh.errors import ConfigError, UnknownOption, brief, nearest
from byzmesh.networks import io
from byzmesh.networks.adjacency import Parts, links_of_edges, parts_of_networkx
from byzmesh.networks.topologies import topologies


def as_mapping(spec: Any) -> dict[str, Any]:
    """A spec as a mapping with `name`, `file` or `edges`.

    >>> as_mapping("ring"), as_mapping("peers.edges")
    ({'name': 'ring'}, {'file': 'peers.edges'})
    """
    if isinstance(spec, str):
        return {"file" if spec.lower().endswith(io.KINDS) else "name": spec}
    if not isinstance(spec, Mapping):
        raise ConfigError(
            "network must be a name, a file, a mapping or a bm.Network (see from_networkx, from_adjacency), "
            f"got {brief(spec)}"
        )
    if not {"name", "file", "edges"} & set(spec):
        keys = ", ".join(map(str, spec)) or "none"
        raise ConfigError(f"a network given as a mapping needs 'name', 'file' or 'edges', got the keys {keys}")
    return dict(spec)


def of_edges(given: Mapping[str, Any]) -> Parts:
    """A list of `edges`, with the number of nodes `n`, the name of the graph `label` and those of its nodes `names`.

    With `directed`, an edge [a, b] means that a sends to b.

    >>> of_edges({"edges": [[0, 1]], "names": ["Lon", "Par"]}).names
    ('Lon', 'Par')
    """
    only(given, "edges", "n", "label", "names", "directed")
    directed = flag("network directed", given.get("directed", False))
    links = links_of_edges([tuple(edge) for edge in given["edges"]], given.get("n"), directed)
    names = given.get("names")
    if names is not None and (isinstance(names, str) or len(set(names)) != links.n or len(names) != links.n):
        raise ConfigError(f"names must give each of the {links.n} nodes a name of its own, got {brief(names)}")
    named = None if names is None else tuple(map(str, names))
    return Parts(links=links, name=given.get("label", "edges"), names=named)


def of_topology(given: Mapping[str, Any], seed: int, byzantine: Any) -> Parts:
    """The topology of that `name` with its parameters; other liars than its own if given."""
    entry = topologies.entry(given["name"])
    entry, chosen = topologies.options_of({**given, "seed": seed} if "seed" in entry.options else given, {})
    made = entry.factory(**chosen)
    if not isinstance(made, Parts):
        made = parts_of_networkx(made, byzantine)
    elif byzantine is not None:
        made = replace(made, byzantine=byzantine)
    shown = {option: chosen.get(option, default) for option, default in entry.options.items()}
    return replace(made, name=entry.name, parameters=shown)


def only(given: Mapping[str, Any], *known: str) -> None:
    """Raise `UnknownOption` if a mapping has other keys than these."""
    for key in given:
        if key not in known:
            raise UnknownOption(f"network has no key {key!r} beside {known[0]!r}: {nearest(str(key), known)}")

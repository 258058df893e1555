"""From a user's matrix, edges or networkx graph to a checked adjacency matrix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.checks import is_whole, whole
from byzmesh.errors import ConfigError
from byzmesh.types import Booleans, Floats

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a graph or a file says about a network: the arguments of `Network.from_adjacency`."""

    adjacency: Any
    byzantine: Any = None
    weights: Any = None
    name: str = "adjacency"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positions: Any = None
    names: tuple[str, ...] | None = None


def checked_node(node: Any, n: int) -> int:
    """A node id, checked to be in range."""
    if not is_whole(node) or not 0 <= node < n:
        raise ConfigError(f"no node {node!r}: nodes are numbered 0 to {n - 1}")
    return int(node)


def checked_adjacency(adjacency: Any) -> Booleans:
    """(n, n) bool: symmetric, no loops.

    >>> checked_adjacency([[0, 1], [0, 0]])
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: adjacency must be symmetric, but 0-1 is linked in one direction only; link both
    """
    try:
        given = np.asarray(adjacency)
    except ValueError:
        raise ConfigError("adjacency must be an (n, n) matrix, got rows of different lengths") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) == 0:
        raise ConfigError(f"adjacency must be an (n, n) matrix with n >= 1, got shape {given.shape}")
    if given.dtype.kind not in "biuf" or not ((given == 0) | (given == 1)).all():
        raise ConfigError("adjacency must contain only 0 and 1; give edge weights as weights=")
    links: Booleans = given.astype(np.bool_)
    loops = np.flatnonzero(np.diag(links))
    if len(loops):
        raise ConfigError(f"node {loops[0]} is linked to itself; remove the loop, every node has its own weight anyway")
    one_way = np.argwhere(links & ~links.T)
    if len(one_way):
        i, j = one_way[0].tolist()
        raise ConfigError(f"adjacency must be symmetric, but {i}-{j} is linked in one direction only; link both")
    return links


def checked_positions(positions: Any, n: int) -> Floats:
    """(n, 2) finite coordinates."""
    try:
        spots = np.array(positions, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"positions must be an ({n}, 2) array of numbers") from None
    if spots.shape != (n, 2) or not np.isfinite(spots).all():
        raise ConfigError(f"positions must be an ({n}, 2) array of finite numbers, got shape {spots.shape}")
    spots.setflags(write=False)
    return spots


def adjacency_of_edges(edges: Iterable[Any], n: int | None = None) -> Booleans:
    """(n, n) bool from pairs of ids. Links go both ways: list each once, or all of them in both directions.

    A list with some links in both directions and others in one describes a directed graph and is refused.

    >>> adjacency_of_edges([(0, 1)]).astype(int)
    array([[0, 1],
           [1, 0]])
    """
    pairs = [tuple(edge) for edge in edges]
    for pair in pairs:
        if len(pair) != 2 or not all(is_whole(node) and node >= 0 for node in pair):
            raise ConfigError(f"an edge must be a pair of node ids from 0, got {pair!r}")
    ends = np.asarray(pairs, np.int64).reshape(-1, 2)
    n = None if n is None else whole("n", n, 1)
    if n is None:
        if len(ends) == 0:
            raise ConfigError("edges is empty; give n= for nodes without edges")
        n = int(ends.max()) + 1
        unseen = np.setdiff1d(np.arange(n), ends)
        if len(unseen):
            raise ConfigError(f"no edge names node {unseen[0]}; number the nodes from 0 without gaps, or give n={n}")
    elif len(ends) and ends.max() >= n:
        raise ConfigError(f"an edge names node {ends.max()}, but nodes are numbered 0 to {n - 1}; raise n")
    links = np.zeros((n, n), np.bool_)
    links[ends[:, 0], ends[:, 1]] = True
    both, one_way = np.argwhere(np.triu(links & links.T, 1)), np.argwhere(links & ~links.T)
    if len(both) and len(one_way):
        (i, j), (k, m) = both[0], one_way[0]
        raise ConfigError(
            f"{i}-{j} is listed in both directions and {k}-{m} in one only, as in a directed graph; byzmesh links go "
            "both ways: list each once"
        )
    return checked_adjacency(links | links.T)


def parts_of_networkx(graph: networkx.Graph[Any], byzantine: Any = None) -> Parts:
    """Adjacency, liars and positions of a networkx graph, its labels renumbered in sorted order."""
    if graph.is_directed():
        raise ConfigError("the graph is directed; byzmesh links go both ways: pass graph.to_undirected()")
    if graph.is_multigraph():
        raise ConfigError("the graph is a multigraph; pass networkx.Graph(graph), which keeps one edge per pair")
    if len(graph) == 0:
        raise ConfigError("the graph has no nodes")
    try:
        labels = sorted(graph.nodes, key=_order)
    except TypeError:
        raise ConfigError(
            "node labels cannot be sorted; pass networkx.convert_node_labels_to_integers(graph)"
        ) from None
    number = {label: index for index, label in enumerate(labels)}
    adjacency = adjacency_of_edges([(number[a], number[b]) for a, b in graph.edges()], len(labels))
    if byzantine is None:
        byzantine = [index for index, label in enumerate(labels) if _lies(graph.nodes[label], label)]
    elif isinstance(byzantine, Iterable) and not isinstance(byzantine, str):
        byzantine = [_number(number, label) for label in byzantine]
    spots = [graph.nodes[label].get("pos") for label in labels]
    positions = None if any(spot is None for spot in spots) else checked_positions(spots, len(labels))
    name = str(graph.graph.get("name") or "networkx")
    names = tuple(map(str, labels))
    numbered = names == tuple(map(str, range(len(labels))))
    return Parts(
        adjacency=adjacency, byzantine=byzantine, name=name, positions=positions, names=None if numbered else names
    )


def _order(label: Any) -> Any:
    """Sort key that treats digits inside strings as numbers, so that n2 comes before n10."""
    if isinstance(label, str):
        return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"([0-9]+)", label) if part]
    return label


def _lies(attributes: dict[str, Any], label: Any) -> bool:
    value = attributes.get("byzantine", False)
    if value not in (False, True):
        raise ConfigError(f"node {label!r} has the attribute byzantine={value!r}; it must be true or false")
    return bool(value)


def _number(number: dict[Any, int], label: Any) -> int:
    if isinstance(label, bool) or label not in number:
        raise ConfigError(f"byzantine names node {label!r}, which the graph does not have")
    return number[label]

"""From a user's matrix, edges or networkx graph to checked links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.checks import is_number, is_whole, whole
from byzmesh.errors import ConfigError
from byzmesh.networks.links import Links
from byzmesh.sparse import frozen
from byzmesh.types import Floats, Integers

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a topology, a graph or a file says about a network."""

    links: Links
    byzantine: Any = None
    weights: Any = None
    name: str = "adjacency"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positions: Any = None
    names: tuple[str, ...] | None = None
    samples: Any = None


def checked_node(node: Any, n: int) -> int:
    """A node id, checked to be in range."""
    if not is_whole(node) or not 0 <= node < n:
        raise ConfigError(f"no node {node!r}: nodes are numbered 0 to {n - 1}")
    return int(node)


def checked_samples(samples: Any, n: int) -> Floats:
    """(n,) how many samples each node has, or numbers in proportion to that, checked.

    >>> checked_samples([100, 300], 2)
    array([100., 300.])
    """
    if isinstance(samples, str) or not hasattr(samples, "__len__") or len(samples) != n:
        raise ConfigError(f"samples must be {n} numbers above 0, one per node, got {samples!r}")
    if not all(is_number(value) and 0.0 < value < np.inf for value in samples):
        raise ConfigError(f"samples must be numbers above 0, got {list(samples)!r}; leave out nodes without data")
    return np.asarray(samples, np.float64)


def links_of_matrix(adjacency: Any, directed: bool = False) -> Links:
    """From an (n, n) matrix of 0 and 1, dense or SciPy's: no loops; symmetric, or row i hears column j if `directed`.

    >>> links_of_matrix([[0, 1], [0, 0]])
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: adjacency must be symmetric, but 0-1 is linked in one direction only; link both...
    """
    sparse = hasattr(adjacency, "tocoo")
    try:
        given = adjacency.tocoo() if sparse else np.asarray(adjacency)
    except ValueError:
        raise ConfigError("adjacency must be an (n, n) matrix, got rows of different lengths") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
        raise ConfigError(f"adjacency must be an (n, n) matrix with n >= 1, got shape {given.shape}")
    entries: Any = given.data if sparse else given
    if given.dtype.kind not in "biuf" or not ((entries == 0) | (entries == 1)).all():
        raise ConfigError("adjacency must contain only 0 and 1; give edge weights as weights=")
    receiver, sender = given.nonzero()
    return checked(Links.of_pairs(receiver, sender, given.shape[0]), directed)


def checked(links: Links, directed: bool = False) -> Links:
    """The links, if nobody is linked to itself and, unless `directed`, all go both ways."""
    loops = np.flatnonzero(links.receiver == links.sender)
    if len(loops):
        raise ConfigError(
            f"node {links.sender[loops[0]]} is linked to itself; remove the loop, every node has its own weight anyway"
        )
    one_way = np.flatnonzero(links.back < 0)
    if len(one_way) and not directed:
        i, j = links.receiver[one_way[0]], links.sender[one_way[0]]
        raise ConfigError(
            f"adjacency must be symmetric, but {i}-{j} is linked in one direction only; link both, or say directed"
        )
    return links


def checked_positions(positions: Any, n: int) -> Floats:
    """(n, 2) finite coordinates."""
    try:
        spots = np.array(positions, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"positions must be an ({n}, 2) array of numbers") from None
    if spots.shape != (n, 2) or not np.isfinite(spots).all():
        raise ConfigError(f"positions must be an ({n}, 2) array of finite numbers, got shape {spots.shape}")
    return frozen(spots)


def links_of_edges(edges: Any, n: int | None = None, directed: bool = False) -> Links:
    """From pairs of ids. Links go both ways: list each once, or all of them in both directions.

    With `directed`, (a, b) means that a sends to b. Without, a list with some links in both directions and others in
    one describes a directed graph and is refused.

    >>> links_of_edges([(0, 1)]).dense().astype(int)
    array([[0, 1],
           [1, 0]])
    >>> links_of_edges([(0, 1)], directed=True).of(1)
    array([0])
    """
    ends = edges if _is_pairs(edges) else _checked_pairs(edges)
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
    if directed:
        return checked(Links.of_pairs(ends[:, 1], ends[:, 0], n), directed)
    listed = Links.of_pairs(ends[:, 0], ends[:, 1], n)
    both, one_way = listed.both_ways(), np.flatnonzero(listed.back < 0)
    if len(both) and len(one_way):
        (i, j), k, m = both[0], listed.receiver[one_way[0]], listed.sender[one_way[0]]
        raise ConfigError(
            f"{i}-{j} is listed in both directions and {k}-{m} in one only, as in a directed graph; say directed, or "
            "list each once"
        )
    receiver, sender = np.concatenate([ends, ends[:, ::-1]]).T
    return checked(Links.of_pairs(receiver, sender, n))


def _is_pairs(edges: Any) -> bool:
    """Whether edges are already an (E, 2) array of ids."""
    return (
        isinstance(edges, np.ndarray)
        and edges.dtype.kind in "iu"
        and edges.ndim == 2
        and edges.shape[1] == 2
        and edges.min(initial=0) >= 0
    )


def _checked_pairs(edges: Iterable[Any]) -> Integers:
    pairs = [tuple(edge) for edge in edges]
    for pair in pairs:
        if len(pair) != 2 or not all(is_whole(node) and node >= 0 for node in pair):
            raise ConfigError(f"an edge must be a pair of node ids from 0, got {pair!r}")
    return np.asarray(pairs, np.int64).reshape(-1, 2)


def parts_of_networkx(graph: networkx.Graph[Any], byzantine: Any = None) -> Parts:
    """Links, liars and positions of a networkx graph, its labels renumbered in sorted order."""
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
    ends = np.array([(number[a], number[b]) for a, b in graph.edges()], np.int64).reshape(-1, 2)
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
        links=links_of_edges(ends, len(labels), graph.is_directed()),
        byzantine=byzantine,
        name=name,
        positions=positions,
        names=None if numbered else names,
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

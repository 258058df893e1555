"""Random topologies. Each is redrawn from one stream until it is connected, so a seed gives one connected graph."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byzmesh.checks import fraction, positive, whole
from byzmesh.errors import ConfigError
from byzmesh.networks import positions as places
from byzmesh.networks.adjacency import Parts, links_of_edges, parts_of_networkx
from byzmesh.networks.topologies import topologies
from byzmesh.types import Integers

if TYPE_CHECKING:
    import networkx

DRAWS = 1000


def connected(topology: str, seed: int, draw: Callable[[random.Random], Parts], way_out: str) -> Parts:
    """The first connected graph of a stream, strongly if links go one way; an error after 1,000 draws without one."""
    stream = random.Random(seed)
    for _ in range(DRAWS):
        parts = draw(stream)
        links = parts.links
        if links.reach().all() and (not links.directed or links.reversed().reach().all()):
            return parts
    raise ConfigError(f"topology {topology}: none of {DRAWS} draws was connected; {way_out}")


def drawn_by(generator: Callable[..., networkx.Graph[int]], *options: float) -> Callable[[random.Random], Parts]:
    """A draw by one of networkx's generators."""
    return lambda stream: parts_of_networkx(generator(*options, seed=stream))


@topologies.register("erdos-renyi", aliases=("er", "gnp"))
def erdos_renyi(n: int, p: float = 0.7, seed: int = 0) -> Parts:
    """Every two nodes are linked with probability p; redrawn until connected."""
    import networkx

    whole("topology erdos-renyi: n", n, 2)
    fraction("topology erdos-renyi: p", p, zero=False)
    return connected("erdos-renyi", seed, drawn_by(networkx.fast_gnp_random_graph, n, p), f"raise p = {p}")


@topologies.register("k-regular", aliases=("regular", "random-regular"))
def k_regular(n: int, k: int, seed: int = 0) -> Parts:
    """A random graph in which every node has k neighbours; redrawn until connected."""
    whole("topology k-regular: n", n, 3)
    whole("topology k-regular: k", k, 2, n - 1, "neighbours of a node")
    if n * k % 2:
        raise ConfigError(f"topology k-regular: n * k must be even, got {n} * {k}; change one of them by 1")

    def draw(stream: random.Random) -> Parts:
        ends = None
        while ends is None:
            ends = _paired(n, k, stream)
        return Parts(links=links_of_edges(ends, n))

    graph = connected("k-regular", seed, draw, f"raise k = {k}")
    return replace(graph, positions=places.circle(n))


@topologies.register("k-in", aliases=("random-digraph",))
def k_in(n: int, k: int, seed: int = 0) -> Parts:
    """Directed: every node hears k others, drawn uniformly; redrawn until everybody reaches everybody."""
    whole("topology k-in: n", n, 3)
    whole("topology k-in: k", k, 1, n - 1, "others that a node hears")

    def draw(stream: random.Random) -> Parts:
        # by random(), which Python promises to keep: not by sample()
        order = np.argsort([[stream.random() if i != j else 2.0 for j in range(n)] for i in range(n)], axis=1)
        ends = np.stack([order[:, :k].ravel(), np.repeat(np.arange(n), k)], axis=1)
        return Parts(links=links_of_edges(ends, n, directed=True))

    graph = connected("k-in", seed, draw, f"raise k = {k}")
    return replace(graph, positions=places.circle(n))


def _paired(n: int, k: int, stream: random.Random) -> Integers | None:
    """(n k / 2, 2) links of a k-regular graph, or None if the draw ends in a dead end.

    Every node has k stubs. They are shuffled and paired; pairs that would be a loop or a second link between two nodes
    are shuffled again (Steger and Wormald 1999). Draws and order are those of networkx's `random_regular_graph`, so
    that a seed keeps its graph, without its cost in memory and time.
    """
    stubs = list(range(n)) * k
    linked: set[int] = set()
    while stubs:
        stream.shuffle(stubs)
        left: dict[int, int] = {}
        ends = iter(stubs)
        for one, other in zip(ends, ends, strict=True):
            low, high = (one, other) if one < other else (other, one)
            pair = low * n + high
            if low != high and pair not in linked:
                linked.add(pair)
            else:
                left[low] = left.get(low, 0) + 1
                left[high] = left.get(high, 0) + 1
        if left and not _can_pair(left, linked, n):
            return None
        stubs = [node for node, count in left.items() for _ in range(count)]
    return np.stack(np.divmod(np.fromiter(linked, np.int64, len(linked)), n), axis=1)


def _can_pair(left: dict[int, int], linked: set[int], n: int) -> bool:
    """Whether two of the nodes with stubs left are not linked, as networkx asks: not all pairs are looked at."""
    for first in left:
        low = first
        for other in left:
            if low == other:
                break
            low, high = (low, other) if low < other else (other, low)
            if low * n + high not in linked:
                return True
    return False


@topologies.register("watts-strogatz", aliases=("small-world",))
def watts_strogatz(n: int, k: int = 4, p: float = 0.1, seed: int = 0) -> Parts:
    """A ring with links to the k nearest nodes, each rewired with probability p; redrawn until connected."""
    import networkx

    whole("topology watts-strogatz: n", n, 4)
    whole("topology watts-strogatz: k", k, 2, n - 1, "nearest nodes on the ring")
    if k % 2:
        raise ConfigError(f"topology watts-strogatz: k must be even, half on each side, got {k}")
    fraction("topology watts-strogatz: p", p)
    graph = connected("watts-strogatz", seed, drawn_by(networkx.watts_strogatz_graph, n, k, p), f"raise k = {k}")
    return replace(graph, positions=places.circle(n))


@topologies.register("barabasi-albert", aliases=("scale-free",))
def barabasi_albert(n: int, m: int = 2, seed: int = 0) -> Parts:
    """Nodes arrive one by one, each linking to m earlier ones that it prefers by their degree; always connected."""
    import networkx

    whole("topology barabasi-albert: n", n, 2)
    whole("topology barabasi-albert: m", m, 1, n - 1, "links of an arriving node")
    return drawn_by(networkx.barabasi_albert_graph, n, m)(random.Random(seed))


@topologies.register("random-geometric", aliases=("geometric",))
def random_geometric(n: int, radius: float = 0.4, seed: int = 0) -> Parts:
    """Nodes at random spots of the unit square, linked if closer than `radius`; redrawn until connected."""
    import networkx

    whole("topology random-geometric: n", n, 2)
    positive("topology random-geometric: radius", radius)
    return connected(
        "random-geometric",
        seed,
        drawn_by(networkx.random_geometric_graph, n, radius),
        f"raise radius = {radius}",
    )

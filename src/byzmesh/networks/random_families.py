"""Random topologies. Each is redrawn from one stream until it is connected, so a seed gives one connected graph."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from byzmesh.checks import fraction, positive, whole
from byzmesh.errors import ConfigError
from byzmesh.networks import positions as places
from byzmesh.networks.topologies import topologies

if TYPE_CHECKING:
    import networkx

DRAWS = 1000


def connected(
    topology: str, seed: int, draw: Callable[[random.Random], networkx.Graph[int]], way_out: str
) -> networkx.Graph[int]:
    """The first connected graph of a stream; an error after 1,000 draws without one."""
    import networkx

    stream = random.Random(seed)
    for _ in range(DRAWS):
        graph = draw(stream)
        if networkx.is_connected(graph):
            return graph
    raise ConfigError(f"topology {topology}: none of {DRAWS} draws was connected; {way_out}")


@topologies.register("erdos-renyi", aliases=("er", "gnp"))
def erdos_renyi(n: int, p: float = 0.7, seed: int = 0) -> networkx.Graph[int]:
    """Every two nodes are linked with probability p; redrawn until connected."""
    import networkx

    whole("topology erdos-renyi: n", n, 2)
    fraction("topology erdos-renyi: p", p, zero=False)
    return connected(
        "erdos-renyi", seed, lambda stream: networkx.fast_gnp_random_graph(n, p, seed=stream), f"raise p = {p}"
    )


@topologies.register("k-regular", aliases=("regular", "random-regular"))
def k_regular(n: int, k: int, seed: int = 0) -> networkx.Graph[int]:
    """A random graph in which every node has k neighbours; redrawn until connected."""
    import networkx

    whole("topology k-regular: n", n, 3)
    whole("topology k-regular: k", k, 2, n - 1, "neighbours of a node")
    if n * k % 2:
        raise ConfigError(f"topology k-regular: n * k must be even, got {n} * {k}; change one of them by 1")
    graph = connected(
        "k-regular", seed, lambda stream: networkx.random_regular_graph(k, n, seed=stream), f"raise k = {k}"
    )
    return places.put(graph, places.circle(n))


@topologies.register("watts-strogatz", aliases=("small-world",))
def watts_strogatz(n: int, k: int = 4, p: float = 0.1, seed: int = 0) -> networkx.Graph[int]:
    """A ring with links to the k nearest nodes, each rewired with probability p; redrawn until connected."""
    import networkx

    whole("topology watts-strogatz: n", n, 4)
    whole("topology watts-strogatz: k", k, 2, n - 1, "nearest nodes on the ring")
    if k % 2:
        raise ConfigError(f"topology watts-strogatz: k must be even, half on each side, got {k}")
    fraction("topology watts-strogatz: p", p)
    graph = connected(
        "watts-strogatz", seed, lambda stream: networkx.watts_strogatz_graph(n, k, p, seed=stream), f"raise k = {k}"
    )
    return places.put(graph, places.circle(n))


@topologies.register("barabasi-albert", aliases=("scale-free",))
def barabasi_albert(n: int, m: int = 2, seed: int = 0) -> networkx.Graph[int]:
    """Nodes arrive one by one, each linking to m earlier ones that it prefers by their degree; always connected."""
    import networkx

    whole("topology barabasi-albert: n", n, 2)
    whole("topology barabasi-albert: m", m, 1, n - 1, "links of an arriving node")
    return networkx.barabasi_albert_graph(n, m, seed=random.Random(seed))


@topologies.register("random-geometric", aliases=("geometric",))
def random_geometric(n: int, radius: float = 0.4, seed: int = 0) -> networkx.Graph[int]:
    """Nodes at random spots of the unit square, linked if closer than `radius`; redrawn until connected."""
    import networkx

    whole("topology random-geometric: n", n, 2)
    positive("topology random-geometric: radius", radius)
    return connected(
        "random-geometric",
        seed,
        lambda stream: networkx.random_geometric_graph(n, radius, seed=stream),
        f"raise radius = {radius}",
    )

"""Deterministic topologies: the two published families, the textbook graphs and the bottlenecks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import pi

import numpy as np

from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.networks import positions as places
from byzmesh.networks.adjacency import Parts, links_of_edges
from byzmesh.networks.topologies import topologies


def graph_of(
    n: int,
    edges: Iterable[tuple[int, int]],
    spots: list[places.Spot] | None = None,
    byzantine: Iterable[int] = (),
    *,
    directed: bool = False,
) -> Parts:
    """A graph on the nodes 0 to n - 1, with node i drawn at spots[i]; directed: an edge (a, b) means that a tells b."""
    ends = np.array(list(edges), np.int64).reshape(-1, 2)
    return Parts(links=links_of_edges(ends, n, directed), byzantine=list(byzantine), positions=spots)


@topologies.register("two-castle", aliases=("two-castles",))
def two_castle(k: int = 6) -> Parts:
    """Two complete castles of k nodes; i and j of different castles are linked unless they are twins, |i - j| = k."""
    whole("topology two-castle: k", k, 2)
    edges = [(i, j) for i, j in combinations(range(2 * k), 2) if j - i != k]
    return graph_of(2 * k, edges, places.two_circles(k))


@topologies.register("octopus")
def octopus(head: int = 6) -> Parts:
    """A complete head of `head` nodes, each with one arm: node head + i is linked only to i."""
    whole("topology octopus: head", head, 2)
    edges = [*combinations(range(head), 2), *((i, head + i) for i in range(head))]
    return graph_of(2 * head, edges, places.circle(head) + places.circle(head, radius=2.0))


@topologies.register("complete", aliases=("clique", "fully-connected"))
def complete(n: int) -> Parts:
    """Every two nodes are linked."""
    whole("topology complete: n", n, 2)
    return graph_of(n, combinations(range(n), 2), places.circle(n))


@topologies.register("ring", aliases=("cycle",))
def ring(n: int) -> Parts:
    """Every node is linked to the one before and the one after it."""
    whole("topology ring: n", n, 3)
    return graph_of(n, ((i, (i + 1) % n) for i in range(n)), places.circle(n))


@topologies.register("directed-ring", aliases=("directed-cycle",))
def directed_ring(n: int) -> Parts:
    """Every node hears only the one before it."""
    whole("topology directed-ring: n", n, 3)
    return graph_of(n, ((i, (i + 1) % n) for i in range(n)), places.circle(n), directed=True)


@topologies.register("exponential", aliases=("directed-exponential",))
def exponential(n: int) -> Parts:
    """Directed: every node hears those 1, 2, 4, ... places before it, the usual graph of push-sum."""
    whole("topology exponential: n", n, 3)
    jumps = [1 << power for power in range((n - 1).bit_length())]
    return graph_of(n, ((i, (i + jump) % n) for i in range(n) for jump in jumps), places.circle(n), directed=True)


@topologies.register("chain", aliases=("path", "line"))
def chain(n: int) -> Parts:
    """A ring without the link between the last node and the first."""
    whole("topology chain: n", n, 2)
    return graph_of(n, ((i, i + 1) for i in range(n - 1)), places.snake(n))


@topologies.register("star")
def star(n: int) -> Parts:
    """Node 0 is linked to all others, and they to nobody else."""
    whole("topology star: n", n, 2)
    return graph_of(n, ((0, i) for i in range(1, n)), [(0.0, 0.0), *places.circle(n - 1)])


@topologies.register("torus")
def torus(rows: int, columns: int) -> Parts:
    """A grid closed in both directions, 4-regular; node row * columns + column."""
    whole("topology torus: rows", rows, 3)
    whole("topology torus: columns", columns, 3)
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    right = [(row * columns + column, row * columns + (column + 1) % columns) for row, column in cells]
    down = [(row * columns + column, (row + 1) % rows * columns + column) for row, column in cells]
    return graph_of(rows * columns, right + down, places.bent_grid(rows, columns))


@topologies.register("binary-tree", aliases=("tree",))
def binary_tree(n: int) -> Parts:
    """A binary tree filled level by level: the parent of i is (i - 1) // 2."""
    whole("topology binary-tree: n", n, 2)
    return graph_of(n, ((i, (i - 1) // 2) for i in range(1, n)), places.tree(n))


@topologies.register("lollipop")
def lollipop(clique: int, tail: int) -> Parts:
    """A complete graph of `clique` nodes with a chain of `tail` nodes hanging from its last node."""
    whole("topology lollipop: clique", clique, 3)
    whole("topology lollipop: tail", tail, 1)
    edges = [*combinations(range(clique), 2), *((i, i + 1) for i in range(clique - 1, clique + tail - 1))]
    # The clique is turned so that its last node is the rightmost one, where the tail begins.
    head = places.circle(clique, start=-2 * pi / clique)
    step = 2.0 / clique
    stem = [(1.0 + step * (i + 1), 0.0) for i in range(tail)]
    return graph_of(clique + tail, edges, head + stem)


@topologies.register("dumbbell", aliases=("barbell", "two-cliques"))
def dumbbell(k: int, bridge: int = 0) -> Parts:
    """Two complete graphs of k nodes joined by a chain of `bridge` nodes (0: by one link).

    Nodes 0 to k - 1, the bridge k to k + bridge - 1, then the second clique; its ends are k - 1 and k + bridge.
    """
    whole("topology dumbbell: k", k, 2)
    whole("topology dumbbell: bridge", bridge, 0)
    second = k + bridge
    edges = [*combinations(range(k), 2), *combinations(range(second, second + k), 2)]
    edges += [(i, i + 1) for i in range(k - 1, second)]
    reach = 1.0 + (bridge + 1) * 0.3
    between = [(-reach + 1.0 + (i + 1) * 2 * (reach - 1.0) / (bridge + 1), 0.0) for i in range(bridge)]
    left = places.circle(k, -reach, start=-2 * pi / k)
    right = places.circle(k, reach, start=pi)
    return graph_of(second + k, edges, left + between + right)


@topologies.register("two-worlds")
def two_worlds(n: int, k: int = 1) -> Parts:
    """Two complete worlds of n / 2 nodes; every node has k links across: i to n/2 + (i + s) mod n/2, s = 0 to k - 1."""
    whole("topology two-worlds: n", n, 4)
    if n % 2:
        raise ConfigError(f"topology two-worlds: n must be even, two worlds of n / 2, got {n}; take {n + 1}")
    half = n // 2
    whole("topology two-worlds: k", k, 1, half, "links of a node into the other world")
    edges = [*combinations(range(half), 2), *combinations(range(half, n), 2)]
    edges += [(i, half + (i + shift) % half) for i in range(half) for shift in range(k)]
    return graph_of(n, edges, places.two_circles(half))

"""Detours: a local proof that the honest workers stay connected, whoever lies.

There is a detour around a node w if one of these holds, where at most m_x neighbours of x can lie.

1. Any two neighbours u, v of w are linked or have more than max(m_u, m_v) neighbours in common.
2. Whenever each x of a set A of neighbours of w is linked to at most m_x - 1 neighbours of w outside of A, all of those
   outside are linked to A.

If the graph is connected and has a detour around every node, no liars leave the honest workers in pieces. Take a path
between two honest workers with the fewest liars; let w be the first of them, after the honest u and before v. With the
first, u and v are linked, or one of their common neighbours is honest and replaces w. With the second, let A be u and
the honest neighbours of w that u reaches among them. The other neighbours of w that an x of A is linked to all lie, and
so does w: they are at most m_x - 1. So v is in A or linked to A, and A replaces w. Either way there was a path with
fewer liars.

The sets A are tried one by one, 2^d for d neighbours; above `MOST_NEIGHBOURS` only the first is tried.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.theory.question import Question
from byzmesh.types import Booleans, Integers

MOST_NEIGHBOURS = 16


def without_detour(question: Question) -> list[int]:
    """The nodes around which there is no detour.

    >>> from byzmesh.networks import network
    >>> from byzmesh.theory.question import ask
    >>> without_detour(ask(network("lollipop", clique=4, tail=2), 1))
    [3, 4]
    """
    network, close = question.network, close_pairs(question)
    bare = []
    for node in range(network.n):
        near = network.neighbours(node)
        if not close[np.ix_(near, near)].all() and (len(near) > MOST_NEIGHBOURS or gap(question, near) is not None):
            bare.append(node)
    return bare


def close_pairs(question: Question) -> Booleans:
    """(n, n) whether two nodes are linked or have more neighbours in common than can lie next to either."""
    links, most = question.network.adjacency, question.most
    common = links.astype(np.float64) @ links
    close: Booleans = links | (common > np.maximum.outer(most, most)) | np.eye(len(links), dtype=bool)
    return close


def gap(question: Question, near: Integers) -> Booleans | None:
    """(d, d) pairs of a node's neighbours of which one should be linked, since the second condition fails.

    None if it does not fail.
    """
    among = question.network.adjacency[np.ix_(near, near)]
    found = failing(among, question.most[near])
    if found == 0:
        return None
    inside = (found >> np.arange(len(near))) & 1 == 1
    apart = ~inside & ~(among & inside).any(axis=1)
    across: Booleans = apart[:, None] & inside[None, :]
    return across | across.T


@exact
def failing(links: Booleans, most: Integers) -> int:
    """The first set A, as bits, for which the second condition fails; 0 if there is none."""
    count = len(links)
    masks = np.zeros(count, np.int64)
    for i in range(count):
        for j in range(count):
            if links[i, j]:
                masks[i] |= 1 << j
    for inside in range(1, 1 << count):
        possible, reached = True, inside
        for x in range(count):
            if inside >> x & 1:
                outside, linked = masks[x] & ~inside, 0
                reached |= outside
                while outside:
                    outside &= outside - 1
                    linked += 1
                if linked > most[x] - 1:
                    possible = False
                    break
        if possible and reached != (1 << count) - 1:
            return inside
    return 0


def pieces(links: Booleans) -> list[Integers]:
    """The connected components of a graph, each by its nodes.

    >>> pieces(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool))
    [array([0, 1]), array([2])]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(csr_array(links), directed=False)
    return [np.flatnonzero(label == piece) for piece in range(count)]

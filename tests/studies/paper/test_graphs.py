"""The published graphs are the published graphs."""

from __future__ import annotations

import random

import networkx
import numpy as np
import pytest

from byzmesh.networks import network

LIARS = {2: 0, 4: 0, 6: 1, 7: 0, 8: 3, 10: 14}
"""Number of liars -> number of workers with h >= 1/3."""


def test_two_castle() -> None:
    net = network("paper/two-castle")
    assert (net.n, net.byzantine.tolist()) == (12, [7, 9])
    assert (net.adjacency == network("two-castle", k=6).adjacency).all()
    # The twins 1 and 3 of the liars have one lying neighbour, all others two.
    assert dict(zip(net.honest.tolist(), net.lying_neighbours.tolist())) == {
        0: 2, 1: 1, 2: 2, 3: 1, 4: 2, 5: 2, 6: 2, 8: 2, 10: 2, 11: 2,
    }  # fmt: skip


def test_two_castle_of_the_disagreement_example() -> None:
    net = network("paper/two-castle-3")
    assert (net.n, net.byzantine.size) == (6, 0)


def test_octopus() -> None:
    net = network("paper/octopus")
    assert (net.n, net.byzantine.tolist()) == (12, [6, 7])
    assert net.lying_neighbours.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_er_12() -> None:
    net = network("paper/er-12")
    larger = [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 11], [2, 4, 5, 6, 8, 10], [3, 4, 5, 6, 7, 8, 11], [4, 5, 7, 9, 11], [6, 8, 10],
        [6, 8, 9, 11], [7, 10, 11], [8, 9, 10, 11], [9, 10], [10, 11], [11], [],
    ]  # fmt: skip
    assert [[j for j in net.neighbours(i).tolist() if j > i] for i in range(12)] == larger
    assert net.byzantine.tolist() == [6, 7]


@pytest.mark.parametrize("liars", sorted(LIARS))
def test_er_20_regenerates(liars: int) -> None:
    stream = random.Random(300)
    while True:
        graph = networkx.fast_gnp_random_graph(20 + liars, 0.7, seed=stream)
        if networkx.is_connected(graph):
            break
    net = network(f"paper/er-20-b{liars}")
    assert (net.adjacency == networkx.to_numpy_array(graph).astype(bool)).all()
    assert net.byzantine.tolist() == sorted(stream.sample(list(graph.nodes), liars))
    assert (net.adjacency == network("erdos-renyi", n=20 + liars, p=0.7, seed=300).adjacency).all()


@pytest.mark.parametrize("liars", sorted(LIARS))
def test_er_20_workers_beyond_a_third(liars: int) -> None:
    net = network(f"paper/er-20-b{liars}")
    neighbour_weights = -np.sort(-net.layout.weight[:, 1:], axis=1)
    h = np.array([row[:f].sum() for row, f in zip(neighbour_weights, net.bounds("exact"))])
    assert (h >= 1 / 3 - 1e-12).sum() == LIARS[liars]
    assert net.honest_connected

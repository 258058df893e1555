"""Every topology's defining property, its checks, and how third parties add one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np
import pytest

from byzmesh.errors import ConfigError, UnknownName, UnknownOption
from byzmesh.networks import network
from byzmesh.networks.topologies import topologies

EXAMPLES: dict[str, dict[str, Any]] = {
    "barabasi-albert": {"n": 20, "m": 3},
    "binary-tree": {"n": 10},
    "chain": {"n": 7},
    "complete": {"n": 6},
    "dumbbell": {"k": 4, "bridge": 2},
    "erdos-renyi": {"n": 20, "p": 0.2},
    "k-regular": {"n": 20, "k": 5},
    "lollipop": {"clique": 5, "tail": 3},
    "octopus": {"head": 5},
    "random-geometric": {"n": 25, "radius": 0.35},
    "ring": {"n": 8},
    "star": {"n": 6},
    "directed-ring": {"n": 5},
    "exponential": {"n": 9},
    "k-in": {"n": 9, "k": 3},
    "torus": {"rows": 3, "columns": 5},
    "two-castle": {"k": 4},
    "two-worlds": {"n": 12, "k": 2},
    "watts-strogatz": {"n": 20, "k": 4, "p": 0.3},
}


def test_examples_cover_every_topology_but_the_published() -> None:
    assert {name for name in topologies.names() if not name.startswith("paper/")} == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_graphs_are_connected_without_liars_and_their_nodes_do_not_coincide(name: str) -> None:
    net = network(name, **EXAMPLES[name])
    assert net.honest_connected
    assert net.byzantine.size == 0
    assert net.name == name
    assert EXAMPLES[name].items() <= dict(net.parameters).items()
    if net.positions is not None:
        assert len(np.unique(net.positions.round(6), axis=0)) == net.n


@pytest.mark.parametrize(
    ("name", "degrees"),
    [
        ("binary-tree", [2, 3, 3, 3, 2, 1, 1, 1, 1, 1]),
        ("chain", [1, 2, 2, 2, 2, 2, 1]),
        ("complete", [5] * 6),
        ("dumbbell", [3, 3, 3, 4, 2, 2, 4, 3, 3, 3]),
        ("k-regular", [5] * 20),
        ("lollipop", [4, 4, 4, 4, 5, 2, 2, 1]),
        ("octopus", [5] * 5 + [1] * 5),
        ("ring", [2] * 8),
        ("star", [5, 1, 1, 1, 1, 1]),
        ("torus", [4] * 15),
        ("two-castle", [6] * 8),
        ("two-worlds", [7] * 12),
    ],
)
def test_degrees(name: str, degrees: list[int]) -> None:
    assert network(name, **EXAMPLES[name]).degree.tolist() == degrees


def test_two_castle_links_all_but_twins() -> None:
    adjacency = network("two-castle", k=5).adjacency
    for i in range(10):
        for j in range(10):
            assert adjacency[i, j] == (i != j and abs(i - j) != 5)


def test_octopus_arms_hang_from_their_head_node() -> None:
    net = network("octopus", head=4)
    assert [net.neighbours(4 + i).tolist() for i in range(4)] == [[0], [1], [2], [3]]
    assert net.adjacency[:4, :4].sum() == 12


def test_two_worlds_has_k_links_across_per_node() -> None:
    adjacency = network("two-worlds", n=10, k=3).adjacency
    assert (adjacency[:5, 5:].sum(axis=0) == 3).all() and (adjacency[:5, 5:].sum(axis=1) == 3).all()
    assert adjacency[:5, :5].sum() == adjacency[5:, 5:].sum() == 20


def test_dumbbell_without_a_bridge_has_one_link_between_the_cliques() -> None:
    adjacency = network("dumbbell", k=4).adjacency
    assert np.argwhere(adjacency[:4, 4:]).tolist() == [[3, 0]]


def test_torus_wraps_around() -> None:
    assert network("torus", rows=4, columns=3).neighbours(0).tolist() == [1, 2, 3, 9]


def test_barabasi_albert_has_m_links_per_arrival() -> None:
    assert network("barabasi-albert", n=20, m=3).degree.sum() == 2 * 3 * 17


def test_watts_strogatz_without_rewiring_is_a_ring_lattice() -> None:
    assert network("watts-strogatz", n=8, k=4, p=0).neighbours(0).tolist() == [1, 2, 6, 7]


def test_random_geometric_links_exactly_the_close_pairs() -> None:
    net = network("random-geometric", n=25, radius=0.35, seed=3)
    assert net.positions is not None
    distance = np.linalg.norm(net.positions[:, None] - net.positions[None], axis=2)
    assert (net.adjacency == ((distance <= 0.35) & ~np.eye(25, dtype=bool))).all()


@pytest.mark.parametrize("name", ["erdos-renyi", "k-regular", "watts-strogatz", "barabasi-albert", "random-geometric"])
def test_a_seed_names_one_graph(name: str) -> None:
    first, again, other = (network(name, **EXAMPLES[name], seed=seed).adjacency for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_erdos_renyi_is_redrawn_until_connected() -> None:
    for seed in range(20):
        assert network("erdos-renyi", n=12, p=0.2, seed=seed).honest_connected


def test_erdos_renyi_has_about_p_of_the_links() -> None:
    assert network("erdos-renyi", n=300, p=0.3).adjacency.mean() == pytest.approx(0.3, abs=0.015)
    assert network("erdos-renyi", n=7, p=1).degree.tolist() == [6] * 7


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("two-castle", {"k": 1}, "two-castle: k must be a whole number of at least 2, got 1"),
        ("two-castle", {"k": 2.5}, "got 2.5"),
        ("octopus", {"head": True}, "head must be a whole number"),
        ("ring", {"n": 2}, "at least 3"),
        ("erdos-renyi", {"n": 5, "p": 0}, r"p must be a number in \(0, 1\], got 0"),
        ("erdos-renyi", {"n": 5, "p": 1.2}, "got 1.2"),
        ("erdos-renyi", {"n": 60, "p": 0.001}, "none of 1000 draws was connected; raise p"),
        ("k-regular", {"n": 5, "k": 3}, "n [*] k must be even, got 5 [*] 3"),
        ("k-regular", {"n": 5, "k": 5}, "k must be a whole number from 2 to 4"),
        ("watts-strogatz", {"n": 10, "k": 3}, "k must be even"),
        ("watts-strogatz", {"n": 10, "k": 4, "p": -0.1}, r"\[0, 1\]"),
        ("barabasi-albert", {"n": 4, "m": 4}, "from 1 to 3"),
        ("random-geometric", {"n": 4, "radius": 0}, "radius must be a positive number"),
        ("two-worlds", {"n": 7}, "n must be even"),
        ("two-worlds", {"n": 8, "k": 5}, "from 1 to 4"),
        ("dumbbell", {"k": 3, "bridge": -1}, "bridge must be a whole number of at least 0"),
        ("torus", {"rows": 2, "columns": 5}, "rows"),
        ("lollipop", {"clique": 2, "tail": 5}, "clique"),
        ("ring", {"n": 5, "seed": "x"}, "seed must be a whole number"),
    ],
)
def test_parameters_are_checked(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        network(name, **options)


def test_unknown_names_and_options_name_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'two-castle'"):
        network("two-castel", k=3)
    with pytest.raises(UnknownOption, match="did you mean 'head'"):
        network("octopus", heads=3)
    with pytest.raises(ConfigError, match="ring needs the option 'n'"):
        network("ring")


@pytest.fixture
def own_topologies() -> Iterator[None]:
    with topologies.temporary():
        yield


@pytest.mark.usefixtures("own_topologies")
def test_a_third_party_topology_is_one_decorated_function() -> None:
    @topologies.register("wheel")
    def wheel(n: int) -> networkx.Graph[int]:
        """A hub joined to a ring."""
        graph: networkx.Graph[int] = networkx.wheel_graph(n)
        graph.nodes[0]["byzantine"] = True
        return graph

    net = network("wheel", n=5)
    assert net.degree.tolist() == [4, 3, 3, 3, 3]
    assert net.byzantine.tolist() == [0]
    assert network("wheel", n=5, byzantine="none").byzantine.tolist() == []
    assert network("wheel", n=5, byzantine=[2]).byzantine.tolist() == [2]


def test_a_thousand_workers_need_no_loop_over_pairs() -> None:
    net = network("k-regular", n=1000, k=10, byzantine=100)
    assert net.layout.sender.shape == (900, 11)
    assert net.degree.tolist() == [10] * 1000

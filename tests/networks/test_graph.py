"""Network: its properties, its constructors and the input it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError, WeakBound
from byzmesh.networks import Network, network

PAW = [(0, 1), (1, 2), (2, 0), (2, 3)]


def random_network(n: int, seed: int, liars: int) -> Network:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.4, 1)
    return Network.from_adjacency(upper | upper.T, byzantine=liars, seed=seed)


def test_what_a_network_knows_by_hand() -> None:
    net = Network.from_edges([*PAW, (3, 4)], byzantine=[3])
    assert net.n == 5
    assert net.honest.tolist() == [0, 1, 2, 4]
    assert net.degree.tolist() == [2, 2, 3, 2, 1]
    assert net.lying_neighbours.tolist() == [0, 0, 1, 1]
    assert not net.honest_connected
    assert net.with_byzantine([4]).honest_connected
    assert net.neighbours(3).tolist() == [2, 4]


def test_layout_by_hand() -> None:
    layout = Network.from_edges(PAW, byzantine=[1]).layout
    assert layout.receiver.tolist() == [0, 2, 3]
    assert layout.sender.tolist() == [[0, 1, 2, -1], [2, 0, 1, 3], [3, 2, -1, -1]]
    assert layout.degree.tolist() == [2, 3, 1]
    np.testing.assert_allclose(
        layout.weight, [[5 / 12, 1 / 3, 1 / 4, 0], [1 / 4, 1 / 4, 1 / 4, 1 / 4], [3 / 4, 1 / 4, 0, 0]], atol=1e-15
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.integers(0, 10_000), st.data())
def test_layout_agrees_with_the_matrices(n: int, seed: int, data: st.DataObject) -> None:
    net = random_network(n, seed, data.draw(st.integers(0, n - 1)))
    layout = net.layout
    assert layout.sender.shape[1] == 1 + net.degree[net.honest].max()
    for row, worker in enumerate(net.honest.tolist()):
        around = net.neighbours(worker).tolist()
        padding = layout.sender.shape[1] - 1 - len(around)
        assert layout.sender[row].tolist() == [worker, *around, *[-1] * padding]
        assert layout.weight[row].tolist() == [*net.mixing[worker, [worker, *around]], *[0.0] * padding]
        assert net.lying_neighbours[row] == len(set(around) & set(net.byzantine.tolist()))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 14), st.integers(0, 10_000), st.data())
def test_honest_connected_agrees_with_networkx(n: int, seed: int, data: st.DataObject) -> None:
    net = random_network(n, seed, data.draw(st.integers(0, n - 1)))
    honest = networkx.from_numpy_array(net.adjacency).subgraph(net.honest.tolist())
    assert net.honest_connected == networkx.is_connected(honest)


def test_honest_only_removes_liars_and_recomputes_weights() -> None:
    net = network("paper/two-castle", weights="equal")
    alone = net.honest_only()
    assert (alone.n, alone.byzantine.size, alone.weights) == (10, 0, "equal")
    assert (alone.adjacency == net.adjacency[np.ix_(net.honest, net.honest)]).all()
    np.testing.assert_allclose(alone.mixing.sum(axis=1), 1)
    assert alone.mixing[0, 0] == pytest.approx(1 / (1 + alone.degree[0]))
    assert alone.positions is not None and net.positions is not None
    assert (alone.positions == net.positions[net.honest]).all()


def test_honest_only_with_explicit_weights_gives_the_liars_share_to_own() -> None:
    weights = [[0.5, 0.2, 0.3], [0.2, 0.8, 0.0], [0.3, 0.0, 0.7]]
    net = Network.from_edges([(0, 1), (0, 2)], byzantine=[2], weights=weights)
    np.testing.assert_allclose(net.honest_only().mixing, [[0.8, 0.2], [0.2, 0.8]])


def test_with_weights_and_with_byzantine_leave_the_rest() -> None:
    net = network("paper/er-12")
    other = net.with_weights("lazy").with_byzantine("none")
    assert (other.weights, other.byzantine.size, other.name) == ("lazy", 0, "paper/er-12")
    assert other.honest.tolist() == list(range(12))
    assert net.weights == "metropolis-hastings" and net.byzantine.tolist() == [6, 7]
    np.testing.assert_allclose(other.mixing, (np.eye(12) + net.mixing) / 2, atol=1e-15)


def test_arrays_are_read_only_and_inputs_are_copied() -> None:
    adjacency = np.array([[0, 1], [1, 0]], bool)
    net = Network.from_adjacency(adjacency)
    adjacency[:] = False
    assert net.adjacency[0, 1]
    layout = net.layout
    for array in (net.adjacency, net.mixing, net.byzantine, net.honest, net.degree, layout.sender, layout.weight):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (0, [0, 0, 0]),
        (np.int32(2), [2, 2, 2]),
        ("exact", [1, 1, 0]),
        ("max", [1, 1, 1]),
        ([1, 2, 3], [1, 2, 3]),
        (np.array([4, 5, 6, 7]), [4, 6, 7]),
        ({0: 1, 2: 5, 3: 0}, [1, 5, 0]),
        ({0: 1, 1: 9, 2: 5, 3: 0}, [1, 5, 0]),
    ],
)
def test_bounds(f: Any, expected: list[int]) -> None:
    resolved = Network.from_edges(PAW, byzantine=[1]).bounds(f)
    assert resolved.dtype == np.int64
    assert resolved.tolist() == expected


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (-1, "at least 0, got -1 for worker 0"),
        ([0, 0, -2], "got -2 for worker 3"),
        (1.0, "whole number of at least 0, or one per worker, got 1.0"),
        (True, "got True"),
        (None, "got None"),
        ([1, 2], r"3 honest workers or 4 nodes, got shape \(2,\)"),
        ([[1], [1, 2]], "one whole number per worker"),
        ("exakt", "did you mean 'exact'"),
        ({0: 1}, "add worker 2"),
        ({7: 1}, "names node 7, but nodes are numbered 0 to 3"),
        ({0: 0.5, 2: 1, 3: 1}, "whole numbers"),
        ({0: -1, 2: 1, 3: 1}, "got -1 for worker 0"),
    ],
)
def test_bounds_are_checked(f: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.from_edges(PAW, byzantine=[1]).bounds(f)


def test_exact_bounds_are_the_callers_own_copy() -> None:
    net = Network.from_edges(PAW, byzantine=[1])
    net.bounds("exact")[:] = 7
    assert net.lying_neighbours.tolist() == [1, 1, 0]


def test_from_networkx_sorts_labels_naturally() -> None:
    graph = networkx.Graph([("n10", "n2"), ("n2", "n1")])
    net = Network.from_networkx(graph, byzantine=["n10"])
    assert net.byzantine.tolist() == [2]
    assert net.neighbours(1).tolist() == [0, 2]


def test_from_networkx_takes_tuples_attributes_and_positions() -> None:
    graph = networkx.grid_2d_graph(2, 2)
    graph.nodes[(1, 0)]["byzantine"] = True
    for row, column in graph.nodes:
        graph.nodes[(row, column)]["pos"] = (column, row)
    net = Network.from_networkx(graph)
    assert net.byzantine.tolist() == [2]
    assert net.positions is not None and net.positions.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert Network.from_networkx(graph, byzantine=1, seed=5).byzantine.size == 1


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (networkx.MultiDiGraph([(0, 1)]), {}, "multigraph"),
        (networkx.MultiGraph([(0, 1)]), {}, r"multigraph; pass networkx.Graph\(graph\)"),
        (networkx.Graph([(0, 0), (0, 1)]), {}, "node 0 is linked to itself"),
        (networkx.Graph(), {}, "no nodes"),
        (networkx.Graph([(0, "a")]), {}, "cannot be sorted"),
        (networkx.Graph([(0, 1)]), {"byzantine": ["z"]}, "'z', which the graph does not have"),
    ],
)
def test_from_networkx_refuses(graph: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.from_networkx(graph, **options)


def test_a_byzantine_attribute_that_is_no_truth_value_is_refused() -> None:
    graph = networkx.Graph([(0, 1)])
    graph.nodes[1]["byzantine"] = "False"
    with pytest.raises(ConfigError, match="node 1 has the attribute byzantine='False'"):
        Network.from_networkx(graph)


@pytest.mark.parametrize(
    ("edges", "n", "message"),
    [
        ([(0, 2)], None, "no edge names node 1"),
        ([(1, 2)], None, "no edge names node 0; number the nodes from 0"),
        ([(0, 5)], 3, "names node 5, but nodes are numbered 0 to 2"),
        ([(0, 0), (0, 1)], None, "itself"),
        ([(0, -1)], None, "pair of node ids"),
        ([(0, 1, 2)], None, "pair of node ids"),
        ([], None, "edges is empty"),
        ([], 0, "n must be a whole number of at least 1"),
    ],
)
def test_from_edges_refuses(edges: Any, n: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.from_edges(edges, n)


def test_an_edge_given_twice_is_one_edge() -> None:
    assert Network.from_edges([(0, 1), (1, 0), (0, 1)]).degree.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        ([[0, 1], [0, 0]], "0-1 is linked in one direction only"),
        ([[1, 0], [0, 0]], "itself"),
        ([[0, 0.5], [0.5, 0]], "only 0 and 1; give edge weights as weights="),
        ([[0, 1, 0], [1, 0, 0]], r"shape \(2, 3\)"),
        ([[0, 1], [1]], "different lengths"),
        ([], "n >= 1"),
        ([["a"]], "only 0 and 1"),
    ],
)
def test_from_adjacency_refuses(adjacency: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.from_adjacency(adjacency)


def test_positions_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"\(2, 2\) array of finite numbers, got shape \(1, 2\)"):
        Network.from_adjacency([[0, 1], [1, 0]], positions=[[0, 0]])


@pytest.mark.parametrize("worker", [4, -1, 1.0, True])
def test_neighbours_of_no_node(worker: Any) -> None:
    with pytest.raises(ConfigError, match="numbered 0 to 3"):
        Network.from_edges(PAW).neighbours(worker)


def test_tolerable_is_the_most_that_weighs_less_than_a_third() -> None:
    net = Network.from_edges([(a, b) for a in range(8) for b in range(a)])
    assert net.bounds("tolerable").tolist() == [2] * 8  # 2/8 < 1/3 <= 3/8
    assert net.bounds("tolerable", lambda neighbours: 1).tolist() == [1] * 8  # the rule allows no more
    weight = net.layout.weight[0, 1:]
    assert weight[:2].sum() < 1 / 3 <= weight[:3].sum()


def test_a_sum_of_exactly_a_third_is_not_tolerable() -> None:
    net = Network.from_edges([(a, b) for a in range(6) for b in range(a)])
    assert net.bounds("tolerable").tolist() == [1] * 6  # 2/6 is not below 1/3


def test_tolerable_leaves_a_neighbour() -> None:
    arms = Network.from_spec({"name": "octopus", "head": 6})
    bounds = arms.bounds("tolerable")
    assert bounds[arms.degree == 1].tolist() == [0] * 6  # an arm's only neighbour weighs 1/7
    assert (bounds[arms.degree > 1] > 0).all()


def test_where_weights_leave_no_defence_it_is_said() -> None:
    """One line that names the workers, few of them: who reads f: tolerable or b feels safe."""
    ring, chain = network("ring", n=6, byzantine=[2]), network("chain", n=4)
    none, half = (lambda neighbours: 0), (lambda neighbours: neighbours // 2)
    said = r"f tolerable is 0, and every lie is taken, at workers 0, 1, 3, 4, \.\.\. \(5 of 5\); give them more"
    with pytest.warns(WeakBound, match=said):
        assert ring.bounds("tolerable", half).tolist() == [0] * 5
    with pytest.warns(WeakBound, match=r"b lets more .* resists fewer, at workers 0, 1, 3, 4, .* or give a smaller b"):
        assert ring.bounds({"weight": 0.34}, none).tolist() == [0] * 5
    with pytest.warns(WeakBound, match=r"at workers 0, 3 \(2 of 4\)"):
        assert chain.bounds({"weight": 0.34}, half).tolist() == [0, 1, 1, 0]
    with pytest.warns(
        WeakBound, match=r"b lets lies weigh half or more, which no rule resists, at workers 0, 1, 2, 3,"
    ):
        network("complete", n=5).bounds({"weight": 0.5}, lambda neighbours: neighbours)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ring.bounds({"weight": 0.34}, half).tolist() == [1] * 5, "the weights decide"
        assert ring.bounds({"weight": 0.2}, none).tolist() == [0] * 5, "no neighbour weighs so little"
        ring.bounds("tolerable"), ring.bounds({"weight": 0.99}, lambda neighbours: 1 << 30)  # no rule, or one without f


@pytest.mark.parametrize(("b", "expected"), [(0.0, 0), (0.1, 0), (0.125, 1), (0.375, 3), (0.99, 6)])
def test_a_bound_on_the_weight_counts_the_lightest(b: float, expected: int) -> None:
    net = Network.from_edges([(a, b) for a in range(8) for b in range(a)])
    assert net.bounds({"weight": b}).tolist() == [expected] * 8
    told = net.weight_bounds({"weight": b})
    assert told is not None and told.tolist() == [b] * 8


@pytest.mark.parametrize("b", [-0.1, 1.0, "half", [0.1], True])
def test_bounds_on_the_weight_are_checked(b: Any) -> None:
    with pytest.raises(ConfigError, match=r"b must be a weight of at least 0 and below 1.*\(3\), got"):
        Network.from_edges(PAW, byzantine=[1]).bounds({"weight": b})

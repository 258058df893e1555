"""Sparse rows against dense matrices: links, weights, layouts, blocks and sums, on random networks."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from byzmesh import sparse
from byzmesh.errors import ConfigError
from byzmesh.networks import Links, Network, network, schemes
from byzmesh.networks.random_families import _paired
from byzmesh.sparse import row_sums, spans
from tests.networks.oracles import dense_weights

SEEDS = st.integers(0, 10_000)


def drawn(n: int, seed: int) -> np.ndarray:
    """(n, n) a random directed graph without loops."""
    return (np.random.default_rng(seed).random((n, n)) < 0.3) & ~np.eye(n, dtype=bool)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 15), SEEDS)
def test_links_are_the_rows_of_the_matrix(n: int, seed: int) -> None:
    matrix = drawn(n, seed)
    order = np.random.default_rng(seed).permutation(int(matrix.sum()))
    receiver, sender = (ends[order] for ends in np.nonzero(matrix))
    links = Links.of_pairs([*receiver, *receiver[:2]], [*sender, *sender[:2]], n)
    assert (links.dense() == matrix).all()
    assert links.degree.tolist() == matrix.sum(axis=1).tolist()
    assert [links.of(worker).tolist() for worker in range(n)] == [np.flatnonzero(row).tolist() for row in matrix]
    chosen = np.random.default_rng(seed).random(n) < 0.5
    assert links.count(chosen).tolist() == matrix[:, chosen].sum(axis=1).tolist()
    rows, columns = np.indices((n, n)).reshape(2, -1)
    found = links.find(rows, columns)
    assert ((found >= 0) == matrix.ravel()).all()
    assert (links.sender[found[found >= 0]] == columns[found >= 0]).all()
    assert ((links.back >= 0) == matrix.T[links.receiver, links.sender]).all()
    assert links.both_ways().tolist() == np.argwhere(np.triu(matrix & matrix.T)).tolist()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 15), SEEDS)
def test_blocks_and_reach(n: int, seed: int) -> None:
    matrix = drawn(n, seed)
    receiver, sender = np.nonzero(matrix)
    links = Links.of_pairs(receiver, sender, n)
    nodes = np.flatnonzero(np.random.default_rng(seed).random(n) < 0.6)
    value, own = np.random.default_rng(seed).random(len(links.sender)), np.random.default_rng(1).random(n)
    inner, kept = links.among(nodes)
    assert (inner.dense() == matrix[np.ix_(nodes, nodes)]).all()
    whole = links.matrix(value, own).toarray()
    np.testing.assert_array_equal(inner.matrix(value[kept], own[nodes]).toarray(), whole[np.ix_(nodes, nodes)])
    graph = networkx.from_numpy_array(matrix, create_using=networkx.DiGraph)
    assert set(np.flatnonzero(links.reach()).tolist()) == {0} | networkx.descendants(graph, 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), SEEDS, st.sampled_from(["metropolis-hastings", "equal", "max-degree", "lazy"]))
def test_weights_equal_those_of_the_matrix_bit_for_bit(n: int, seed: int, scheme: str) -> None:
    upper = np.triu(drawn(n, seed))
    links = upper | upper.T
    net = Network.from_adjacency(links, weights=scheme, byzantine=n // 3, seed=seed)
    np.testing.assert_array_equal(net.mixing, dense_weights(links, scheme))
    block = net.mixing[np.ix_(net.honest, net.byzantine)]
    np.testing.assert_array_equal(net.lying_weight, block.sum(axis=1))
    np.testing.assert_array_equal(net.honest_mixing, net.sparse_mixing(net.honest).toarray())
    assert net.neighbour_weights(0).tolist() == net.mixing[0, net.neighbours(0)].tolist()


def test_sums_of_large_matrices_are_those_of_small_ones_up_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    row, column = np.nonzero(drawn(60, 3))
    value = np.random.default_rng(0).random(len(row))
    small = row_sums(row, column, value, (60, 60))
    monkeypatch.setattr(sparse, "DENSE", 10)
    np.testing.assert_allclose(row_sums(row, column, value, (60, 60)), small, rtol=1e-14)


def test_spans_of_empty_rows() -> None:
    assert spans(np.array([3, 9, 0]), np.array([0, 2, 0])).tolist() == [9, 10]
    assert spans(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


def test_scipy_matrices_are_links_and_weights() -> None:
    net = network("paper/er-12")
    given_again = Network.from_adjacency(csr_array(net.adjacency), weights=csr_array(net.mixing))
    np.testing.assert_array_equal(given_again.adjacency, net.adjacency)
    np.testing.assert_array_equal(given_again.mixing, net.mixing)
    assert given_again.weights == "explicit"
    with pytest.raises(ConfigError, match="only 0 and 1"):
        Network.from_adjacency(csr_array(2 * net.adjacency))
    wrong = net.mixing.copy()
    wrong[0, 0] += 0.1
    with pytest.raises(ConfigError, match="row 0 sums to"):
        net.with_weights(csr_array(wrong))


@pytest.mark.parametrize(("n", "k", "seed"), [(20, 5, 0), (20, 5, 1), (30, 20, 2), (9, 8, 3), (12, 10, 4), (200, 4, 5)])
def test_a_regular_graph_is_the_one_that_networkx_draws(n: int, k: int, seed: int) -> None:
    wanted = networkx.random_regular_graph(k, n, seed=random.Random(seed))
    stream, ends = random.Random(seed), None
    while ends is None:
        ends = _paired(n, k, stream)
    assert {tuple(pair) for pair in ends.tolist()} == {(min(pair), max(pair)) for pair in wanted.edges()}


N = 20_000


def test_a_network_of_20_000_nodes_never_allocates_a_matrix(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        net = network("k-regular", n=N, k=6, byzantine=1000)
        assert net.layout.sender.shape == (N - 1000, 7)
        assert net.lying_weight.shape == (N - 1000,) and net.honest_connected
        alone = net.honest_only()
        for scheme in ("equal", "lazy", "max-degree"):
            net.with_weights(scheme)
        for suffix in (".json", ".edges"):
            assert (Network.from_file(net.save(tmp_path / f"net{suffix}")).links.sender == net.links.sender).all()
        repr(alone)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < N * N / 4, f"{peak / 1e6:.0f} MB; a matrix of bits would be {N * N / 8e6:.0f} MB"


@pytest.mark.parametrize(
    "ask",
    [
        lambda net: net.adjacency,
        lambda net: net.mixing,
        lambda net: net.honest_mixing,
        lambda net: net.save("net.csv"),
    ],
)
def test_a_large_network_refuses_dense_matrices_and_says_the_way_out(ask: Any) -> None:
    net = network("ring", n=5000)
    with pytest.raises(ConfigError, match=r"at most 4096 nodes, got n = 5000; use network\.links"):
        ask(net)


def test_a_third_party_scheme_takes_a_matrix_or_links() -> None:
    with schemes.temporary():

        @schemes.register("of-matrix")
        def of_matrix(adjacency: np.ndarray) -> np.ndarray:
            """Half of the weight on its own model."""
            return np.asarray(adjacency / adjacency.sum(axis=1, keepdims=True) / 2 + np.eye(len(adjacency)) / 2)

        @schemes.register("of-links")
        def of_links(links: Links) -> np.ndarray:
            """Half of the weight on its own model."""
            return 0.5 / links.degree[links.receiver]

        @schemes.register("too-much")
        def too_much(adjacency: np.ndarray) -> np.ndarray:
            """Rows that sum to more than 1."""
            return np.asarray(np.eye(len(adjacency)) + adjacency)

        one, other = (network("star", n=5, weights=name) for name in ("of-matrix", "of-links"))
        np.testing.assert_allclose(one.mixing, other.mixing, rtol=1e-15)
        with pytest.raises(ConfigError, match="row 0 sums to 5"):
            network("star", n=5, weights="too-much")
        assert network("ring", n=5000, weights="of-links").own_weight.tolist() == [0.5] * 5000
        with pytest.raises(ConfigError, match="weight scheme of-matrix: the adjacency is an"):
            network("ring", n=5000, weights="of-matrix")

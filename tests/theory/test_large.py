"""What certificates compute by sparse rows and Lanczos' method on large networks, against dense matrices."""

from __future__ import annotations

import tracemalloc
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.networks import Network, network, spectrum
from byzmesh.rules.aggregate import rule
from byzmesh.theory import connectivity as cuts
from byzmesh.theory import consensus, mixing
from byzmesh.theory.certify import certify
from byzmesh.theory.question import ask

NETWORKS: list[dict[str, Any]] = [
    {"name": "k-regular", "n": 60, "k": 6, "byzantine": 5},
    {"name": "erdos-renyi", "n": 50, "p": 0.2, "byzantine": 4, "weights": "equal"},
    {"name": "barabasi-albert", "n": 60, "m": 3, "byzantine": 3},
    {"name": "torus", "rows": 6, "columns": 8, "byzantine": 2, "weights": "lazy"},
    {"name": "chain", "n": 40, "weights": "best-constant"},
    {"name": "ring", "n": 400},
]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every network count as large."""
    for module in (spectrum, mixing, consensus):
        monkeypatch.setattr(module, "DIRECT", 1)


@pytest.mark.parametrize("spec", NETWORKS, ids=lambda spec: str(spec["name"]))
@pytest.mark.parametrize("form", sorted(mixing.MATRICES))
def test_sparse_numbers_equal_dense_ones(spec: dict[str, Any], form: str, request: pytest.FixtureRequest) -> None:
    net = network(spec)
    bound = np.random.default_rng(0).uniform(0.1, 2.0, len(net.honest))
    question = ask(net, None if len(net.byzantine) else 1)

    def numbers() -> dict[str, Any]:
        matrix = mixing.MATRICES[form](net)
        low, high = spectrum.extreme_eigenvalues(spectrum.laplacian(matrix))
        return {
            "mu": (low, high),
            "rate": mixing.mixing_rate(matrix),
            "chi2": mixing.chi2(matrix),
            "doubly": mixing.doubly_stochastic(matrix),
            "perron": mixing.perron(matrix),
            "deviation": consensus.deviation(question, matrix, bound),
            "second": spectrum.second_eigenvalue(matrix),
        }

    small = numbers()
    request.getfixturevalue("large")
    for name, value in numbers().items():
        if value is None:
            assert small[name] is None or (spec["name"], form) == ("chain", "equal"), name
        else:
            np.testing.assert_allclose(value, small[name], rtol=1e-5, atol=3e-6, err_msg=name)


@pytest.mark.usefixtures("large")
def test_the_fiedler_vector_of_a_large_network_splits_it_where_it_is_thin() -> None:
    net = network("dumbbell", k=30, bridge=1)
    vector = spectrum.fiedler_vector(net.sparse_mixing())
    assert len({bool(value > 0) for value in vector[:30]}) == 1
    assert np.linalg.norm(vector) == pytest.approx(1.0) and vector[np.abs(vector).argmax()] > 0
    assert vector[:30].mean() * vector[31:].mean() < 0


@settings(max_examples=80, deadline=None)
@given(st.integers(3, 9), st.integers(0, 10_000), st.integers(0, 3), st.floats(0.2, 0.95))
def test_links_called_rigid_are_cut_by_no_placement(n: int, seed: int, f: int, p: float) -> None:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < p, 1)
    net = Network.from_adjacency(upper | upper.T)
    question = ask(net, f)
    if cuts._rigid(question) is None:
        return
    graph = networkx.from_numpy_array(net.adjacency)
    for chosen in range(1, 2**n - 1):
        liars = [node for node in range(n) if chosen >> node & 1]
        if question.admits(liars):
            assert networkx.is_connected(graph.subgraph(set(range(n)) - set(liars))), liars


def test_rigid_links_are_found() -> None:
    assert cuts._rigid(ask(network("complete", n=9), 4)) is not None
    assert cuts._rigid(ask(network("k-regular", n=60, k=10), 2)) is not None
    assert cuts._rigid(ask(network("dumbbell", k=8, bridge=1), 1)) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10), st.integers(0, 10_000), st.one_of(st.none(), st.integers(0, 2)))
def test_who_may_lie_alone_agrees_with_the_definition(n: int, seed: int, total: int | None) -> None:
    draw = np.random.default_rng(seed)
    upper = np.triu(draw.random((n, n)) < 0.4, 1)
    net = Network.from_adjacency(upper | upper.T)
    question = ask(net, draw.integers(0, 3, n), None if total is None else min(total, n - 1))
    assert question.alone.tolist() == [node for node in range(n) if question.admits([node])]


N = 20_000


@pytest.mark.parametrize("anywhere", [False, True])
def test_a_certificate_of_20_000_nodes_never_allocates_a_matrix(anywhere: bool) -> None:
    net = network("k-regular", n=N, k=6, byzantine="none" if anywhere else 500)
    tracemalloc.start()
    try:
        told = certify(net, "ios", 1 if anywhere else None, guarantee="fair", rho=1e6)
        text = str(told)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told.honest_connected
    assert told.rate is not None and 0.0 < told.rate < 1.0 and told.doubly_stochastic
    assert len(text) < 5000, "thousands of liars are not listed"
    assert peak < N * N / 4, f"{peak / 1e6:.0f} MB; a matrix of bits would be {N * N / 8e6:.0f} MB"


def test_lambda_of_a_large_regular_graph_is_that_of_its_eigenvalues() -> None:
    net = network("k-regular", n=1500, k=8)
    dense = np.linalg.eigvalsh(net.mixing)
    second = max(dense[-2], -dense[0])
    told = mixing.virtual_mixing(net, rule("ios")).rate
    assert told <= 1.0 - second**2 and told == pytest.approx(1.0 - second**2, abs=1e-5)

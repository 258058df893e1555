"""Virtual mixing matrices and what is computed from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import rule
from byzmesh.theory.mixing import (
    chi2,
    doubly_stochastic,
    mixing_rate,
    perron,
    rho_star,
    row_stochastic,
    strongly_connected,
    virtual_mixing,
)


def test_path_with_a_liar_by_hand() -> None:
    """0 - 1 - 2 - 3 with 3 lying: Metropolis-Hastings weights 1/3, the liar's third goes to worker 2."""
    net = Network.from_edges([(0, 1), (1, 2), (2, 3)], byzantine=[3])
    expected = np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3
    np.testing.assert_allclose(virtual_mixing(net, rule("ios")).matrix.toarray(), expected)
    equal = np.array([[1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 2, 1 / 2]])
    np.testing.assert_allclose(virtual_mixing(net, rule("trimean")).matrix.toarray(), equal)
    assert chi2(equal) == pytest.approx((2 * (1 / 6) ** 2 + (1 / 3) ** 2) / 3)
    # eigenvalues of the symmetric W are 1, 2/3, 0
    assert mixing_rate(expected) == pytest.approx(1 - (2 / 3) ** 2)
    vector = perron(equal)
    assert vector is not None
    np.testing.assert_allclose(vector, np.array([2, 3, 2]) / 7)


@pytest.mark.parametrize(
    ("name", "rate"), [("paper/two-castle", 0.926), ("paper/er-12", 0.727), ("paper/octopus", 0.225)]
)
def test_lambda_of_the_published_graphs(name: str, rate: float) -> None:
    assert round(mixing_rate(virtual_mixing(network(name), rule("ios")).matrix), 3) == rate


def test_faba_is_not_doubly_stochastic_on_the_published_two_castle_graph() -> None:
    matrix = virtual_mixing(network("paper/two-castle"), rule("faba")).matrix
    assert not doubly_stochastic(matrix)
    assert round(chi2(matrix), 4) == 0.0020


def test_weimean_without_liars_is_its_weights() -> None:
    net = network("paper/two-castle-3")
    np.testing.assert_allclose(virtual_mixing(net, rule("weimean")).matrix.toarray(), net.mixing)


def test_every_table_1_rule_has_a_theory() -> None:
    net = network("paper/er-12")
    for name in ("CooMed", "GeoMed", "Krum", "CC", "FABA", "TriMean"):
        found = virtual_mixing(net, rule(name))
        assert (found.form, found.source) == ("equal", "theory")
    for name in ("IOS", "SCC", "WeiMean"):
        found = virtual_mixing(net, rule(name))
        assert (found.form, found.source) == ("to-own", "theory")
    assert virtual_mixing(net, rule("MDA")).source == "convention"
    np.testing.assert_array_equal(virtual_mixing(net, rule("NoComm")).matrix.toarray(), np.eye(10))


def test_no_communication_never_mixes() -> None:
    assert mixing_rate(np.eye(4)) == 0.0
    assert not strongly_connected(np.eye(4))
    assert perron(np.eye(4)) is None


def test_one_round_of_a_complete_graph_is_enough() -> None:
    matrix = np.full((5, 5), 0.2)
    assert mixing_rate(matrix) == pytest.approx(1.0)
    assert rho_star(1.0, 4) == pytest.approx(1 / 16)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.integers(0, 10**6), st.sampled_from(["mh", "lazy", "max-degree", "equal"]))
def test_invariants(n: int, seed: int, weights: str) -> None:
    draw = np.random.default_rng(seed)
    links = np.triu(draw.random((n, n)) < 0.6, 1)
    links |= links.T
    liars = draw.choice(n, draw.integers(0, n - 1), replace=False)
    net = Network.from_adjacency(links, byzantine=liars.tolist(), weights=weights)
    for name in ("ios", "faba", "nocomm"):
        matrix = virtual_mixing(net, rule(name)).matrix
        assert row_stochastic(matrix)
        assert (chi2(matrix) < 1e-18) == doubly_stochastic(matrix)
        assert mixing_rate(matrix) <= 1.0
        vector = perron(matrix)
        if vector is not None:
            np.testing.assert_allclose(vector @ matrix, vector, atol=1e-12)
            assert vector.min() > 0.0
            assert vector.sum() == pytest.approx(1.0)
    if weights != "equal":
        assert doubly_stochastic(virtual_mixing(net, rule("ios")).matrix)

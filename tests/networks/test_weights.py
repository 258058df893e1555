"""Mixing weights: hand-computed rows, stochasticity on every topology, checks of explicit matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.networks import Network, network, schemes
from byzmesh.networks import second_eigenvalue as second

# 0-1, 1-2, 2-0, 2-3: degrees 2, 2, 3, 1
PAW = [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]


def mixing(scheme: str) -> np.ndarray:
    """W' of the paw graph."""
    return Network.from_adjacency(PAW, weights=scheme).mixing


def test_metropolis_hastings_by_hand() -> None:
    expected = [
        [5 / 12, 1 / 3, 1 / 4, 0],
        [1 / 3, 5 / 12, 1 / 4, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4],
        [0, 0, 1 / 4, 3 / 4],
    ]
    np.testing.assert_allclose(mixing("metropolis-hastings"), expected, atol=1e-15)


def test_equal_by_hand() -> None:
    expected = [[1 / 3, 1 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4, [0, 0, 1 / 2, 1 / 2]]
    np.testing.assert_allclose(mixing("equal"), expected, atol=1e-15)


def test_max_degree_by_hand() -> None:
    expected = [
        [1 / 2, 1 / 4, 1 / 4, 0],
        [1 / 4, 1 / 2, 1 / 4, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4],
        [0, 0, 1 / 4, 3 / 4],
    ]
    np.testing.assert_allclose(mixing("max-degree"), expected, atol=1e-15)


def test_lazy_is_half_way_to_identity() -> None:
    np.testing.assert_allclose(mixing("lazy"), (np.eye(4) + mixing("metropolis-hastings")) / 2, atol=1e-15)
    assert np.linalg.eigvalsh(mixing("lazy")).min() >= 0


def test_best_constant_on_a_ring_is_two_over_the_sum_of_the_extreme_eigenvalues() -> None:
    # Laplacian of the 4-ring: 0, 2, 2, 4, so alpha = 2 / (2 + 4) = 1/3 < 1/2.
    np.testing.assert_allclose(network("ring", n=4, weights="best-constant").mixing[0], [1 / 3, 1 / 3, 0, 1 / 3])


def test_best_constant_on_a_star_stops_where_own_weights_would_turn_negative() -> None:
    # mu_2 = 1, mu_n = 6: the unconstrained 2/7 would put 1 - 10/7 < 0 on the centre.
    star = network("star", n=6, weights="best-constant").mixing
    np.testing.assert_allclose(star[0], [0, 0.2, 0.2, 0.2, 0.2, 0.2], atol=1e-15)


@pytest.mark.parametrize(("name", "options"), [("ring", {"n": 9}), ("star", {"n": 7}), ("paper/er-12", {})])
def test_no_other_nonnegative_constant_mixes_faster(name: str, options: dict[str, Any]) -> None:
    adjacency = network(name, **options).adjacency
    best = second(network(name, **options, weights="best-constant").mixing)
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency.astype(float)
    for alpha in np.linspace(0.01, 1.0, 50) / adjacency.sum(axis=1).max():
        assert second(np.eye(len(adjacency)) - alpha * laplacian) >= best - 1e-12


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10_000), st.sampled_from(schemes.names()))
def test_every_scheme_is_stochastic_and_keeps_to_the_edges(n: int, seed: int, scheme: str) -> None:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.4, 1)
    net = Network.from_adjacency(upper | upper.T, weights=scheme)
    assert net.weights == scheme
    assert (net.mixing >= 0).all()
    np.testing.assert_allclose(net.mixing.sum(axis=1), 1.0, atol=1e-14)
    assert (net.mixing[~net.adjacency & ~np.eye(n, dtype=bool)] == 0).all()
    assert (net.mixing[net.adjacency] > 0).all()
    if scheme != "equal":
        np.testing.assert_allclose(net.mixing, net.mixing.T, atol=1e-15)


def test_a_graph_without_edges_keeps_all_weight_on_own() -> None:
    for scheme in schemes.names():
        np.testing.assert_array_equal(Network.from_edges([], n=3, weights=scheme).mixing, np.eye(3))


def test_names_have_aliases_and_near_misses() -> None:
    assert network("ring", n=4, weights="MH").weights == "metropolis-hastings"
    with pytest.raises(UnknownName, match="did you mean 'equal'"):
        network("ring", n=4, weights="equl")


def test_explicit_weights_are_copied_and_named() -> None:
    given_weights = np.array([[0.9, 0.1], [0.3, 0.7]])
    net = Network.from_edges([(0, 1)], weights=given_weights)
    given_weights[:] = 0
    assert net.weights == "explicit"
    np.testing.assert_array_equal(net.mixing, [[0.9, 0.1], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1.0, 0.0]], r"shape \(3, 3\)"),
        ([[1.1, -0.1, 0], [0, 1, 0], [0, 0, 1]], r"not negative, got -0.1 at \(0, 1\)"),
        ([[np.nan, 0, 0], [0, 1, 0], [0, 0, 1]], "finite"),
        ([[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]], r"0 where there is no edge, got 0.5 at \(0, 2\)"),
        ([[1, 0, 0], [0, 0.9, 0], [0, 0, 1]], "row 1 sums to 0.9"),
        ([["a", "b"]], "scheme's name or an"),
        (3, r"shape \(3, 3\)"),
    ],
)
def test_explicit_weights_are_checked(weights: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.from_edges([(0, 1), (1, 2)], weights=weights)

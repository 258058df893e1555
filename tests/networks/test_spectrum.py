"""Spectra against closed forms and the facts known of the published graphs."""

from __future__ import annotations

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import (
    Network,
    algebraic_connectivity,
    fiedler_vector,
    laplacian,
    network,
    second_eigenvalue,
    spectral_gap,
)


def test_ring_has_the_cosine_spectrum() -> None:
    # Metropolis-Hastings on a ring: eigenvalues (1 + 2 cos(2 pi k / n)) / 3.
    net = network("ring", n=10)
    expected = (1 + 2 * np.cos(2 * np.pi / 10)) / 3
    assert second_eigenvalue(net.mixing) == pytest.approx(expected, abs=1e-12)
    assert spectral_gap(net.mixing) == pytest.approx(1 - expected, abs=1e-12)
    assert algebraic_connectivity(net.mixing) == pytest.approx(1 - expected, abs=1e-12)


def test_the_second_eigenvalue_counts_negative_ones_too() -> None:
    assert second_eigenvalue(np.array([[0.1, 0.9], [0.9, 0.1]])) == pytest.approx(0.8)


def test_an_unsymmetric_matrix_has_its_own_eigenvalues() -> None:
    # Row-stochastic 2 x 2: eigenvalues 1 and trace - 1.
    assert second_eigenvalue(np.array([[0.9, 0.1], [0.6, 0.4]])) == pytest.approx(0.3)


def test_a_single_node_is_at_consensus() -> None:
    assert spectral_gap(np.ones((1, 1))) == 1.0
    with pytest.raises(ConfigError, match="at least 2 honest workers, got 1"):
        algebraic_connectivity(np.ones((1, 1)))


def test_laplacian_averages_unequal_weights_and_ignores_the_diagonal() -> None:
    np.testing.assert_allclose(laplacian(np.array([[0.9, 0.1], [0.6, 0.4]])), [[0.35, -0.35], [-0.35, 0.35]])


@pytest.mark.parametrize(
    ("name", "connectivity", "lying_weight"),
    [("two-castle", 0.727, 0.182), ("er-12", 0.478, 0.222), ("octopus", 0.120, 0.143)],
)
def test_published_graphs(name: str, connectivity: float, lying_weight: float) -> None:
    net = network(f"paper/{name}")
    assert algebraic_connectivity(net.honest_mixing) == pytest.approx(connectivity, abs=5e-4)
    held_by_liars = 1 - net.honest_mixing.sum(axis=1)
    assert held_by_liars.max() == pytest.approx(lying_weight, abs=5e-4)


@pytest.mark.parametrize("name", ["paper/two-castle", "paper/octopus", "paper/er-12", "paper/er-20-b7"])
def test_fiedler_vector_is_a_unit_eigenvector_orthogonal_to_consensus(name: str) -> None:
    weights = network(name).honest_mixing
    vector = fiedler_vector(weights)
    np.testing.assert_allclose(laplacian(weights) @ vector, algebraic_connectivity(weights) * vector, atol=1e-10)
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert vector.sum() == pytest.approx(0, abs=1e-10)
    assert vector[np.abs(vector).argmax()] > 0


def test_fiedler_vector_of_a_multiple_eigenvalue_does_not_depend_on_rounding() -> None:
    weights = network("complete", n=5).mixing
    noise = np.random.default_rng(0).normal(size=(5, 5)) * 1e-15
    np.testing.assert_allclose(fiedler_vector(weights), fiedler_vector(weights + noise + noise.T), atol=1e-6)
    np.testing.assert_allclose(fiedler_vector(weights), np.array([4, -1, -1, -1, -1]) / np.sqrt(20), atol=1e-9)


def test_a_graph_in_pieces_has_connectivity_zero_and_a_fiedler_vector_that_tells_the_pieces_apart() -> None:
    weights = Network.from_edges([(0, 1), (2, 3)]).mixing
    assert algebraic_connectivity(weights) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(fiedler_vector(weights), [0.5, 0.5, -0.5, -0.5], atol=1e-9)

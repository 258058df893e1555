"""h, Theorem 3 and how many liars a worker can tolerate."""

from __future__ import annotations

import numpy as np
import pytest

from byzmesh.heaviest import THIRD, below
from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import rule
from byzmesh.rules.ios import theorem_3
from byzmesh.theory.contraction import cut_weight, largest_f, proved_contraction, rca_limit
from byzmesh.theory.mixing import mixing_rate, rho_star, to_own


@pytest.mark.parametrize(
    ("name", "h", "needed"),
    [("paper/two-castle", 0.182, 0.0030), ("paper/er-12", 0.250, 0.0024), ("paper/octopus", 0.143, 0.0007)],
)
def test_published_graphs(name: str, h: float, needed: float) -> None:
    net = network(name)
    assert round(float(cut_weight(net, net.bounds("exact")).max()), 3) == h
    assert round(rca_limit(rho_star(mixing_rate(to_own(net)), 10)), 4) == needed


@pytest.mark.parametrize(("b", "count"), [(2, 0), (4, 0), (6, 1), (7, 0), (8, 3), (10, 14)])
def test_workers_of_figure_4_beyond_a_third(b: int, count: int) -> None:
    net = network(f"paper/er-20-b{b}")
    assert int((~below(cut_weight(net, net.bounds("exact")), THIRD)).sum()) == count


def test_star_by_hand() -> None:
    """The hub of a star with 3 leaves has weight 1/4 on each; a leaf has 1/4 on the hub."""
    net = network("star", n=4)
    np.testing.assert_allclose(cut_weight(net, np.array([2, 1, 1, 5])), [0.5, 0.25, 0.25, 0.25])
    np.testing.assert_array_equal(largest_f(net, THIRD), [1, 1, 1, 1])
    np.testing.assert_array_equal(largest_f(net, 0.6), [2, 1, 1, 1])
    np.testing.assert_array_equal(largest_f(net, 0.0), [-1, -1, -1, -1])


def test_a_third_is_not_below_a_third() -> None:
    """Four of twelve equal weights sum to 1/3 up to rounding."""
    net = network("complete", n=12)
    np.testing.assert_array_equal(largest_f(net, THIRD), np.full(12, 3))


def test_theorem_3_values() -> None:
    np.testing.assert_allclose(theorem_3(np.array([0.0, 0.1, 0.2])), [0.0, 1.2 / 0.7, 6.0])
    assert np.isnan(theorem_3(np.array([1 / 3]))).all()


def test_rca_limit_is_where_the_bound_meets_rho_star() -> None:
    for star in (0.001, 0.03, 0.5):
        assert theorem_3(np.array([rca_limit(star)]))[0] == pytest.approx(star)
    assert rca_limit(-0.1) == 0.0


def test_complete_graph_has_the_published_order() -> None:
    """rho <= 12 mu/(1 - 3 mu) with equal weights, mu = B/(N + B)."""
    for liars in (1, 2, 3):
        net = network("complete", n=12, byzantine=range(liars))
        mu = liars / 12
        for name, sharp in {"ios": mu * (3 - 2 * mu) / (1 - mu) / (1 - 2 * mu), "faba": 2 * mu / (1 - 2 * mu)}.items():
            proof = proved_contraction(net, rule(name), net.bounds("exact"))
            assert proof.rho == pytest.approx(sharp)
            assert proof.beside[0].rho == pytest.approx(12 * mu / (1 - 3 * mu))


def test_example_1_without_liars() -> None:
    net = network("paper/two-castle-3")
    for name in ("ios", "faba", "trimean", "weimean", "nna", "mda"):
        assert proved_contraction(net, rule(name), net.bounds("exact")).rho == 0.0


def test_nothing_is_proved_by_an_order() -> None:
    net = network("paper/two-castle")
    for name in ("coomed", "geomed", "krum", "trimean", "mda"):
        assert np.isnan(proved_contraction(net, rule(name), net.bounds("exact")).bound).all()
    assert np.isnan(proved_contraction(net, rule("faba", own="outside"), net.bounds("exact")).rho)


def test_too_small_a_bound_proves_nothing() -> None:
    net = network("paper/two-castle")
    bound = proved_contraction(net, rule("ios"), net.bounds(1)).bound
    np.testing.assert_array_equal(np.isnan(bound), net.lying_neighbours > 1)


def test_unbounded_rules() -> None:
    net = Network.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], byzantine=[3])
    for name in ("weimean", "scc", "cc"):
        np.testing.assert_array_equal(
            np.isinf(proved_contraction(net, rule(name), net.bounds("exact")).bound), [False, False, True]
        )

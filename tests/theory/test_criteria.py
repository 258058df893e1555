"""Robust gossip, r-robustness, the worst placement and misreported degrees."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.gossip import oracle_contracts, spectrum
from byzmesh.theory.misreported_degrees import distrusting, effect_of_misreports, misreported, peer_weights
from byzmesh.theory.mixing import doubly_stochastic, mixing_rate, to_own
from byzmesh.theory.robustness import robustness
from byzmesh.theory.worst_placement import CRITERIA, _exhaustive, _greedy, worst_placement


@pytest.mark.parametrize(
    ("name", "mu_2", "b", "holds"),
    [
        ("paper/two-castle", 0.727, 0.182, True),
        ("paper/er-12", 0.478, 0.222, True),
        ("paper/octopus", 0.120, 0.143, False),
    ],
)
def test_gossip_on_the_published_graphs(name: str, mu_2: float, b: float, holds: bool) -> None:
    net = network(name)
    seen = spectrum(net)
    assert seen is not None
    assert (round(seen.mu_2, 3), round(float(net.lying_weight.max()), 3)) == (mu_2, b)
    assert oracle_contracts(net) == holds


def slow_robustness(links: np.ndarray) -> int:
    n = len(links)
    best = n
    for colours in product(range(3), repeat=n):
        sets = [[i for i in range(n) if colours[i] == side] for side in (1, 2)]
        if not all(sets):
            continue
        reach = max(sum(links[i, j] for j in range(n) if j not in camp) for camp in sets for i in camp)
        best = min(best, int(reach))
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.floats(0.2, 1.0), st.integers(0, 10**6))
def test_robustness_against_brute_force(n: int, p: float, seed: int) -> None:
    links = np.triu(np.random.default_rng(seed).random((n, n)) < p, 1)
    links |= links.T
    expected = slow_robustness(links)
    for method in ("exhaustive", "milp"):
        found = robustness(links, method=method)
        assert (found.lower, found.upper) == (expected, expected)


def test_robustness_of_known_graphs() -> None:
    for n in (4, 5, 9):
        assert robustness(network("complete", n=n).adjacency).lower == (n + 1) // 2
    assert robustness(network("ring", n=8).adjacency).lower == 1
    assert robustness(network("complete", n=17).adjacency).method == "milp"
    assert robustness(network("paper/two-castle").adjacency).lower == 5


def test_robustness_says_unknown_when_time_runs_out() -> None:
    found = robustness(network("erdos-renyi", n=60, p=0.5).adjacency, seconds=0.05)
    assert not found.exact
    assert found.lower <= found.upper
    assert found.bears(found.upper) == "no"
    if found.lower < 2 * 5 + 1 <= found.upper:
        assert found.bears(5) == "unknown"


def test_robustness_mistakes() -> None:
    with pytest.raises(ConfigError, match="up to 20 nodes"):
        robustness(network("ring", n=30).adjacency, method="exhaustive")
    with pytest.raises(ConfigError, match="method must be"):
        robustness(network("ring", n=5).adjacency, method="guess")


@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_worst_placement_is_the_worst(criterion: str) -> None:
    net = network("erdos-renyi", n=9, p=0.7, seed=4)
    found = worst_placement(net, 2, criterion)
    values = [CRITERIA[criterion](net.with_byzantine(pair)) for pair in combinations(range(9), 2)]
    assert found.exact
    assert found.value == pytest.approx(min(values), abs=1e-12)


def test_greedy_is_never_better_for_the_liars() -> None:
    net = network("erdos-renyi", n=12, p=0.8, seed=1)
    score = CRITERIA["rate"]
    exact, greedy = _exhaustive(net, 3, score), _greedy(net, 3, score)
    assert greedy.value >= exact.value - 1e-12
    assert (greedy.method, greedy.exact, len(greedy.byzantine)) == ("greedy", False, 3)
    assert score(net.with_byzantine(greedy.byzantine)) == pytest.approx(greedy.value)


def test_liars_on_a_bridge_cut_the_honest_in_two() -> None:
    net = network("dumbbell", k=5, bridge=2)
    found = worst_placement(net, 3)
    assert (found.method, found.value) == ("cut", 0.0)
    assert not net.with_byzantine(found.byzantine).honest_connected
    assert len(found.byzantine) == 3


def test_large_networks_are_greedy() -> None:
    found = worst_placement(network("erdos-renyi", n=120, p=0.5, seed=2), 4)
    assert (found.method, len(set(found.byzantine.tolist()))) == ("greedy", 4)


def test_placement_mistakes() -> None:
    with pytest.raises(ConfigError, match="criterion must be"):
        worst_placement(network("ring", n=5), 1, "luck")
    with pytest.raises(ConfigError, match="liars must be a whole number from 1 to 4"):
        worst_placement(network("ring", n=5), 5)


def test_honest_reports_give_metropolis_hastings_weights() -> None:
    net = network("paper/er-12")
    np.testing.assert_allclose(distrusting(net, way="bounded").mixing, net.mixing)


@settings(max_examples=30, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(0, 10**6))
def test_no_report_harms_honest_edges(report: float, seed: int) -> None:
    net = network("erdos-renyi", n=10, p=0.7, seed=seed % 50, byzantine=2)
    changed = misreported(net, report, largest=9)
    links = np.ix_(net.honest, net.honest)
    off = ~np.eye(len(net.honest), dtype=bool)
    np.testing.assert_allclose(changed.mixing[links][off], net.mixing[links][off])
    assert doubly_stochastic(to_own(changed))
    most = net.lying_neighbours / (1 + net.degree[net.honest])
    assert (changed.lying_weight <= most + 1e-12).all()


def test_low_reports_raise_and_high_reports_lower_the_lies_weight() -> None:
    net = Network.from_edges([(0, 1), (0, 2), (2, 1), (2, 3), (2, 4), (2, 5)], byzantine=[2])
    true = net.lying_weight
    assert (misreported(net, 0.0).lying_weight > true).any()
    assert misreported(net, 1e6).lying_weight.max() < 1e-5
    found = effect_of_misreports(net)
    assert found.low[0] >= found.true[0] >= found.high[0]
    assert found.low[0] > found.fixed[0]
    assert found.low[2] == found.high[2] == pytest.approx(0.0, abs=1e-18)


def test_fixed_largest_degree_reads_no_report() -> None:
    net = network("paper/octopus")
    safe = distrusting(net, largest=6)
    assert doubly_stochastic(to_own(safe))
    assert np.allclose(safe.mixing[net.adjacency], 1 / 7)
    assert cut_weight(safe, safe.bounds("exact")).max() == pytest.approx(1 / 7)
    assert 0.0 < mixing_rate(to_own(safe)) <= mixing_rate(to_own(net)) + 1e-12
    fixed = peer_weights(3, [float("nan"), -5, 10**9], largest=6, way="fixed")
    np.testing.assert_allclose(fixed, [4 / 7, 1 / 7, 1 / 7, 1 / 7])


def test_peers_and_networks_agree() -> None:
    net = network("paper/er-12")
    row = net.neighbours(3)
    weights = peer_weights(len(row), net.degree[row], largest=11)
    np.testing.assert_allclose(weights, [net.mixing[3, 3], *net.mixing[3, row]])
    with pytest.raises(ConfigError, match="at least the worker's own degree"):
        peer_weights(3, [1, 1, 1], largest=2)
    with pytest.raises(ConfigError, match="one per neighbour"):
        peer_weights(3, [1, 1], largest=4)
    with pytest.raises(ConfigError, match="way must be"):
        peer_weights(1, [1], largest=4, way="hope")

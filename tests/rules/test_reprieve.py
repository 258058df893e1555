"""Reprieve between the weighted mean and IOS, and its proved contraction held against search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.rules.aggregate import rule
from byzmesh.theory.contraction import cut_weight, proved_contraction
from byzmesh.theory.mixing import doubly_stochastic, virtual_mixing
from byzmesh.theory.search.climb import search_contraction
from tests.rules.cases import random_weights

SEEDS = st.integers(0, 2**32 - 1)


def shell(random: np.random.Generator, count: int, dimension: int = 40) -> np.ndarray:
    """Points at nearly the same distance from a centre, in directions that hardly agree: nobody stands out."""
    directions = random.normal(size=(count, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return 5.0 + directions * random.uniform(0.7, 1.4, (count, 1))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, neighbours=st.integers(4, 12), share=st.floats(0.0, 0.33))
def test_without_outliers_it_is_the_weighted_mean(seed: int, neighbours: int, share: float) -> None:
    random = np.random.default_rng(seed)
    own, *received = shell(random, neighbours + 1)
    weights = np.full(neighbours + 1, 1.0 / (neighbours + 1))
    f = int(share * neighbours)
    got = bm.aggregate("reprieve", own, np.array(received), weights, f)
    np.testing.assert_allclose(got, bm.aggregate("weimean", own, np.array(received), weights), rtol=1e-12)
    if f:
        assert np.abs(got - bm.aggregate("ios", own, np.array(received), weights, f)).max() > 1e-3


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, neighbours=st.integers(4, 12), far=st.floats(1e2, 1e12))
def test_with_far_outliers_it_is_ios(seed: int, neighbours: int, far: float) -> None:
    random = np.random.default_rng(seed)
    own, *received = shell(random, neighbours + 1)
    inbox = np.array(received)
    f = neighbours // 4
    inbox[random.permutation(neighbours)[:f]] += far * random.choice([-1.0, 1.0], (f, 1))
    weights = np.full(neighbours + 1, 1.0 / (neighbours + 1))
    got = bm.aggregate("reprieve", own, inbox, weights, f)
    np.testing.assert_array_equal(got, bm.aggregate("ios", own, inbox, weights, f))
    assert np.linalg.norm(got - 5.0) < 2.0


def test_a_needless_cut_is_undone_and_a_needed_one_is_not() -> None:
    """Two cuts: an honest worker that stands out a little comes back, a liar far away does not."""
    random = np.random.default_rng(1)
    own, *received = shell(random, 11)
    inbox = np.array(received)
    inbox[0] = 5.0 + 1.7 * (inbox[0] - 5.0) / np.linalg.norm(inbox[0] - 5.0)
    inbox[1] += 30.0
    network = bm.network("complete", n=11)
    out = bm.aggregate_all("reprieve", network, np.concatenate([[own], inbox]), f=2)
    ios = bm.aggregate_all("ios", network, np.concatenate([[own], inbox]), f=2)
    assert ios.coefficients is not None and out.coefficients is not None
    assert ios.coefficients[0, 1] == ios.coefficients[0, 2] == 0.0
    assert out.coefficients[0, 1] == pytest.approx(0.1) and out.coefficients[0, 2] == 0.0


@pytest.mark.parametrize("c", [0.9, -1.0, float("nan"), float("inf")])
def test_a_reach_below_one_is_refused(c: float) -> None:
    with pytest.raises(ConfigError, match="c must be a number of at least 1"):
        rule("reprieve", c=c)


def test_it_must_keep_a_neighbour() -> None:
    with pytest.raises(InfeasibleBound):
        bm.aggregate("reprieve", [0.0], [[1.0], [2.0]], f=2)


def bound(h: np.ndarray, c: float) -> np.ndarray:
    return max(3.0, 1.0 + c) * h / (1.0 - 3.0 * h)


@pytest.mark.parametrize("c", [1.0, 3.5])
def test_the_certificate_proves_the_bound(c: float) -> None:
    network = bm.network("complete", n=13, byzantine=[0, 5])
    proof = proved_contraction(network, rule("reprieve", c=c), network.bounds("exact"))
    h = cut_weight(network, network.bounds("exact"))
    t = 1.0 / ((1.0 - h) * (1.0 - 2.0 * h))  # docs/theory.md, the first wrong cut
    np.testing.assert_allclose(proof.bound, h * np.maximum((1.0 + 2.0 * t) / (1.0 - h), (1.0 + c) * t), rtol=1e-12)
    assert (proof.bound <= bound(h, c)).all(), "it proves no less than docs/reprieve.md does"
    too_many = bm.network("complete", n=6, byzantine=[0, 1])
    assert np.isnan(proved_contraction(too_many, rule("reprieve"), too_many.bounds("exact")).rho)
    understated = proved_contraction(network, rule("reprieve"), network.bounds(1))
    assert np.isnan(understated.rho), "nothing is proved if more lie than f"


def test_its_virtual_mixing_is_doubly_stochastic() -> None:
    for name in ("paper/two-castle", "paper/er-12", "paper/octopus"):
        mixing = virtual_mixing(bm.network(name), rule("reprieve"))
        assert mixing.source == "theory" and doubly_stochastic(mixing.matrix)


def random_network(seed: int) -> bm.Network:
    """A small random network with liars placed anywhere."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(5, 11))
    liars = int(random.integers(1, max(2, nodes // 3)))
    chosen = [int(node) for node in random.permutation(nodes)[:liars]]
    return bm.network("erdos-renyi", n=nodes, p=float(random.uniform(0.6, 1.0)), byzantine=chosen, seed=seed)


def search_against_the_bound(chosen: bm.Rule, seeds: range, budget: int = 40, dimensions: int = 2) -> tuple[int, float]:
    """How many workers have a proved bound, and how near the search comes to one.

    `search_contraction` raises `ContradictedProof` where it finds more than is proved.
    """
    proved, tightest = 0, 0.0
    for seed in seeds:
        network = random_network(seed)
        proof = proved_contraction(network, chosen, network.bounds("exact"))
        found = search_contraction(
            network, chosen, budget=budget, seed=seed, dimension=1 + seed % dimensions, proof=proof
        )
        place = {worker: row for row, worker in enumerate(network.honest.tolist())}
        for worker, ratio in found.by_worker.items():
            limit = proof.bound[place[worker]]
            if limit > 0.0:
                proved += 1
                tightest = max(tightest, ratio / limit)
    return proved, tightest


@pytest.mark.parametrize(("name", "seeds"), [("reprieve", range(200)), ("LazyIOS", range(1000, 1100))])
def test_search_does_not_beat_the_bound(name: str, seeds: range) -> None:
    """The report in reports/soundness is of 10,000 networks."""
    proved, tightest = search_against_the_bound(rule(name), seeds)
    assert proved > len(seeds), "most of these networks must have workers about whom something is proved"
    assert tightest > 0.3, "the search must come near the bound, or it tests nothing"


@pytest.mark.parametrize("name", ["ios", "reprieve"])
def test_own_model_is_kept_when_all_weight_was_cut(name: str) -> None:
    out = bm.aggregate(name, [7.0], [[1.0], [1.0]], weights=[0.0, 1.0, 0.0], f=1)
    assert out.tolist() == [7.0]


def test_ios_keeps_a_quarter_of_its_published_bound() -> None:
    """The proof of docs/reprieve.md gives IOS 3 h / (1 - 3 h); the paper states 12 h / (1 - 3 h)."""
    for nodes, liars in ((10, 1), (13, 2), (16, 4)):
        network = bm.network("complete", n=nodes, byzantine=range(liars))
        h = liars / nodes
        found = search_contraction(network, rule("ios"), budget=3_000, seed=nodes)
        assert found.rho <= 3.0 * h / (1.0 - 3.0 * h) + 1e-9


def test_mixing_weights_may_be_uneven() -> None:
    """The weighted median is over weights: liars with little weight do not set the scale."""
    random = np.random.default_rng(4)
    weights = random_weights(random, 8)
    own, received = random.normal(size=30), random.normal(size=(7, 30))
    network_free = bm.aggregate("reprieve", own, received, weights, 2, c=1e9)
    np.testing.assert_allclose(network_free, bm.aggregate("weimean", own, received, weights), rtol=1e-12)

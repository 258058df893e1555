"""b, a bound on the weight of lies: what it allows, by enumeration, and that its certificates hold for all of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.networks.fault_bounds import unlimited
from byzmesh.rules.aggregate import aggregate, rule
from byzmesh.simulation.exchange import aggregate_all
from byzmesh.sweeps.build import simulate
from byzmesh.theory.certify import certify
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.question import ask


def networks(seed: int, count: int) -> Iterator[tuple[Network, np.ndarray]]:
    """Small random networks with uneven symmetric weights, and a bound on the weight of lies per node."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        n = int(draw.integers(4, 8))
        links = np.triu(draw.random((n, n)) < 0.7, 1)
        links |= np.eye(n, k=1, dtype=bool)
        weight = np.where(links, draw.random((n, n)) / n, 0.0)
        weight += weight.T
        np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
        yield Network.from_adjacency(links | links.T, weights=weight), draw.random(n) * 0.35


def allowed(net: Network, b: np.ndarray) -> Iterator[list[int]]:
    """Every set of liars that weighs at most b for each honest worker, by the definition."""
    for count in range(net.n):
        for liars in itertools.combinations(range(net.n), count):
            honest = [worker for worker in range(net.n) if worker not in liars]
            if all(sum(net.mixing[worker, liar] for liar in liars) <= b[worker] for worker in honest):
                yield list(liars)


def test_what_b_allows() -> None:
    seen = 0
    for net, b in networks(0, 25):
        question = ask(net, b=b)
        sets = list(allowed(net, b))
        every = [list(liars) for k in range(net.n) for liars in itertools.combinations(range(net.n), k)]
        assert [liars for liars in every if question.admits(liars)] == sets
        assert question.alone.tolist() == [liars[0] for liars in sets if len(liars) == 1]
        for liars in sets:
            for worker in set(range(net.n)) - set(liars):
                lying = [liar for liar in liars if net.adjacency[worker, liar]]
                assert len(lying) <= question.most[worker] <= question.f[worker]
                assert net.mixing[worker, lying].sum() <= question.most_weight[worker] + 1e-12
                seen += len(lying) > 1
    assert seen > 20


@pytest.mark.parametrize("name", ["IOS", "LazyIOS", "GTS", "CS+", "NNA"])
def test_the_bound_covers_every_placement(name: str) -> None:
    chosen, proved = rule(name), 0
    for net, b in networks(1, 12):
        question = ask(net, b=b)
        bound = question.proved(chosen).bound
        for liars in allowed(net, b):
            placed = net.with_byzantine(liars)
            told = proved_contraction(placed, chosen, question.f[placed.honest]).bound
            sure = ~np.isnan(bound[placed.honest])
            assert (told[sure] <= bound[placed.honest][sure] + 1e-9).all()
            proved += int(sure.sum())
    assert proved > 100


def test_a_bound_on_the_weight_can_prove_what_the_number_alone_cannot() -> None:
    """Heavy links to one site: as one of two liars anywhere it could weigh 0.45, by the bound it cannot lie."""
    weight = np.full((7, 7), 0.05)
    weight[0, 1:] = weight[1:, 0] = 0.15
    np.fill_diagonal(weight, 0.0)
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    net = Network.from_adjacency(~np.eye(7, dtype=bool), weights=weight)
    by_weight = ask(net, 2, b=0.1)
    assert by_weight.most_weight[1:].max() == pytest.approx(0.1)
    assert ask(net, 2).most_weight[1:].max() == pytest.approx(0.2)
    assert not by_weight.admits([0]) and ask(net, 2).admits([0])


def test_the_certificate_says_what_was_asked() -> None:
    told = certify(network("complete", n=8), "ios", b=0.25, search=0)
    assert told.question.f.tolist() == [2] * 8 and told.to_dict()["b"] == [0.25] * 8
    assert "at most 2 and of weight at most 0.25 in the neighbourhood" in str(told)
    assert told.bounded == certify(network("complete", n=8), "ios", 2, search=0).bounded


@pytest.mark.parametrize("b", [1.0, -0.1, "much", [0.1, 0.2], {0: 0.1}, True, float("nan")])
def test_mistakes_are_named(b: Any) -> None:
    with pytest.raises(ConfigError, match="b must"):
        ask(network("ring", n=5), b=b)


def test_named_liars_have_their_weight() -> None:
    with pytest.raises(ConfigError, match="b is for liars anywhere"):
        ask(network("paper/two-castle"), b=0.2)


@pytest.mark.parametrize("name", ["IOS", "LazyIOS"])
def test_a_rule_that_is_told_b_relies_on_it(name: str) -> None:
    """A config's b became an f of 1, but told b = 0.05 the rule never cuts a liar that weighs 0.15: it "held"."""
    weight = np.full((10, 10), 0.04)
    weight[0, 1] = weight[1, 0] = 0.15
    np.fill_diagonal(weight, 0.0)
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    net = Network.from_adjacency(~np.eye(10, dtype=bool), weights=weight)
    lies = np.zeros((9, 1))
    lies[0] = 1e6
    assert aggregate(name, [0.0], lies, weight[0], b=0.05)[0] == pytest.approx(1.5e5)  # all honest models are 0
    lying = net.with_byzantine([1])
    told = certify(lying, name, {"weight": 0.05})
    assert told.bounded.status == told.rdsa.status == "unknown" and not told.conditions
    assert not certify(lying, "GTS", {"weight": 0.05}).conditions
    assert "more at worker 0 than the rule is told" in told.bounded.reason
    assert certify(lying, name, {"weight": 0.15}, rho=2.0).holds and certify(lying, name, 1, search=0).holds
    anywhere = ask(net, {"weight": 0.05})
    assert anywhere.admits([2]) and not anywhere.admits([1])  # a liar there would weigh too much
    assert certify(net, name, {"weight": 0.05}).to_dict()["b"] == [0.05] * 10
    with pytest.raises(ConfigError, match="search is for rules"):
        certify(net, name, {"weight": 0.05}, search=10)


def test_tolerable_is_what_the_rule_can_run_with() -> None:
    """As in a run: 2f < d for CS+, so that f = 2 of 4 neighbours is not asked for and then refused."""
    weight = np.full((5, 5), 0.1) + 0.5 * np.eye(5)
    net = Network.from_adjacency(~np.eye(5, dtype=bool), weights=weight, byzantine=[4])
    assert certify(net, "CS+", "tolerable", search=0).question.f.tolist() == [1] * 4


@pytest.mark.parametrize(("name", "b"), [("CS+", 0.25), ("IOS", 0.45), ("LazyIOS", 0.4), ("GTS", 0.4), ("NNA", 0.4)])
def test_a_rule_that_is_told_b_cuts_as_in_a_run_however_few_may_lie(name: str, b: float) -> None:
    """Half of the workers at 0, half at 1, and nobody lies: what is cut is honest, and the workers may never agree."""
    net, told = network("complete", n=20), {"weight": b}
    certificate = certify(net, name, told, total=1, search=0, rho=100.0)
    question, bounds = certificate.question, net.bounds(told, unlimited)
    assert question.f.tolist() == bounds.tolist() and question.most.tolist() == [1] * 20
    models = np.repeat([0.0, 1.0], 10)[:, None]
    after = aggregate_all(name, net, models, f=told).models
    assert np.abs(after - 0.5).max() / 0.5 <= np.nanmin([certificate.proof.rho, np.inf]) + 1e-12
    assert name != "CS+" or (certificate.agrees.status != "proved" and np.abs(after - models).max() < 1e-12)


def test_lies_may_be_bounded_by_less_than_the_rule_is_told() -> None:
    net = network("complete", n=20)
    question = ask(net, {"weight": 0.25}, b=0.05)
    assert question.f.tolist() == ask(net, {"weight": 0.25}).f.tolist() == [5] * 20
    assert question.most.tolist() == [1] * 20 and not question.misled.any()
    with pytest.raises(ConfigError, match=r"b = 0\.25 at node 0 is more than the 0\.05 that the rule is told"):
        ask(net, {"weight": 0.05}, b=0.25)


def test_a_run_in_which_lies_weigh_more_than_the_rule_is_told_violates_nothing() -> None:
    """One liar of weight 0.08 beside workers that are told 0.06: IOS cannot cut it, and nothing is proved."""
    weight = np.full((10, 10), 0.04)
    weight[0, :] = weight[:, 0] = 0.08
    np.fill_diagonal(weight, 0.0)
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    config: dict[str, Any] = {
        "network": {"name": "complete", "n": 10, "weights": weight.tolist(), "byzantine": [0]},
        "rule": "ios",
        "problem": {"name": "quadratic", "dimension": 3, "targets": "normal"},
        "attack": {"name": "gaussian", "std": 100.0},
        "measure": ["certificate"],
        "evaluate_every": 1,
        "rounds": 2,
    }
    misled, warned = simulate(**config, b=0.06), simulate(**config, b=0.09)
    assert misled.final("contraction") > 1.0 and misled.final("violations") == 0
    assert warned.final("contraction") < 1.0 and warned.final("violations") == 0


@pytest.mark.parametrize("name", ["ios", "lazyios"])
def test_nothing_is_proved_so_near_one_half_that_float32_takes_distances_for_equal(name: str) -> None:
    weights, lie = [0.25, 0.25 + 1e-7, 0.5 - 1e-7], np.array([[0.0], [1000.0]], np.float32)
    assert aggregate(name, np.zeros(1, np.float32), lie, weights, f=1)[0] > 100.0
    declared = rule(name).contraction
    assert declared is not None and declared.of_h is not None
    assert np.isnan(declared.of_h(np.array([0.5 - 1e-7]))).all() and declared.of_h(np.array([0.499]))[0] > 100.0

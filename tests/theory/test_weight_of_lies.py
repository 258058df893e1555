"""b, a bound on the weight of lies: what it allows, by enumeration, and that its certificates hold for all of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import rule
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

"""The worst factor of H: what is reported is attained, and comes near what a search by hand finds."""

from __future__ import annotations

import numpy as np
import pytest

from byzmesh.networks import network
from byzmesh.rules.aggregate import rule
from byzmesh.theory.certify import certify
from byzmesh.theory.search.agreement import REACHES, over_rounds, search_agreement, worst_round
from byzmesh.theory.search.exchange import Exchange, disagreement

PUBLISHED = ["paper/two-castle", "paper/er-12", "paper/octopus"]
BY_HAND = {
    "IOS": (0.7355, 1.2559, 0.7928),
    "LazyIOS": (0.7300, 1.1763, 0.7885),
    "FABA": (0.7355, 1.2311, 0.6590),
    "GTS": (1.0189, 1.3638, 0.7893),
    "CS+": (0.8149, 1.0136, 0.7764),
    "NNA": (1.0279, 1.3187, 0.6673),
    "Reprieve": (0.6992, 1.1834, 0.7929),
}
"""Factors on the published networks that another program found: rules written as loops, 20 times the work."""


def exchange_of(name: str, chosen: str) -> Exchange:
    net = network(name)
    return Exchange(net, rule(chosen), net.bounds("exact"))


@pytest.mark.parametrize("name", BY_HAND)
def test_the_search_comes_near_another_one(name: str) -> None:
    for graph, known in zip(PUBLISHED, BY_HAND[name]):
        told = certify(network(graph), name, search=6000)
        assert told.agreement is not None
        assert told.agreement.factor >= 0.88 * known, graph


@pytest.mark.parametrize("name", ["IOS", "GTS", "FABA"])
def test_the_worst_input_is_told_and_can_be_checked(name: str) -> None:
    exchange = exchange_of("paper/er-12", name)
    seen = search_agreement(exchange, budget=1000)
    assert seen.models is not None and seen.lies is not None
    after = exchange.apply(seen.models[None, :, None], seen.lies[exchange.receivers][None, :, None])
    before = disagreement(seen.models[None, :, None])
    assert seen.factor == pytest.approx(float(disagreement(after)[0] / before[0]), rel=1e-6)


def test_lies_bring_answers_as_far_apart_as_any_choice() -> None:
    """All 2^N choices of high and low answers, by enumeration; a cut may miss the best one by little."""
    net = network("complete", n=8, byzantine=[0])
    exchange = Exchange(net, rule("IOS"), net.bounds("exact"))
    models = np.random.default_rng(0).normal(size=(20, 7))
    grid = np.broadcast_to(REACHES, (20, 7, len(REACHES)))
    table = exchange.answers(models, models[:, :, None] + grid * np.ptp(models, axis=1)[:, None, None])
    ends = np.stack([table.min(axis=2), table.max(axis=2)])
    choices = (np.arange(128)[:, None] >> np.arange(7)) & 1
    best = np.array([np.where(choices, high, low).var(axis=1).max() for low, high in ends.transpose(1, 0, 2)])
    factor = worst_round(exchange, models, grid)[0] * models.var(axis=1) / best
    assert factor.max() <= 1.0 + 1e-9 and factor.min() >= 0.98
    assert (factor > 1.0 - 1e-9).mean() >= 0.9


def test_several_rounds_start_where_the_last_ended() -> None:
    """Two rounds are a round after a round; without liars and with W = I nothing changes."""
    still = exchange_of("paper/two-castle", "NoComm")
    models = np.random.default_rng(1).normal(size=(3, 10))
    assert over_rounds(still, models, 4) == pytest.approx(1.0)
    mean = Exchange(network("complete", n=6), rule("weimean"), np.zeros(6, np.int64))
    assert over_rounds(mean, np.random.default_rng(2).normal(size=(3, 6)), 1) < 1e-20

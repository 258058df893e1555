"""How many lies a rule declares to resist, and the warning for an f beyond that."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import WeakBound
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.base import Rule, rules
from tests.rules.contract import inbox_of, run

USING_F = [
    built
    for built in (
        *(rules.build(name) for name in rules.names()),
        rules.build("FABA", own="outside"),
        rules.build("NNM", inner="Krum"),
        rules.build("WeightedNNM", inner="Krum"),
    )
    if built.feasible is not None and built.name != "bucketing(IOS)"
]


def lied_to(rule: Rule, messages: int, f: int, seed: int) -> float:
    """How far from the honest vectors, which are within 3, f lies that agree carry a worker with equal weights."""
    random = np.random.default_rng(seed)
    own, received = random.uniform(-1.0, 1.0, 5), random.uniform(-1.0, 1.0, (messages, 5))
    lie = 1e6 * random.normal(size=5)
    received[:f] = lie + random.choice([0.0, 1e-3]) * random.normal(size=(f, 5))
    weights = np.full(messages + 1, 1.0 / (messages + 1))
    return float(np.abs(run(rule, inbox_of(rule, own, received, weights, f)).models).max())


@pytest.mark.parametrize("rule", USING_F, ids=lambda rule: f"{rule.name}{dict(rule.options)}")
def test_rules_resist_what_they_declare(rule: Rule) -> None:
    assert rule.feasible is not None
    for messages in range(1, 13):
        for f in range(min(rule.feasible.resisted(messages), messages) + 1):
            for seed in range(4):
                assert lied_to(rule, messages, f, seed) < 3.0, (messages, f)


@pytest.mark.parametrize("name", ["FABA", "IOS", "Krum", "MultiKrum", "MDA"])
def test_no_more_is_declared_than_holds(name: str) -> None:
    """One lie more than is resisted carries the rule away, for some number of messages at which it runs at all."""
    rule = rules.build(name)
    assert rule.feasible is not None
    beyond = [
        lied_to(rule, messages, rule.feasible.resisted(messages) + 1, seed)
        for messages in range(3, 12)
        for seed in range(4)
        if rule.feasible.resisted(messages) < rule.largest_f(messages)
    ]
    assert max(beyond) > 1e4


@pytest.mark.parametrize("name", ["FABA", "IOS", "Krum", "MultiKrum", "MDA"])
def test_the_largest_feasible_bound_is_warned_of(name: str) -> None:
    """With f honest messages late, f lies among d - f messages lead these rules."""
    rule, neighbours = rules.build(name), 8
    f = np.array([rule.largest_f(neighbours)])
    with pytest.warns(WeakBound, match=rf"rule {name} with f = {f[0]} at worker 5: it resists \d+ of the 8 messages"):
        check_feasible(rule, f, np.array([neighbours]), np.array([5]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_feasible(rule, np.array([3]), np.array([neighbours]), np.array([5]))
    with pytest.warns(
        WeakBound, match=r"it resists [12] of the d - f = 5 messages that a round surely has; use f <= 2"
    ):
        check_feasible(rule, np.array([3]), np.array([neighbours]), np.array([5]), all_arrive=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_feasible(rule, np.array([2]), np.array([neighbours]), np.array([5]), all_arrive=False)
    late = lied_to(rule, neighbours - 3, 3, 0)
    assert late > 1e4
    assert lied_to(rule, neighbours - 2, 2, 0) < 3.0


def test_rules_that_measure_from_their_own_model_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("NNA", "GTS", "ClippedGossip", "RTC"):
            bm.aggregate(name, np.zeros(2), np.ones((4, 2)), f=3)

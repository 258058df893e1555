"""The contract over every registered rule, by hypothesis, and mutants that it catches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.rules.base import Block, Inbox, Rule, normalised, rules
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.gram.rule import gram_rule
from tests.rules.contract import CHECKS, SILENCE, Heard, applies, everybody

SMALL = 5
"""Every rule is feasible with this many neighbours (Bulyan and bucketing with f = 0)."""

BUILT = [rules.build(name) for name in rules.names() if name != "half-and-half"] + [
    rules.build("GeoMed", steps=80),
    rules.build("CC", centre="memory"),
    rules.build("DRSA", at="start"),
    rules.build("FABA", own="outside"),
    rules.build("CooMed", even="lower"),
    rules.build("SimRew", divergence="published"),
    rules.build("NNM", inner="Krum"),
    rules.build("NNM", inner="IOS"),
    rules.build("WeightedNNM", inner="IOS"),
    rules.build("WeightedNNM", inner="WeightedGeoMed"),
    rules.build("WeightedNNM", inner="TriMean"),
    rules.build("bucketing", inner="GeoMed", s=3),
]


def label(rule: Rule) -> str:
    return f"{rule.name}{dict(rule.options)}"


@pytest.mark.parametrize(
    ("rule", "check"),
    [(rule, check) for rule in BUILT for check in CHECKS if applies(check, rule)],
    ids=lambda part: label(part) if isinstance(part, Rule) else part.__name__,
)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), neighbours=st.integers(SMALL, 11), share=st.floats(0.0, 1.0))
def test_contract(rule: Rule, check: Any, seed: int, neighbours: int, share: float) -> None:
    largest = min(rule.largest_f(neighbours), (neighbours - 1) // 2)
    check(rule, seed, neighbours, round(share * max(0, largest)))


@pytest.mark.parametrize("heard", SILENCE, ids=lambda heard: heard.__name__)
@pytest.mark.parametrize("rule", BUILT, ids=label)
def test_contract_under_silence(rule: Rule, heard: Heard) -> None:
    """Whatever a process leaves of an inbox, every promise holds for what arrived."""
    for number, check in enumerate(CHECKS):
        if applies(check, rule):
            neighbours = SMALL + number % 4
            check(rule, number, neighbours, max(0, min(rule.largest_f(neighbours), 2)), heard)


def nearest_cut(block: Block) -> np.ndarray:
    far = np.einsum("rkk->rk", block.inner).max() * 2.0
    flipped = far * np.eye(block.inner.shape[1])[None] - block.inner
    trusted = cut_farthest(flipped, block.weight, block.present, block.f, block.room, block.tie, True)
    return normalised(np.where(trusted, block.weight, 0.0))


def trusted_by_ios(block: Block) -> np.ndarray:
    return cut_farthest(block.inner, block.weight, block.present, block.f, block.room, block.tie, True)


def own_cut(block: Block) -> np.ndarray:
    kept = np.where(trusted_by_ios(block), block.weight, 0.0)
    kept[:, 0] = 1e-300
    return normalised(kept)


def nothing_cut(block: Block) -> np.ndarray:
    return block.weight


def weights_forgotten(block: Block) -> np.ndarray:
    return normalised(trusted_by_ios(block))


def not_renormalised(block: Block) -> np.ndarray:
    return np.where(trusted_by_ios(block), block.weight, 0.0)


def one_too_many_cut(block: Block) -> np.ndarray:
    trusted = cut_farthest(block.inner, block.weight, block.present, block.f + 1, block.room, block.tie, True)
    return normalised(np.where(trusted, block.weight, 0.0))


def first_slots_cut(block: Block) -> np.ndarray:
    trusted = block.present.copy()
    trusted[:, 1 : 1 + int(block.f.max())] = False
    return normalised(np.where(trusted, block.weight, 0.0))


def last_of_ties(block: Block) -> np.ndarray:
    turned = np.concatenate([[0], np.arange(block.present.shape[1] - 1, 0, -1)])
    in_float32 = block.tie > 1e-9
    trusted = cut_farthest(
        np.ascontiguousarray(block.inner[:, turned][:, :, turned]),
        np.ascontiguousarray(block.weight[:, turned]),
        np.ascontiguousarray(block.present[:, turned]),
        block.f,
        block.room,
        block.tie,
        True,
    )[:, turned]
    return normalised(np.where(trusted if in_float32 else trusted_by_ios(block), block.weight, 0.0))


def weights_overwritten(block: Block) -> np.ndarray:
    block.weight[:, 0] += 1.0
    return normalised(block.weight)


def ios_with(change: Any) -> Rule:
    """A mutant of IOS by its coefficients."""
    real = rules.build("IOS")
    return gram_rule("IOS", change, feasible=real.feasible, uses_weights=True, keeps_own=True)


def wrong_report() -> Rule:
    """IOS that reports other coefficients than it used."""
    real = rules.build("IOS")

    def apply(inbox: Inbox, state: Any) -> Any:
        outcome, state = real.apply(inbox, state)
        return replace(outcome, coefficients=inbox.weight), state

    return replace(real, apply=apply)


def lost_where(bad: Any) -> Rule:
    """IOS whose result is not finite where `bad`(inbox) says so: `gram_rule` lets no such coefficients pass."""
    real = rules.build("IOS")

    def apply(inbox: Inbox, state: Any) -> Any:
        outcome, state = real.apply(inbox, state)
        return replace(outcome, models=np.where(bad(inbox), np.nan, outcome.models)), state

    return replace(real, apply=apply)


CATCHES = {
    "permutation": ios_with(first_slots_cut),
    "translation": ios_with(not_renormalised),
    "identical": ios_with(not_renormalised),
    "finite": lost_where(lambda inbox: inbox.pool.top > 1e29),
    "far_lies": lost_where(lambda inbox: inbox.pool.top > 1e29),
    "bounded": ios_with(nothing_cut),
    "silent": lost_where(lambda inbox: not inbox.present.all()),
    "ties": ios_with(last_of_ties),
    "unchanged": ios_with(weights_overwritten),
    "coefficients": wrong_report(),
    "own_counts": ios_with(own_cut),
    "weighted": ios_with(weights_forgotten),
    "alike": replace(rules.build("IOS"), symmetric=True),
    "cuts_nothing_at_zero": ios_with(one_too_many_cut),
}


def notices(check: Any, rule: Rule, heard: Heard = everybody) -> bool:
    """Whether the check fails on the rule for one of a few inboxes."""
    for seed in range(6):
        try:
            check(rule, seed, 8, 2, heard)
        except (AssertionError, ValueError, RuntimeWarning):
            return True
    return False


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_can_fail(check: Any) -> None:
    assert notices(check, CATCHES[check.__name__])
    assert not notices(check, rules.build("IOS"))


@pytest.mark.parametrize("mutant", [nearest_cut, own_cut, nothing_cut, weights_forgotten], ids=lambda m: m.__name__)
def test_the_contract_catches_mutants_of_ios(mutant: Any) -> None:
    assert any(notices(check, ios_with(mutant)) for check in CHECKS)


def believes_few(block: Block) -> np.ndarray:
    """Whoever arrives is believed if no more than f arrive."""
    few = block.present[:, 1:].sum(axis=1, keepdims=True) <= block.f[:, None]
    trusted = np.where(trusted_by_ios(block), block.weight, 0.0)
    return normalised(np.where(few, np.where(block.present, 1.0, 0.0), trusted))


def forgets_itself(block: Block) -> np.ndarray:
    """The weight of silent neighbours is lost."""
    quiet = block.present[:, 1:].sum(axis=1, keepdims=True) < 2
    return np.where(quiet, 0.9, 1.0) * normalised(np.where(trusted_by_ios(block), block.weight, 0.0))


QUIET_MUTANTS = {
    "nobody": ("identical", forgets_itself),
    "one_of_them": ("bounded", believes_few),
    "only_liars": ("bounded", believes_few),
}


@pytest.mark.parametrize("heard", SILENCE, ids=lambda heard: heard.__name__)
def test_silence_shows_what_full_inboxes_hide(heard: Heard) -> None:
    """Mutants that go wrong only where few messages arrive."""
    name, change = QUIET_MUTANTS[heard.__name__]
    check = next(check for check in CHECKS if check.__name__ == name)
    mutant = gram_rule("IOS", change, uses_weights=True, keeps_own=True)
    assert not notices(check, mutant)
    assert notices(check, mutant, heard)
    assert not notices(check, rules.build("IOS"), heard)

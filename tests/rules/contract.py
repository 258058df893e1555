"""What every rule promises, as checks that raise AssertionError: run over the registry and, to show that they can fail,
over mutants of IOS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.base import Inbox, Outcome, Rule
from byzmesh.rules.inbox import make_inbox
from tests.rules.cases import loss

DIMENSION = 6

WITHOUT_TIES = {"MDA": 0, "Bulyan": 0, "NNM(Krum)": 0, "NNM(IOS)": 0}
"""Largest f without built-in ties: MDA's subsets share a diameter, Bulyan's last picks are each other's nearest, and so
are the mixtures that NNM hands to Krum; with f = 1 these may be two vectors, three times each, and IOS's mean lies in
their middle."""


Heard = Callable[[int, int, int], np.ndarray]
"""(seed, neighbours, liars among the first of them) -> (neighbours,) whose messages arrive."""


def everybody(seed: int, neighbours: int, liars: int) -> np.ndarray:
    return np.ones(neighbours, bool)


def nobody(seed: int, neighbours: int, liars: int) -> np.ndarray:
    return np.zeros(neighbours, bool)


def one_of_them(seed: int, neighbours: int, liars: int) -> np.ndarray:
    """A liar, if there are any, half of the time."""
    random = np.random.default_rng(seed + 4)
    came = np.zeros(neighbours, bool)
    came[random.integers(0, liars if liars and random.random() < 0.5 else neighbours)] = True
    return came


def only_liars(seed: int, neighbours: int, liars: int) -> np.ndarray:
    return np.arange(neighbours) < max(1, liars)


SILENCE: tuple[Heard, ...] = (nobody, one_of_them, only_liars)
"""What a process may leave of an inbox."""


def inbox_of(
    rule: Rule,
    own: np.ndarray,
    received: np.ndarray,
    weights: np.ndarray,
    f: int,
    *,
    present: np.ndarray | None = None,
    previous: np.ndarray | None = None,
) -> Inbox:
    """One receiver's inbox, as the library builds it."""
    return make_inbox(
        rule,
        own[None, :],
        weight=weights[None, :],
        f=np.array([f]),
        receiver=np.zeros(1, np.int64),
        messages=received,
        present=None if present is None else np.concatenate([[True], present])[None, :],
        round=Round(step_size=0.5),
        previous=(np.zeros_like(own) if previous is None else previous)[None, :],
        loss=lambda candidates: np.array([[loss(vector) for vector in line] for line in candidates]),
    )


def run(rule: Rule, inbox: Inbox) -> Outcome:
    """The rule's first round."""
    outcome, _ = rule.apply(inbox, rule.init(inbox.pool.own if inbox.half is None else inbox.half))
    return outcome


JUMPS = {"WeightedCooMed", "WeightedKrum", "WeightedGeoMed"}
"""Rules that return one of the vectors, or nearly: among few, it may be the same one whatever they weigh."""


def random_inbox(seed: int, neighbours: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(own, received, weights) without ties."""
    random = np.random.default_rng(seed)
    weights = random.uniform(0.2, 1.0, neighbours + 1)
    return random.normal(size=DIMENSION), random.normal(size=(neighbours, DIMENSION)), weights / weights.sum()


def permutation(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """The order of the neighbours does not matter (where the rule itself makes no ties, which go by sender id)."""
    f = min(f, WITHOUT_TIES.get(rule.name, f))
    own, received, weights = random_inbox(seed, neighbours)
    order = np.random.default_rng(seed + 1).permutation(neighbours)
    came, turned = heard(seed, neighbours, f), np.concatenate([weights[:1], weights[1:][order]])
    one = run(rule, inbox_of(rule, own, received, weights, f, present=came))
    other = run(rule, inbox_of(rule, own, received[order], turned, f, present=came[order]))
    np.testing.assert_allclose(one.models, other.models, rtol=1e-9, atol=1e-9)


def translation(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """A shift of everything shifts the result."""
    own, received, weights = random_inbox(seed, neighbours)
    shift = np.random.default_rng(seed + 1).normal(size=DIMENSION) * 10.0
    came = heard(seed, neighbours, f)
    one = run(rule, inbox_of(rule, own, received, weights, f, present=came, previous=np.zeros(DIMENSION)))
    moved = inbox_of(rule, own + shift, received + shift, weights, f, present=came, previous=shift)
    np.testing.assert_allclose(run(rule, moved).models, one.models + shift, rtol=1e-8, atol=1e-8)


def identical(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Identical inputs return that input."""
    own, _, weights = random_inbox(seed, neighbours)
    came = heard(seed, neighbours, f)
    out = run(rule, inbox_of(rule, own, np.tile(own, (neighbours, 1)), weights, f, present=came, previous=own))
    np.testing.assert_allclose(out.models[0], own, rtol=1e-12, atol=1e-12)


def finite(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Whatever liars send, the result is finite, and lies that are not finite count as silence."""
    came = heard(seed, neighbours, max(1, f))
    for dtype in (np.float32, np.float64):
        own, received, weights = random_inbox(seed, neighbours)
        own, received = own.astype(dtype), received.astype(dtype)
        top = np.finfo(dtype).max
        for lie in (np.nan, np.inf, -np.inf, top, -top, 1e38, -1e38, 1e20):
            bad = received.copy()
            bad[: max(1, f)] = dtype(lie)
            out = run(rule, inbox_of(rule, own, bad, weights, f, present=came))
            assert np.isfinite(out.models).all(), (lie, dtype)
            if not np.isfinite(lie):
                honest = np.arange(neighbours) >= max(1, f)
                quiet = run(rule, inbox_of(rule, own, received, weights, f, present=came & honest))
                np.testing.assert_allclose(out.models, quiet.models, rtol=1e-5, atol=1e-6)


def far_lies(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """However far a lie is, up to the largest number there is, it moves a rule no more than one at 1e8 does."""
    random = np.random.default_rng(seed + 3)
    own, received, weights = random_inbox(seed, neighbours)
    liars = max(1, f // 2)
    towards = random.normal(size=(liars, DIMENSION))
    towards /= np.abs(towards).max(axis=1, keepdims=True)
    lies = np.vstack([1e8 * towards, received[liars:]])
    came = heard(seed, neighbours, liars)
    near = run(rule, inbox_of(rule, own, lies, weights, f, present=came)).models
    for dtype in (np.float32, np.float64):
        top = float(np.finfo(dtype).max)
        for far in (1e15, 1e20, 1e30, 1e38, 1e60, 1e100, 1e150, 1e160, 1e300, top / 2.0, top):
            if far <= top:
                lies[:liars] = far * towards
                narrow = own.astype(dtype), lies.astype(dtype)
                out = run(rule, inbox_of(rule, *narrow, weights, f, present=came)).models
                assert np.isfinite(out).all(), (far, dtype)
                if np.abs(near).max() < 100.0:
                    np.testing.assert_allclose(out, near, rtol=0.0, atol=1e-3, err_msg=f"{far} {dtype}")


def bounded(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """A quarter of far lies moves the result no farther than the honest vectors reach (rules that use f only)."""
    own, received, _ = random_inbox(seed, neighbours)
    weights = np.full(neighbours + 1, 1.0 / (neighbours + 1))
    f = min(f, -(-neighbours // int(rule.options.get("s", 1))) // 4)
    bad = received.copy()
    bad[:f] += 1e6 * np.sign(np.random.default_rng(seed).normal(size=(f, DIMENSION)))
    reach = max(np.abs(own).max(), np.abs(received).max())
    out = run(rule, inbox_of(rule, own, bad, weights, f, present=heard(seed, neighbours, f), previous=own))
    assert np.abs(out.models).max() <= reach * 1.001


def silent(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Any neighbours may be silent; if all are, the rule keeps its own model (memory and gradients aside)."""
    own, received, weights = random_inbox(seed, neighbours)
    some = heard(seed, neighbours, f) & (np.random.default_rng(seed + 2).random(neighbours) < 0.5)
    for present in (some, np.zeros(neighbours, bool)):
        out = run(rule, inbox_of(rule, own, received, weights, f, present=present))
        assert np.isfinite(out.models).all()
    if rule.idempotent:
        np.testing.assert_allclose(out.models[0], own, rtol=1e-12, atol=1e-12)


def ties(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Of two senders of the same vector the lower one is treated first: swapping their weights changes the result the
    same way every time, in both precisions."""
    own, received, _ = random_inbox(seed, neighbours)
    received[1] = received[0]
    weights = np.arange(1.0, neighbours + 2)
    weights /= weights.sum()
    came, narrow = heard(seed, neighbours, f), (own.astype(np.float32), received.astype(np.float32))
    double = run(rule, inbox_of(rule, own, received, weights, f, present=came))
    single = run(rule, inbox_of(rule, *narrow, weights, f, present=came))
    np.testing.assert_allclose(single.models, double.models, rtol=3e-4, atol=3e-4)


def unchanged(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Inputs are not written to."""
    own, received, weights = random_inbox(seed, neighbours)
    inbox = inbox_of(rule, own, received, weights, f, present=heard(seed, neighbours, f))
    held = (inbox.pool.own, inbox.pool.messages, inbox.weight, inbox.present, inbox.f, inbox.index)
    before = [array.copy() for array in held]
    run(rule, inbox)
    for array, old in zip(held, before):
        np.testing.assert_array_equal(array, old)


def coefficients(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Coefficients reproduce the result and, where declared, sum to 1."""
    own, received, weights = random_inbox(seed, neighbours)
    inbox = inbox_of(rule, own, received, weights, f, present=heard(seed, neighbours, f))
    out = run(rule, inbox)
    if out.coefficients is None:
        return
    rebuilt = out.coefficients[0] @ np.vstack([own, received])
    total = out.coefficients[0].sum()
    if out.anchor is not None:
        total += out.anchor[0]  # the anchor is the origin in these inboxes: it adds nothing to the sum
    np.testing.assert_allclose(out.models[0], rebuilt, rtol=1e-9, atol=1e-9)
    if rule.affine:
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def own_counts(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """A rule that declares `keeps_own` counts its own vector, however far it is from all others."""
    own, received, weights = random_inbox(seed, neighbours)
    came = heard(seed, neighbours, f)
    far = run(rule, inbox_of(rule, own + 1e3, received, weights, f, present=came, previous=own + 1e3))
    if far.coefficients is not None:
        assert far.coefficients[0, 0] > 1e-9
    farther = run(rule, inbox_of(rule, own + 2e3, received, weights, f, present=came, previous=own + 2e3))
    assert np.abs(farther.models - far.models).min() > 1.0


def weighted(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """A rule that declares `uses_weights` depends on them, if there is something to weigh; no other rule does."""
    own, received, weights = random_inbox(seed, neighbours)
    came = heard(seed, neighbours, f)
    one = run(rule, inbox_of(rule, own, received, weights, 0, present=came))
    changed = False
    ramp = np.linspace(0.0, 1.0, neighbours + 1)
    for tilt in (1.0 + 3.0 * ramp, 1e4**ramp, 1e4 ** (1.0 - ramp)):  # a rule that picks one vector jumps late
        tilted = weights * tilt
        other = run(rule, inbox_of(rule, own, received, tilted / tilted.sum(), 0, present=came))
        changed = changed or bool(np.abs(one.models - other.models).max() > 1e-9)
    enough = neighbours if rule.name in JUMPS else 2
    assert rule.uses_weights == changed or (rule.uses_weights and came.sum() < enough)


def alike(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """Where a rule declares itself symmetric, it does not matter which of the vectors is its own, if enough arrived."""
    f = min(f, WITHOUT_TIES.get(rule.name, f))
    own, received, _ = random_inbox(seed, neighbours)
    equal = np.full(neighbours + 1, 1.0 / (neighbours + 1))
    came = heard(seed, neighbours, f)
    one = run(rule, inbox_of(rule, own, received, equal, f, present=came))
    swapped = np.vstack([own, received[1:]])
    other = run(rule, inbox_of(rule, received[0], swapped, equal, f, present=came))
    if came[0] and not one.kept.any():
        assert not rule.symmetric or np.allclose(one.models, other.models, rtol=1e-9, atol=1e-9)


def cuts_nothing_at_zero(rule: Rule, seed: int, neighbours: int, f: int, heard: Heard = everybody) -> None:
    """With f = 0 all that arrive count, unless the rule picks a single vector, or a single bucket of `s`."""
    own, received, weights = random_inbox(seed, neighbours)
    came = heard(seed, neighbours, f)
    out = run(rule, inbox_of(rule, own, received, weights, 0, present=came))
    if out.coefficients is not None:
        counted = np.count_nonzero(out.coefficients > 0.0)
        assert counted == came.sum() + 1 or counted <= rule.options.get("s", 1)


CHECKS = [
    permutation,
    translation,
    identical,
    finite,
    far_lies,
    bounded,
    silent,
    ties,
    unchanged,
    coefficients,
    own_counts,
    weighted,
    alike,
    cuts_nothing_at_zero,
]


def applies(check: Any, rule: Rule) -> bool:
    """Whether the rule declares the property."""
    if check is translation:
        return rule.translates
    if check is identical:
        return rule.idempotent
    if check in (bounded, cuts_nothing_at_zero):
        return rule.uses_f
    if check is own_counts:
        return rule.keeps_own
    if check is alike:
        return rule.symmetric
    if check is weighted:
        return rule.name not in ("NoComm",) and not rule.needs_loss
    if check is permutation:
        return not rule.name.startswith("bucketing")
    return True

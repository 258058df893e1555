"""Pre-aggregators: mix the received vectors first, then apply any rule.

Both replace the K slots of an inbox by K' linear combinations of them, y' = A y with one matrix A (K', K) per receiver.
A Gram rule then sees the block A G A^T and its coefficients come back as A^T c; for other rules the mixed vectors
are built. The own vector stays in slot 0.

    bucketing(s)   neighbours in random groups of s, each replaced by its mean; f liars spoil at most f groups
    NNM            every vector, own included, becomes the mean of its S - f nearest (itself included); equal weights
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from byzmesh import rng
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Block, Booleans, Floats, Inbox, Integers, Outcome, Rule, State, normalised, rules, settle
from byzmesh.rules.geometry import mix
from byzmesh.rules.gram import block_of, keep_own
from byzmesh.rules.krum import pick_least
from byzmesh.rules.pool import Pool

Mixed = tuple[Floats, Floats, Booleans]
"""(A (R, K', K), weight (R, K'), present (R, K'))."""


def premixed(name: str, inner: Rule, mixing: Callable[[Block], Mixed], largest_f: Callable[[int], int]) -> Rule:
    """The rule `inner` on mixed inboxes."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, largest_f)
        block = block_of(inbox, f)
        matrix, weight, present = mixing(block)
        if inner.coefficients is None:
            outcome, state = inner.apply(mixed_inbox(inbox, f, matrix, weight, present), state)
            return replace(outcome, models=keep_own(inbox, outcome.models, kept), coefficients=None, kept=kept), state
        product = matrix @ block.inner @ matrix.transpose(0, 2, 1)
        product = product - product[:, :1] - product[:, :, :1] + product[:, :1, :1]
        mixed = replace(block, inner=product, weight=weight, present=present)
        chosen = np.einsum("rg,rgk->rk", inner.coefficients(mixed), matrix)
        chosen[kept] = 0.0
        chosen[kept, 0] = 1.0
        models = keep_own(inbox, mix(inbox.pool, inbox.index, chosen), kept)
        return Outcome(models, chosen, kept, None, chosen[:, 0]), state

    return replace(
        inner,
        name=f"{name}({inner.name})",
        apply=apply,
        largest_f=largest_f,
        uses_f=True,
        coefficients=None,
        options={"inner": {"name": inner.name, **inner.options}},
    )


def mixed_inbox(inbox: Inbox, f: Integers, matrix: Floats, weight: Floats, present: Booleans) -> Inbox:
    """An inbox of the mixed vectors themselves."""
    receivers, groups, slots = matrix.shape
    index = np.repeat(inbox.index, groups, axis=0)
    rows = mix(inbox.pool, index, matrix.reshape(receivers * groups, slots))
    places = np.arange(receivers * groups).reshape(receivers, groups)
    pool = Pool(rows[places[:, 0]], messages=rows[places[:, 1:].ravel()])
    own = np.arange(receivers)[:, None]
    others = receivers + np.arange(receivers * (groups - 1)).reshape(receivers, groups - 1)
    return replace(
        inbox,
        pool=pool,
        index=np.concatenate([own, others], axis=1),
        weight=weight,
        present=present,
        f=f,
    )


def as_rule(rule: Rule | str | dict[str, object]) -> Rule:
    """A rule from itself, its name, or a mapping with `name` and options."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, dict):
        options = {str(option): value for option, value in rule.items() if option != "name"}
        if "name" not in rule:
            raise ConfigError(f"a rule given as a mapping needs the key 'name', got {sorted(options)}")
        return rules.make(str(rule["name"]), **options)
    return rules.make(rule)


@rules.register("bucketing", facts={"feasible": "that of the inner rule for ceil(d / s) neighbours"})
def bucketing(inner: Rule | str = "IOS", s: int = 2) -> Rule:
    """Bucketing: means of random groups of s neighbours, then the inner rule.

    >>> bucketing("Krum", s=2).largest_f(9)
    3
    """
    rule = as_rule(inner)
    if s < 1:
        raise ConfigError(f"bucketing's s must be at least 1, got {s}")

    def mixing(block: Block) -> Mixed:
        receivers, slots = block.present.shape
        groups = -(-(slots - 1) // s)
        draw = rng.uniforms(rng.key(block.seed, rng.RULE), block.receiver, block.round, slots - 1)
        draw[~block.present[:, 1:]] = 2.0
        place = np.empty((receivers, slots - 1), np.int64)
        np.put_along_axis(place, draw.argsort(axis=1, kind="stable"), np.arange(slots - 1)[None, :], axis=1)
        member = (place[:, None, :] // s == np.arange(groups)[None, :, None]) & block.present[:, None, 1:]
        size = member.sum(axis=2)
        matrix = np.zeros((receivers, groups + 1, slots))
        matrix[:, 0, 0] = 1.0
        matrix[:, 1:, 1:] = member / np.maximum(size, 1)[:, :, None]
        weight = np.empty((receivers, groups + 1))
        weight[:, 0] = block.weight[:, 0]
        weight[:, 1:] = np.einsum("rgk,rk->rg", member, block.weight[:, 1:])
        present = np.concatenate([np.ones((receivers, 1), bool), size > 0], axis=1)
        return matrix, weight, present

    def largest_f(neighbours: int) -> int:
        return rule.largest_f(-(-neighbours // s))

    mixed = premixed("bucketing", rule, mixing, largest_f)
    return replace(mixed, options={**mixed.options, "s": s})


@rules.register("NNM", aliases=("nearest-neighbour-mixing",), facts={"feasible": "f < d and that of the inner rule"})
def nnm(inner: Rule | str = "TriMean") -> Rule:
    """Nearest-neighbour mixing: each vector becomes the mean of its S - f nearest, then the inner rule."""
    rule = as_rule(inner)

    def mixing(block: Block) -> Mixed:
        slots = block.present.shape[1]
        both = block.present[:, :, None] & block.present[:, None, :]
        distance = np.where(both, block.distance2, np.inf)
        distance[:, np.arange(slots), np.arange(slots)] = -1.0  # itself first, even where another equals it
        distance = np.where(both, distance, np.inf)
        picks = np.repeat(block.present.sum(axis=1) - block.f, slots)
        chosen = pick_least(distance.reshape(-1, slots), picks, block.tie).reshape(distance.shape)
        matrix = chosen / np.maximum(chosen.sum(axis=2, keepdims=True), 1)
        return matrix, normalised(block.present), block.present

    def largest_f(neighbours: int) -> int:
        return min(max(0, neighbours - 1), rule.largest_f(neighbours))

    return premixed("NNM", rule, mixing, largest_f)

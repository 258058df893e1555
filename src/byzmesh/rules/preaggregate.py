"""Pre-aggregators: mix the received vectors first, then apply any rule.

They replace the K slots of an inbox by K' linear combinations of them, y' = A y with one matrix A (K', K) per receiver.
A Gram rule then sees the block A G A^T and its coefficients come back as A^T c; for other rules the mixed vectors
are built. The receiver's own vector stays in slot 0. A bound b on the weight of lies is not one on that of mixtures
with lies, so the inner rule counts: f, the most lies that b allows. Only behind WeightedNNM is it told b, as mixtures
of an honest vector's nearest are near it whatever is among them.

    bucketing(s)   neighbours in random groups of s, each replaced by its mean; f liars corrupt at most f groups
    NNM            every vector, own included, becomes the mean of its S - f nearest (itself included); equal weights
    WeightedNNM    every vector becomes the weighted mean of its nearest of weight 1 - b; the mixing weights stay
    ARC            the floor(2 f (S - f) / S) vectors farthest from its own are clipped to the next distance
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.rules.base import Block, Inbox, Outcome, Rule, State, settle
from byzmesh.rules.feasible import Feasible, below_half_of_all, below_neighbours
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.gram.products import mix
from byzmesh.rules.gram.rule import block_of, keep_own
from byzmesh.rules.inbox import own_slots
from byzmesh.types import Booleans, Floats, Integers

Mixed = tuple[Floats, Floats, Booleans]
"""(A (R, K', K), weight (R, K'), present (R, K'))."""


def feasible_before(rule: Rule) -> Feasible:
    """How many lies nearest-neighbour mixing takes before this rule."""

    def largest_f(neighbours: int) -> int:
        return min(below_neighbours(neighbours), rule.largest_f(neighbours))

    def resisted(messages: int) -> int:
        most = below_half_of_all(messages)  # with more, every mixture may contain lies
        return most if rule.feasible is None else min(most, rule.feasible.resisted(messages))

    return Feasible("f < d and that of the inner rule", largest_f, resisted)


def premixed(
    name: str,
    inner: Rule,
    mixing: Callable[[Block], Mixed],
    feasible: Feasible,
    *,
    weighted: bool,
    tells_b: bool = False,
    **options: Any,
) -> Rule:
    """The rule `inner` on mixed inboxes.

    weighted  whether a mixed vector has the total weight of its parts; otherwise all have equal weights
    tells_b   whether slot m of the result stands for m, so that b bounds the weight of the liars' slots
    options   of the pre-aggregator

    What is proved about the inner rule (`virtual_mixing`, `contraction`, ...) does not carry over: these
    inboxes contain mixtures of honest models and lies.
    """

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, feasible)
        if not tells_b:
            inbox = replace(inbox, b=None)
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
        return Outcome(models=models, coefficients=chosen, kept=kept, self_weight=chosen[:, 0]), state

    return Rule(
        f"{name}({inner.name})",
        apply,
        init=inner.init,
        options={"inner": {"name": inner.name, **inner.options}, **options},
        feasible=feasible,
        uses_weights=weighted and inner.uses_weights,
        sends=inner.sends,
        needs_previous=inner.needs_previous,
        needs_loss=inner.needs_loss,
        translates=inner.translates,
        idempotent=inner.idempotent,
        affine=inner.affine,
        coordinatewise=inner.coordinatewise,
        keeps_own=inner.keeps_own,  # slot 0 is its own vector or a mean that contains it
    )


def mixed_inbox(inbox: Inbox, f: Integers, matrix: Floats, weight: Floats, present: Booleans) -> Inbox:
    """An inbox of the mixed vectors themselves."""
    receivers, groups, slots = matrix.shape
    index = np.repeat(inbox.index, groups, axis=0)
    rows = mix(inbox.pool, index, matrix.reshape(receivers * groups, slots))
    places = np.arange(receivers * groups).reshape(receivers, groups)
    pool = Pool(rows[places[:, 0]], messages=rows[places[:, 1:].ravel()])
    return replace(inbox, pool=pool, index=own_slots(receivers, groups), weight=weight, present=present, f=f)

"""Rules that are a choice of weights: from a function on the geometry of an inbox to a `Rule`.

A Gram rule is any function `Block -> (R, K) coefficients`. Third parties write only that:

    >>> import numpy as np
    >>> from byzmesh.rules.base import Block
    >>> def nearest_only(block: Block) -> np.ndarray:
    ...     "Half own, half the nearest neighbour."
    ...     distance = np.where(block.present, block.distance2[:, 0], np.inf)
    ...     distance[:, 0] = np.inf
    ...     out = np.zeros_like(block.weight)
    ...     out[:, 0] = 0.5
    ...     out[np.arange(len(out)), distance.argmin(axis=1)] += 0.5
    ...     return out
    >>> rule = gram_rule("nearest-only", nearest_only)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.rules.base import Block, Choosing, Inbox, Outcome, Rule, State, no_state, settle
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.blocks import mixed
from byzmesh.rules.gram.products import inner_blocks, mix, own_blocks, tie_tolerance
from byzmesh.rules.gram.slots import anchored_slots
from byzmesh.types import Booleans, Floats, Integers


def block_of(inbox: Inbox, f: Integers) -> Block:
    """The geometry of an inbox, with the bound f that applies to what arrived."""
    return _block(inbox, f, inner_blocks(inbox.pool, inbox.index, inbox.present), slice(None))


def _block(inbox: Inbox, f: Integers, inner: Floats, few: slice) -> Block:
    """The geometry of some of the receivers."""
    return Block(
        inner=inner,
        weight=inbox.weight[few],
        present=inbox.present[few],
        f=f[few],
        receiver=inbox.receiver[few],
        tie=tie_tolerance(inbox.pool.dtype),
        round=inbox.round,
        b=None if inbox.b is None else inbox.b[few],
    )


def keep_own(inbox: Inbox, models: Any, kept: Booleans) -> Any:
    """The models, but their own for the receivers in `kept`."""
    if kept.any():
        rows = np.flatnonzero(kept)
        models[rows] = inbox.pool.own[inbox.index[rows, 0]]
    return models


def anchored(inbox: Inbox, anchors: Any) -> Inbox:
    """The inbox with one more slot at the end: each receiver's anchor row, present and with weight 0."""
    index, weight, present = anchored_slots(inbox.pool.size, inbox.index, inbox.weight, inbox.present)
    return replace(inbox, pool=inbox.pool.with_anchors(anchors), index=index, weight=weight, present=present)


def checked(coefficients: Any, shape: tuple[int, ...], rule: str) -> Floats:
    """The coefficients as (R, K) floats; a wrong shape is a `ConfigError` that names the rule and both shapes."""
    try:
        chosen = np.asarray(coefficients, np.float64)
    except (TypeError, ValueError):
        given = type(coefficients).__name__
        raise ConfigError(f"rule {rule}: coefficients must be an (R, K) = {shape} array, got {given}") from None
    if chosen.shape != shape:
        raise ConfigError(
            f"rule {rule}: coefficients must be of shape (R, K) = {shape}, a row per receiver and a column per slot, "
            f"got {chosen.shape}"
        )
    return chosen


def gram_rule(
    name: str,
    coefficients: Callable[[Block], Floats],
    *,
    anchor: Callable[[Inbox, State], Any] | None = None,
    remember: bool = False,
    self_weight: Callable[[Inbox], Floats] | None = None,
    init: Callable[[Any], State] = no_state,
    feasible: Feasible | None = None,
    weights_alone_at_zero: bool = False,
    own_distances: bool = False,
    kernel: Any = None,
    settings: tuple[float, ...] = (),
    **facts: Any,
) -> Rule:
    """A rule from its coefficients. They may be asked for some of the receivers at a time.

    anchor       (inbox, state) -> (R, D) points that become one more, last slot (centred clipping's centre)
    remember     whether the next state is this round's output; without an `anchor` the state is the last slot
    self_weight  r_n if it is not the coefficient of slot 0
    feasible     the condition on f, for a rule that uses f
    weights_alone_at_zero  see `Rule`: large networks then compute no distances where f = 0
    own_distances  the coefficients read nothing of `Block.inner` but its diagonal, the squared distances from its own
                 model: a single receiver then computes only these
    kernel, settings  see `Choosing`: the coefficients as a compiled function
    facts        the other fields of `Rule`

    >>> import byzmesh as bm
    >>> mean = gram_rule("plain-mean", lambda block: block.present / block.present.sum(axis=1, keepdims=True))
    >>> bm.aggregate(mean, np.zeros(1), [[3.0], [9.0]])
    array([4.])
    """

    recalls = remember and anchor is None
    if recalls:
        anchor = _state

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, feasible)
        held = inbox if anchor is None else anchored(inbox, anchor(inbox, state))

        def decide(few: slice, inner: Floats) -> Floats:
            chosen = checked(coefficients(_block(held, f, inner, few)), held.index[few].shape, name)
            if not np.isfinite(chosen.sum()):  # the rule has no answer for an inbox: that receiver keeps its own model
                kept[few] |= ~np.isfinite(chosen).all(axis=1)
            if kept[few].any():
                chosen = np.where(kept[few, None], np.arange(chosen.shape[1]) == 0, chosen)
            return chosen

        if strategy.prefers_blocks(held.pool, *held.index.shape):
            needed = (f > 0) if weights_alone_at_zero else np.ones(len(f), bool)
            chosen, models = mixed(held.pool, held.index, held.present, needed, decide, inbox.out)
        else:
            inner = own_blocks(held.pool, held.index, held.present) if own_distances else None
            if inner is None:
                inner = inner_blocks(held.pool, held.index, held.present)
            chosen = decide(slice(None), inner)
            models = mix(held.pool, held.index, chosen, inbox.out)
        models = keep_own(inbox, models, kept)
        share = None if anchor is None else chosen[:, -1]
        inside = chosen if anchor is None else chosen[:, :-1]
        weight = inside[:, 0] if self_weight is None else self_weight(inbox)
        outcome = Outcome(models=models, coefficients=inside, kept=kept, anchor=share, self_weight=weight)
        return outcome, models if remember else state

    whole = coefficients if anchor is None else None
    facts["weights_alone_at_zero"] = weights_alone_at_zero
    known = recalls or (anchor is None and not remember)
    parts = None
    if known:
        compiled = {"kernel": kernel, "settings": settings}
        parts = Choosing(apply, coefficients, feasible, remembers=recalls, own_distances=own_distances, **compiled)
    return Rule(name, apply, init=init, feasible=feasible, coefficients=whole, consists_of=parts, **facts)


def _state(inbox: Inbox, state: State) -> Any:
    return state

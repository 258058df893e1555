"""The paper's generic form: a base aggregator A, combined with the worker's own model.

    A_n = (1 - r_n) A(x_n, messages) + r_n x_n,   0 <= r_n < 1

`bases.py` has the algorithms of the paper's appendix in this form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.checks import fraction
from byzmesh.rules.base import Block, Inbox, Outcome, Rule, State, rules
from byzmesh.rules.interop import from_host
from byzmesh.types import Floats

SelfWeight = float | Callable[[Inbox], Floats]
"""r_n: one number for all workers and rounds, or a function of the inbox that gives (R,) of them."""


@rules.register("generic", aliases=("self-weighted",))
def generic(inner: Rule | str = "GeoMed", r: SelfWeight = 0.5) -> Rule:
    """The generic form: (1 - r) times the result of the inner rule, plus r times its own model.

    inner  the base aggregator A: any rule
    r      a number in [0, 1), or, in Python, a function of the inbox that gives one per receiver

    >>> import byzmesh as bm
    >>> bm.aggregate(bm.generic("coomed", r=0.25), [0.0], [[4.0], [4.0], [90.0]])
    array([3.])
    """
    base = rules.build(inner)
    constant = None if callable(r) else fraction("rule generic: r", r, one=False)

    def own_share(inbox: Inbox) -> Floats:
        return r(inbox) if callable(r) else np.full(len(inbox.index), float(r))

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        outcome, state = base.apply(inbox, state)
        share = own_share(inbox)
        own = inbox.pool.own[inbox.index[:, 0]] if inbox.half is None else inbox.half
        whole = from_host(share[:, None], own)
        mixed = outcome.models * (1 - whole) + own * whole
        weight = outcome.coefficients
        if weight is not None:
            weight = weight * (1.0 - share)[:, None]
            weight[:, 0] += share
        anchor = None if outcome.anchor is None else outcome.anchor * (1.0 - share)
        return replace(outcome, models=mixed, coefficients=weight, anchor=anchor, self_weight=share), state

    options: dict[str, Any] = {"inner": {"name": base.name, **base.options}}
    return replace(
        base,
        name=f"generic({base.name})",
        apply=apply,
        options=options if constant is None else {**options, "r": constant},
        coefficients=_weighed(base.coefficients, constant),
        keeps_own=base.keeps_own or bool(constant),
        symmetric=False,  # r of its own model comes on top
        virtual_mixing=None,
        contraction=None,
        gossip_error=None,
        square_error=None,
    )


def _weighed(coefficients: Callable[[Block], Floats] | None, share: float | None) -> Callable[[Block], Floats] | None:
    """The coefficients with this weight on its own model; None if the rule has no coefficients or no single weight."""
    if coefficients is None or share is None:
        return None

    def weighed(block: Block) -> Floats:
        chosen: Floats = coefficients(block) * (1.0 - share)
        chosen[:, 0] += share
        return chosen

    return weighed

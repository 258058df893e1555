"""UBAR: two stages of trust, by distance and then by performance on the receiver's own data.

With y_m what neighbour m sent:

    N = the floor(rho d) nearest neighbours,    A = {m in N : loss(y_m) <= loss(x_n)}
    x_n <- alpha x_n + (1 - alpha) (the mean of the y_m, m in A)
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import choice, fraction
from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.gram.products import mix, tie_tolerance
from byzmesh.rules.gram.rule import block_of
from byzmesh.rules.inbox import candidate_losses
from byzmesh.rules.nearest import pick_least


@rules.register("UBAR", published={"fallback": "best"})
def ubar(rho: float = 0.4, alpha: float = 0.5, fallback: str = "own") -> Rule:
    """UBAR: of the floor(rho d) nearest neighbours, average those whose loss on its own batch does not exceed its own.

    x_n = alpha x_n + (1 - alpha) mean of the accepted.

    If none is accepted, fallback="own" gives x_n; "best" accepts the nearest with the smallest loss, as published.
    """
    fraction("rule UBAR: rho", rho, zero=False)
    fraction("rule UBAR: alpha", alpha, one=False)
    choice("rule UBAR: fallback", fallback, ("own", "best"))

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        receivers, slots = inbox.index.shape
        block = block_of(inbox, inbox.f)
        distance = np.where(inbox.present, np.einsum("rkk->rk", block.inner), np.inf)
        distance[:, 0] = np.inf
        picks = np.floor(rho * (inbox.present.sum(axis=1) - 1)).astype(np.int64)
        near = pick_least(distance, picks, tie_tolerance(inbox.pool.dtype))
        loss = candidate_losses(inbox, "UBAR")
        accepted = near & (loss <= loss[:, :1])
        if fallback == "best":
            best = np.where(near, loss, np.inf).argmin(axis=1)[:, None] == np.arange(slots)
            accepted |= near & best & ~accepted.any(axis=1, keepdims=True)
        count = accepted.sum(axis=1, keepdims=True)
        chosen = (1.0 - alpha) * accepted / np.maximum(count, 1)
        chosen[:, 0] = np.where(count[:, 0] > 0, alpha, 1.0)
        models = mix(inbox.pool, inbox.index, chosen)
        kept = np.zeros(receivers, bool)
        return Outcome(models=models, coefficients=chosen, kept=kept, self_weight=chosen[:, 0]), state

    return Rule(
        "UBAR",
        apply,
        needs_loss=True,
        translates=False,
        options={"rho": rho, "alpha": alpha, "fallback": fallback},
        keeps_own=alpha > 0.0,
    )

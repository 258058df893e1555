"""Zeno: trust the neighbours whose models do best on the receiver's own data and are not far away.

    score_m = loss(x_n) - loss(y_m) - rho ||y_m - x_n||^2,     the loss on the receiver's own batch
    x_n <- mean of x_n and of the d - f neighbours with the highest scores

The publication scores gradients at a server with data of its own (Xie, Koyejo and Gupta 2019). Here every worker is
such a server, a candidate is a model instead of a step, and its own model always counts: r_n = 1/(d - f + 1). The
publication's penalty on gradients is this rho times the square of the step size. As loss(x_n) is the same for all, only
the neighbours' losses and distances matter. A loss that is not finite gives the lowest score.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import at_least
from byzmesh.rules.base import Inbox, Outcome, Rule, State, normalised, rules, settle
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gossip import reach2
from byzmesh.rules.gram.products import mix
from byzmesh.rules.gram.rule import block_of
from byzmesh.rules.inbox import candidate_losses
from byzmesh.rules.nearest import pick_least


@rules.register("Zeno")
def zeno(rho: float = 0.05) -> Rule:
    """Zeno: the mean of its own model and the d - f neighbours with the smallest loss(y) + rho ||y - x_n||^2.

    The loss is that on the receiver's own batch. Among equal scores the lowest sender comes first.

    >>> import byzmesh as bm
    >>> bm.aggregate("zeno", [1.0], [[0.0], [2.0], [-9.0]], f=2, loss=lambda x: float(x[0] ** 2))
    array([0.5])
    """
    at_least("rule Zeno: rho", rho, 0)

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, BELOW_NEIGHBOURS)
        block = block_of(inbox, f)
        loss = candidate_losses(inbox, "Zeno")
        others = inbox.present & np.isfinite(loss)
        others[:, 0] = False
        cost = np.where(others, loss, 0.0) + rho * reach2(block)
        least = np.where(others, cost, 0.0).min(axis=1, keepdims=True)
        picks = np.where(kept, 0, inbox.present.sum(axis=1) - 1 - f)
        trusted = pick_least(np.where(others, cost - least, np.inf), picks, block.tie)
        trusted[:, 0] = True
        chosen = normalised(trusted)
        models = mix(inbox.pool, inbox.index, chosen)
        return Outcome(models=models, coefficients=chosen, kept=kept, self_weight=chosen[:, 0]), state

    return Rule(
        "Zeno",
        apply,
        feasible=BELOW_NEIGHBOURS,
        needs_loss=True,
        translates=False,
        options={"rho": rho},
        keeps_own=True,
    )

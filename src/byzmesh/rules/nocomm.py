"""NoComm: no communication, the baseline that no liar can reach.

With the half step of a round:

    x_n^{k+1} = x_n^{k+1/2}
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.types import Floats


def unmoved(near: Neighbourhoods) -> Floats:
    """rho = 0: with W = I the average that a worker should form is its own model."""
    return np.zeros(len(near.f))


@rules.register("NoComm", aliases=("no-communication", "local"))
def nocomm() -> Rule:
    """No communication: every worker keeps its own half step."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        coefficients = np.zeros(inbox.weight.shape)
        coefficients[:, 0] = 1.0
        kept = np.zeros(len(inbox.index), bool)
        models = inbox.pool.own[inbox.index[:, 0]]
        return Outcome(models=models, coefficients=coefficients, kept=kept, self_weight=coefficients[:, 0]), state

    return Rule(
        "NoComm",
        apply,
        keeps_own=True,
        virtual_mixing="own",
        contraction=Contraction(unmoved, "no worker listens to any other"),
    )

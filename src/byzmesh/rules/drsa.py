"""Decentralized RSA: a sign penalty instead of an average.

    x_n <- x_n^{k+1/2} + alpha^k C sum_m sign(y_m - x_n)

Each neighbour moves each coordinate by at most alpha C, whatever it sends. In the text the signs are taken at the half
steps, r_n = 1 - alpha C; in the published runs at the models before the gradient step, which are then what is sent.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import at_least, choice
from byzmesh.entries import ByPartition
from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.ranks import sign_sum


@rules.register("DRSA", aliases=("decentralized-rsa",), published={"at": "start", "penalty": ByPartition(0.001, 0.5)})
def drsa(penalty: float = 0.001, at: str = "half") -> Rule:
    """Decentralized RSA: its own half step plus step size times penalty times the sum of the neighbours' signs.

    at="half": signs of the differences of the half steps (the text); "start": of the models before the gradient step.
    """
    at_least("rule DRSA: penalty", penalty, 0)
    choice("rule DRSA: at", at, ("half", "start"))

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        reference = inbox.pool.own[inbox.index[:, 0]]
        base = reference if inbox.half is None else inbox.half
        neighbours = inbox.present.copy()
        neighbours[:, 0] = False
        signs = sign_sum((inbox.pool.own, inbox.pool.dense_messages()), inbox.index, neighbours, reference)
        factor = inbox.round.step_size * penalty
        kept = np.zeros(len(inbox.index), bool)
        models = base + signs * factor
        return Outcome(models=models, kept=kept, self_weight=np.full(len(kept), 1.0 - factor)), state

    return Rule(
        "DRSA",
        apply,
        sends=at,
        coordinatewise=True,
        options={"penalty": penalty, "at": at},
        keeps_own=True,
    )

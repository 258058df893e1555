"""BALANCE: accept neighbours within a radius that is relative to its own model's length and shrinks during training.

    A    = {m : ||y_m - x_n|| <= gamma exp(-kappa t / T) ||x_n||}       t the round, T their number
    x_n <- alpha x_n + (1 - alpha) mean of A, or x_n if A is empty      (Fang et al., CCS 2024)

This is the only rule here that uses the length of a model, so a shift of all models changes its decisions. The length
enters as the distance to one more point, the origin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import at_least, fraction
from byzmesh.rules.base import Block, Inbox, Rule, State, rules
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("BALANCE")
def balance(gamma: float = 0.3, kappa: float = 1.0, alpha: float = 0.5) -> Rule:
    """Average with the neighbours within gamma exp(-kappa t/T) times the length of its own model.

    Without a number of rounds (a single `aggregate`) the radius is that of round 0.

    >>> import byzmesh as bm
    >>> bm.aggregate("balance", [1.0, 0.0], [[1.2, 0.0], [0.0, 1.0]])
    array([1.1, 0. ])
    """
    at_least("rule BALANCE: gamma", gamma, 0)
    at_least("rule BALANCE: kappa", kappa, 0)
    fraction("rule BALANCE: alpha", alpha)

    def origin(inbox: Inbox, state: State) -> Any:
        return inbox.pool.own[inbox.index[:, 0]] * 0

    def coefficients(block: Block) -> Floats:
        reach2 = np.einsum("rkk->rk", block.inner)
        limit2 = (gamma * np.exp(-kappa * block.round.progress)) ** 2 * reach2[:, -1:]
        accepted = block.present & (reach2 <= limit2 * (1.0 + block.tie))
        accepted[:, 0] = accepted[:, -1] = False
        count = accepted.sum(axis=1, keepdims=True)
        shares: Floats = np.where(accepted, (1.0 - alpha) / np.maximum(count, 1), 0.0)
        shares[:, 0] = 1.0 - shares[:, 1:].sum(axis=1)
        return shares

    return gram_rule(
        "BALANCE",
        coefficients,
        anchor=origin,
        translates=False,
        options={"gamma": gamma, "kappa": kappa, "alpha": alpha},
        keeps_own=alpha > 0.0,
        uses_length=kappa != 0.0,
    )

"""Weighted mean and no communication: the two baselines of the paper."""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.geometry import mix


@rules.register("WeiMean", aliases=("mean", "weighted-mean", "average"))
def weimean() -> Rule:
    """Weighted mean x_n = sum_m w'_nm x_m: optimal without liars, defenceless with one."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        kept = np.zeros(len(inbox.index), bool)
        models = mix(inbox.pool, inbox.index, inbox.weight)
        return Outcome(models, inbox.weight, kept, None, inbox.weight[:, 0]), state

    return Rule("WeiMean", apply, uses_weights=True)


@rules.register("NoComm", aliases=("no-communication", "local"))
def nocomm() -> Rule:
    """No communication: every worker keeps its own half step."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        coefficients = np.zeros(inbox.weight.shape)
        coefficients[:, 0] = 1.0
        kept = np.zeros(len(inbox.index), bool)
        return Outcome(inbox.pool.own[inbox.index[:, 0]], coefficients, kept, None, coefficients[:, 0]), state

    return Rule("NoComm", apply)

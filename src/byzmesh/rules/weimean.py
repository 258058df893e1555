"""WeiMean: the weighted mean, the baseline that every liar can move."""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.gram.products import mix


@rules.register("WeiMean", aliases=("mean", "weighted-mean", "average"))
def weimean() -> Rule:
    """Weighted mean x_n = sum_m w'_nm x_m: optimal without liars, defenceless with one."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        kept = np.zeros(len(inbox.index), bool)
        models = mix(inbox.pool, inbox.index, inbox.weight)
        return Outcome(models, inbox.weight, kept, None, inbox.weight[:, 0]), state

    return Rule("WeiMean", apply, uses_weights=True)

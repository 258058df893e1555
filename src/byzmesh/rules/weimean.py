"""WeiMean: the weighted mean, the baseline that every liar can move.

With y_m what neighbour m sent:

    x_n = sum_m w'_nm y_m, own included
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Choosing, Inbox, Outcome, Rule, State, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.gram.products import mix
from byzmesh.types import Floats


def follows_liars(near: Neighbourhoods) -> Floats:
    """Infinite where a lie has any weight, because it can move the mean any distance. Elsewhere the mean is xbar_n."""
    return np.where(near.lying_weight > 0.0, np.inf, 0.0)


@rules.register("WeiMean", aliases=("mean", "weighted-mean", "average"))
def weimean() -> Rule:
    """Weighted mean x_n = sum_m w'_nm x_m: optimal without liars, defenceless with one."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        kept = np.zeros(len(inbox.index), bool)
        models = mix(inbox.pool, inbox.index, inbox.weight)
        return Outcome(models=models, coefficients=inbox.weight, kept=kept, self_weight=inbox.weight[:, 0]), state

    return Rule(
        "WeiMean",
        apply,
        uses_weights=True,
        consists_of=Choosing(apply, None),
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=Contraction(follows_liars, "a mean follows a liar as far as it goes; without one it is exact"),
    )

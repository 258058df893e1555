"""SCC: self-centred clipping, mixing weights around the receiver's own model.

With y_m what neighbour m sent:

    x_n <- x_n + sum_m w'_nm clip(y_m - x_n, tau),    clip(z, tau) = min(1, tau / ||z||) z
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import positive
from byzmesh.entries import ByPartition
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.clipping import FIXED_RADIUS, clip_from_own, clip_towards
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


def moved(near: Neighbourhoods) -> Floats:
    """Infinite where a lie has any weight (see `clipping`); nothing is proved elsewhere."""
    return np.where(near.lying_weight > 0.0, np.inf, np.nan)


@rules.register("SCC", aliases=("self-centered-clipping",), published={"tau": ByPartition(0.1, 0.3)})
def scc(tau: float = 0.3) -> Rule:
    """Self-centred clipping: x_n + sum_m w'_nm clip(y_m - x_n, tau); r_n = w'_nn."""
    positive("rule SCC: tau", tau)

    def coefficients(block: Block) -> Floats:
        start = np.zeros(block.weight.shape)
        start[:, 0] = 1.0
        return clip_towards(block.inner, start, block.weight, tau, 1)

    return gram_rule(
        "SCC",
        coefficients,
        kernel=clip_from_own,
        settings=(tau,),
        self_weight=lambda inbox: inbox.weight[:, 0],
        uses_weights=True,
        options={"tau": tau},
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=Contraction(moved, FIXED_RADIUS),
    )

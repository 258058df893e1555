"""RTC: remove, then clip (Yang and Ghaderi 2024, from its description).

    x_n <- x_n + sum_{m in N} w'_nm clip(y_m - x_n, tau_n),    clip(z, tau) = min(1, tau / ||z||) z
    tau_n^2 = (1 / b_n) sum_{m in N} w'_nm ||y_m - x_n||^2

over the set N that is left when the farthest neighbours, of weight b_n, are removed.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gossip import adaptive_radius2, clipped, kept_nearest, reach2
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("RTC", aliases=("remove-then-clip",))
def rtc() -> Rule:
    """Remove the farthest neighbours of weight b_n, then clip the rest to tau^2 = (1/b_n) sum_{rest} w' ||z||^2."""

    def coefficients(block: Block) -> Floats:
        kept = kept_nearest(block, 1.0)
        return clipped(np.where(kept, block.weight, 0.0), reach2(block), adaptive_radius2(block, kept))

    return gram_rule("RTC", coefficients, feasible=BELOW_NEIGHBOURS, uses_weights=True, keeps_own=True)

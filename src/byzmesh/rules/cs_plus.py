"""CS+: clip to the largest distance among the surely honest (Gaucher, Dieuleveut and Hendrikx 2024).

Gossip with it contracts if 2 rho b < mu_2 with rho = 2, as proved there.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.gossip import clipped, kept_nearest, reach2
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("CS+", aliases=("clipped-sum-plus", "csplus"))
def cs_plus() -> Rule:
    """Clip every neighbour to the largest distance among the nearest of weight W'(neighbours) - 2 b_n."""

    def coefficients(block: Block) -> Floats:
        radius2 = np.where(kept_nearest(block, 2.0), reach2(block), 0.0).max(axis=1)
        return clipped(block.weight, reach2(block), radius2)

    return gram_rule("CS+", coefficients, feasible=BELOW_HALF, uses_weights=True, keeps_own=True, gossip_factor=2.0)

"""GTS, the gossip trimmed sum: drop the farthest neighbours of weight b_n (Gaucher, Dieuleveut and Hendrikx 2024).

Gossip with it contracts if 2 rho b < mu_2 with rho = 4, as proved there.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gossip import kept_nearest, rest_to_own
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("GTS", aliases=("gossip-trimmed-sum",))
def gts() -> Rule:
    """Drop the farthest neighbours of weight b_n; what they weighed goes to its own model."""

    def coefficients(block: Block) -> Floats:
        return rest_to_own(np.where(kept_nearest(block, 1.0), block.weight, 0.0))

    return gram_rule(
        "GTS", coefficients, feasible=BELOW_NEIGHBOURS, uses_weights=True, keeps_own=True, gossip_factor=4.0
    )

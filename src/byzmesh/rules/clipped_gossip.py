"""ClippedGossip with its adaptive radius (He, Karimireddy and Jaggi 2022).

    x_n <- x_n + sum_m w'_nm clip(y_m - x_n, tau_n),    clip(z, tau) = min(1, tau / ||z||) z
    tau_n^2 = (1 / b_n) sum_{m in N} w'_nm ||y_m - x_n||^2

over the set N of the nearest neighbours that weigh all but b_n, the weight of the f heaviest.
"""

from __future__ import annotations

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gossip import adaptive_radius2, clipped, kept_nearest, reach2
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("ClippedGossip", aliases=("clipped-gossip", "adaptive-clipping"))
def clipped_gossip() -> Rule:
    """Clip every neighbour to tau, tau^2 = (1/b_n) sum w' ||z||^2 over the nearest of weight W'(neighbours) - b_n."""

    def coefficients(block: Block) -> Floats:
        return clipped(block.weight, reach2(block), adaptive_radius2(block, kept_nearest(block, 1.0)))

    return gram_rule("ClippedGossip", coefficients, feasible=BELOW_NEIGHBOURS, uses_weights=True, keeps_own=True)

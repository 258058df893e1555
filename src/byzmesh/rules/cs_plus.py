"""CS+: clip to the largest distance among neighbours that must be honest (Gaucher, Dieuleveut and Hendrikx 2024).

What is proved (docs/theory.md, "Rules that keep the nearest"), with b_n the weight of the f heaviest neighbours and d_n
the most that the nearest of weight W'(neighbours) - 2 b_n can leave out (2 b_n if all weigh the same):

    rho_n <= 2 d_n                                             with the W that gives lies' weight to own
    ||A_n - xbar_n||^2 <= d_n  sum_m w'_nm ||x_n - x_m||^2      over the honest neighbours m

The second is 2 b_n on even weights, the rho = 2 of the publication.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods, most_dropped
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.gossip import clipped, kept_nearest, reach2
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


def gossip_error(near: Neighbourhoods) -> Floats:
    """d, NaN where more lie than are expected."""
    return np.where(near.lying <= near.f, most_dropped(near, 2.0), np.nan)


def moved_at_most(near: Neighbourhoods) -> Floats:
    """2 d."""
    return 2.0 * gossip_error(near)


@rules.register("CS+", aliases=("clipped-sum-plus", "csplus"))
def cs_plus() -> Rule:
    """Clip every neighbour to the largest distance among the nearest of weight W'(neighbours) - 2 b_n."""

    def coefficients(block: Block) -> Floats:
        radius2 = np.where(kept_nearest(block, 2.0), reach2(block), 0.0).max(axis=1)
        return clipped(block.weight, reach2(block), radius2)

    return gram_rule(
        "CS+",
        coefficients,
        feasible=BELOW_HALF,
        uses_weights=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=Contraction(moved_at_most, "clipped to an honest distance"),
        gossip_error=gossip_error,
    )

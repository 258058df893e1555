"""GTS, the gossip trimmed sum: drop the farthest neighbours of weight b_n (Gaucher, Dieuleveut and Hendrikx 2024).

What is proved (docs/theory.md, "Rules that keep the nearest"), with b_n the weight of the f heaviest neighbours and
d_n >= b_n the most that can be dropped (b_n itself if all weigh the same; neighbours are dropped whole):

    rho_n <= 2 (b_n + d_n)                                                with the W that gives lies' weight to own
    ||A_n - xbar_n||^2 <= (b_n + d_n)^2 / d_n  sum_m w'_nm ||x_n - x_m||^2  over the honest neighbours m

The second is 4 b_n on even weights, the rho = 4 of the publication.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods, most_dropped
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gossip import kept_nearest, rest_to_own
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


def moved_at_most(near: Neighbourhoods) -> Floats:
    """2 (b + d), NaN where more lie than are expected."""
    return np.where(near.lying <= near.f, 2.0 * (near.cut_weight() + most_dropped(near)), np.nan)


def gossip_error(near: Neighbourhoods) -> Floats:
    """(b + d)^2 / d, NaN where more lie than are expected."""
    dropped = most_dropped(near)
    error = (near.cut_weight() + dropped) ** 2 / np.where(dropped > 0.0, dropped, 1.0)
    return np.where(near.lying <= near.f, error, np.nan)


@rules.register("GTS", aliases=("gossip-trimmed-sum",))
def gts() -> Rule:
    """Drop the farthest neighbours of weight b_n; their weight goes to its own model."""

    def coefficients(block: Block) -> Floats:
        return rest_to_own(np.where(kept_nearest(block, 1.0), block.weight, 0.0))

    return gram_rule(
        "GTS",
        coefficients,
        feasible=BELOW_NEIGHBOURS,
        uses_weights=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=Contraction(moved_at_most, "the nearest are kept"),
        gossip_error=gossip_error,
    )

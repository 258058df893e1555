"""FABA: IOS's predecessor, with equal weights.

    f times leave out the neighbour m in U farthest from the mean of U
    x_n = the mean of U, own included

With its own model inside the means that decide the cuts, it is IOS on equal weights, so Theorem 3 holds with
h_n = f_n / (d_n + 1) and equal weights over the honest workers as W; the first wrong cut gives rho <= 2 h / (1 - 2 h),
which is attained (docs/theory.md). With its own model outside, all that is proved is that it is the plain mean if
nothing is cut.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import choice
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS, by_weight, cutting, twice_over_the_rest
from byzmesh.rules.cutting import equal_cuts, mean_of_trusted
from byzmesh.rules.feasible import CUTS_FARTHEST, Feasible, below_half, below_neighbours
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.ios import THEOREM_3
from byzmesh.types import Floats

CUTS_FARTHEST_FROM_OTHERS = Feasible("f < d", below_neighbours, below_half)
"""With its own model outside the means, the lies must be fewer than the honest messages."""


@rules.register("FABA", published={"own": "outside"})
def faba(own: str = "inside") -> Rule:
    """FABA: f times cut the neighbour farthest from the plain mean, then plain mean.

    own="inside": its own model takes part in the means that decide the cuts (the text).
    own="outside": it does not (the published runs); both average it into the result, r_n = 1/(d - f + 1).
    """
    choice("rule FABA: own", own, ("inside", "outside"))

    def coefficients(block: Block) -> Floats:
        equal, room = np.ones(block.weight.shape), np.full(len(block.f), np.inf)
        return mean_of_trusted(block, equal, room, own_inside=own == "inside")

    published = cutting(THEOREM_3, "Theorem 3 with equal weights", equal=True)
    inside = by_weight(twice_over_the_rest, "the first wrong cut, equal weights", equal=True, beside=(published,))
    return gram_rule(
        "FABA",
        coefficients,
        kernel=equal_cuts,
        settings=(float(own == "inside"),),
        feasible=CUTS_FARTHEST if own == "inside" else CUTS_FARTHEST_FROM_OTHERS,
        options={"own": own},
        keeps_own=True,
        weights_alone_at_zero=True,
        virtual_mixing="equal",
        contraction=inside if own == "inside" else MEAN_WITHOUT_CUTS,
    )

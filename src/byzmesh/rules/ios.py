"""IOS, the iterative outlier scissor: the paper's Algorithm 2.

    f times leave out the neighbour m in U farthest from a = sum_{m in U} w'_nm y_m / W'(U)
    x_n = a

Theorem 3: with at most f_n lying neighbours and h_n < 1/3, h_n the sum of the f_n largest weights among n's neighbours,

    rho <= max_n 12 h_n / (1 - 3 h_n)

for the W that gives the liars' weight to the receiver, which is doubly stochastic if W' is symmetric. Its proof looks
at the last wrong cut; the first one (docs/theory.md) gives, for h_n < 1/2, exactly what liars can reach:

    rho <= max_n h_n (3 - 2 h_n) / ((1 - h_n)(1 - 2 h_n))
"""

from __future__ import annotations

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import bound_of_cuts, by_weight, cutting, first_wrong_cut
from byzmesh.rules.cutting import mean_of_trusted, weighted_cuts
from byzmesh.rules.feasible import CUTS_FARTHEST
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats

THEOREM_3 = 12.0
"""The factor of h / (1 - 3 h) in Theorem 3."""


def theorem_3(h: Floats) -> Floats:
    """12 h / (1 - 3 h), NaN where h >= 1/3 and nothing is proved.

    >>> import numpy as np
    >>> theorem_3(np.array([0.0, 0.25, 0.4]))
    array([ 0., 12., nan])
    """
    return bound_of_cuts(h, THEOREM_3)


@rules.register("IOS", aliases=("iterative-outlier-scissor",))
def ios() -> Rule:
    """Iterative outlier scissor: f times cut the neighbour farthest from the weighted mean, then weighted mean.

    x_n = sum_{m in U} w'_nm y_m / sum_{m in U} w'_nm over the trusted set U left after f cuts; r_n = w'_nn / W'(U).
    """

    def coefficients(block: Block) -> Floats:
        return mean_of_trusted(block, block.weight, block.room, own_inside=True)

    return gram_rule(
        "IOS",
        coefficients,
        kernel=weighted_cuts,
        feasible=CUTS_FARTHEST,
        uses_weights=True,
        weights_alone_at_zero=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=by_weight(
            first_wrong_cut, "the first wrong cut", within_b=True, beside=(cutting(THEOREM_3, "Theorem 3"),)
        ),
    )

"""IOS, the iterative outlier scissor: the paper's Algorithm 2."""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import below_neighbours
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("IOS", aliases=("iterative-outlier-scissor",), facts={"feasible": "f < d"})
def ios() -> Rule:
    """Iterative outlier scissor: f times cut the neighbour farthest from the weighted mean, then weighted mean.

    x_n = sum_{m in U} w'_nm y_m / sum_{m in U} w'_nm over the trusted set U left after f cuts; r_n = w'_nn / W'(U).
    """

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.tie, True)
        return normalised(np.where(trusted, block.weight, 0.0))

    return gram_rule("IOS", coefficients, largest_f=below_neighbours, uses_weights=True)

"""FABA: IOS's predecessor, with equal weights."""

from __future__ import annotations

import numpy as np

from byzmesh.checks import choice
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import below_neighbours
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("FABA", published={"own": "outside"}, facts={"feasible": "f < d"})
def faba(own: str = "inside") -> Rule:
    """FABA: f times cut the neighbour farthest from the plain mean, then plain mean.

    own="inside": the own model takes part in the means that decide the cuts (the text).
    own="outside": it does not (the published runs); both average it into the result, r_n = 1/(d - f + 1).
    """
    choice("rule FABA: own", own, ("inside", "outside"))

    def coefficients(block: Block) -> Floats:
        equal = np.ones(block.weight.shape)
        trusted = cut_farthest(block.inner, equal, block.present, block.f, block.tie, own == "inside")
        return normalised(trusted)

    return gram_rule("FABA", coefficients, largest_f=below_neighbours, options={"own": own})

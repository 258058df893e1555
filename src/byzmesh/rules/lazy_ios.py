"""LazyIOS: IOS's cuts, with the weight that was cut returned to the receiver's own model."""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import below_neighbours
from byzmesh.rules.gossip import rest_to_own
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("LazyIOS", aliases=("ios-lazy",), facts={"feasible": "f < d"})
def lazy_ios() -> Rule:
    """IOS's cuts, but the cut weight goes to the own model: x_n + sum_{m in U} w'_nm (y_m - x_n)."""

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.tie, True)
        return rest_to_own(np.where(trusted, block.weight, 0.0))

    return gram_rule("LazyIOS", coefficients, largest_f=below_neighbours, uses_weights=True)

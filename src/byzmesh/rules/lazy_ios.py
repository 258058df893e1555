"""LazyIOS: IOS's cuts, with the weight that was cut returned to the receiver's own model.

With IOS's W and h_n < 1/2, rho <= max_n 2 h_n / (1 - 2 h_n), which is attained: docs/theory.md, "The first wrong cut".
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import by_weight, twice_over_the_rest
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import CUTS_FARTHEST
from byzmesh.rules.gossip import rest_to_own
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("LazyIOS", aliases=("ios-lazy",))
def lazy_ios() -> Rule:
    """IOS's cuts, but the cut weight goes to its own model: x_n + sum_{m in U} w'_nm (y_m - x_n)."""

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.room, block.tie, True)
        return rest_to_own(np.where(trusted, block.weight, 0.0))

    return gram_rule(
        "LazyIOS",
        coefficients,
        feasible=CUTS_FARTHEST,
        uses_weights=True,
        weights_alone_at_zero=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=by_weight(twice_over_the_rest, "the first wrong cut", within_b=True),
    )

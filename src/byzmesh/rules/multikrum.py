"""MultiKrum: the mean of the m vectors with the smallest Krum scores.

With the scores of Krum:

    x_n = (1 / m) (the sum of the m vectors y_m with the smallest scores)
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import whole
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.krum import ALL_BUT_TWO, krum_scores, least_scores
from byzmesh.rules.nearest import pick_least
from byzmesh.types import Floats


@rules.register("MultiKrum", aliases=("multi-krum",))
def multikrum(m: int | None = None) -> Rule:
    """MultiKrum: the mean of the m vectors with the smallest Krum scores (m = S - f by default)."""
    if m is not None:
        whole("rule MultiKrum: m", m, 1)

    def coefficients(block: Block) -> Floats:
        held = block.present.sum(axis=1)
        picks = held - block.f if m is None else np.minimum(m, held)
        return normalised(pick_least(krum_scores(block.distance2, block.present, block.f), picks, block.tie))

    return gram_rule(
        "MultiKrum",
        coefficients,
        kernel=least_scores,
        settings=(0 if m is None else m,),
        feasible=ALL_BUT_TWO,
        symmetric=True,
        options={"m": m},
    )

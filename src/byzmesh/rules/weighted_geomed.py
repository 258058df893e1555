"""WeightedGeoMed: the point with the smallest weighted sum of distances, sum_m w'_nm ||z - y_m||.

A lie moves it by what it weighs, not by being one of S: lies that weigh less than half together cannot take it away,
however many they are.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import at_least
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.geomed import ROUNDING
from byzmesh.rules.geometric_median import geometric_median
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


@rules.register("WeightedGeoMed", aliases=("weighted-geometric-median", "wgm"))
def weighted_geomed(tolerance: float = 1e-5) -> Rule:
    """Geometric median by the mixing weights, own and neighbours; `tolerance` as in GeoMed.

    >>> import byzmesh as bm
    >>> bm.aggregate("wgm", [0.0], [[1.0], [2.0]], weights=[0.3, 0.1, 0.6]).round(6)
    array([2.])
    """
    at_least("rule WeightedGeoMed: tolerance", tolerance, 0)

    def coefficients(block: Block) -> Floats:
        counted = block.present & (block.weight > 0.0)
        counted[:, 0] |= ~counted.any(axis=1)
        mass = np.where(counted & (block.weight > 0.0), block.weight, 1.0)
        return geometric_median(block.inner, counted, mass, tolerance, ROUNDING * block.tie)

    options = {"tolerance": tolerance}
    return gram_rule("WeightedGeoMed", coefficients, options=options, uses_weights=True, virtual_mixing="to-own")

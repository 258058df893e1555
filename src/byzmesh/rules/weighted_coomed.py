"""WeightedCooMed: the weighted median of each coordinate.

Per coordinate, the value at which the mixing weights of all smaller ones, own included, reach one half. Lies that weigh
less than half leave it between two honest values.

For every point c, with lies of weight at most h < 1/2 and sums over the honest, own included (`Rule.square_error`),

    ||x_n - c||^2 <= 2 / (1 - 2 h) sum_m w'_nm ||y_m - c||^2

Proof. In each coordinate at least half of the weight is on the median or beyond it, seen from c, so at least 1/2 - h on
honest values that are no nearer c than the median is. Square, and add up the coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.contraction import twice_over_the_middle
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.interop import from_host, to_host
from byzmesh.rules.ranks.weighted import weighted_median
from byzmesh.types import Booleans, Integers


@rules.register("WeightedCooMed", aliases=("weighted-median", "wcm"))
def weighted_coomed() -> Rule:
    """Coordinate-wise median by the mixing weights; if they reach one half exactly, the middle of two values.

    >>> import byzmesh as bm
    >>> bm.aggregate("wcm", [0.0], [[1.0], [9.0]], weights=[0.3, 0.3, 0.4])
    array([1.])
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        own, messages = vectors(inbox)
        rows = np.concatenate([to_host(own), to_host(messages)])
        return from_host(weighted_median(rows, inbox.index, present, inbox.weight), own)

    return coordinate_rule(
        "WeightedCooMed", models, uses_weights=True, virtual_mixing="to-own", square_error=twice_over_the_middle
    )

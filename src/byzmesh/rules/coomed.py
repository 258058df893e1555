"""CooMed: the median of each coordinate.

With y_m,j coordinate j of what neighbour m sent:

    x_n,j = med over own and neighbours m of y_m,j
"""

from __future__ import annotations

from byzmesh.checks import choice
from byzmesh.rules.base import Rule, rules
from byzmesh.rules.coordinate import rank_rule
from byzmesh.types import Integers


@rules.register("CooMed", aliases=("median", "cm", "coordinate-wise-median"), published={"even": "lower"})
def coomed(even: str = "middle") -> Rule:
    """Coordinate-wise median of own and neighbours.

    For an even number of values, even="middle" takes the mean of the two medians, "lower" the lower one, as published.

    >>> coomed("upper")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: rule CooMed: even must be middle or lower, got 'upper'
    """
    choice("rule CooMed: even", even, ("middle", "lower"))

    def ranks(values: Integers, f: Integers) -> tuple[Integers, Integers]:
        lower = (values - 1) // 2
        return lower, values // 2 + 1 if even == "middle" else lower + 1

    return rank_rule("CooMed", ranks, options={"even": even}, symmetric=True, virtual_mixing="equal")

"""CooMed: the median of each coordinate."""

from __future__ import annotations

from typing import Any

from byzmesh.checks import choice
from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Booleans, Integers


@rules.register("CooMed", aliases=("median", "cm", "coordinate-wise-median"), published={"even": "lower"})
def coomed(even: str = "middle") -> Rule:
    """Coordinate-wise median of own and neighbours.

    For an even number of values, even="middle" takes the mean of the two medians, "lower" the lower one, as published.

    >>> coomed("upper")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: rule CooMed: even must be middle or lower, got 'upper'
    """
    choice("rule CooMed: even", even, ("middle", "lower"))

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        held = present.sum(axis=1)
        lower = (held - 1) // 2
        upper = held // 2 + 1 if even == "middle" else lower + 1
        return rank_mean(vectors(inbox), inbox.index, present, lower, upper)

    return coordinate_rule("CooMed", models, options={"even": even}, virtual_mixing="equal")

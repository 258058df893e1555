"""MeaMed: per coordinate the mean of the S - f values nearest the median.

With y_m,j coordinate j of what neighbour m sent:

    x_n,j = the mean of the S - f values y_m,j nearest med_m y_m,j
"""

from __future__ import annotations

from typing import Any

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import BELOW_HALF_OF_ALL
from byzmesh.rules.ranks import near_median_mean
from byzmesh.types import Booleans, Integers


@rules.register("MeaMed", aliases=("mean-around-median",))
def meamed() -> Rule:
    """Mean around the median: per coordinate the mean of the S - f values nearest the median, own included.

    If two values are equally near the median, the smaller counts as nearer.
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return near_median_mean(vectors(inbox), inbox.index, present, present.sum(axis=1) - f)

    return coordinate_rule("MeaMed", models, feasible=BELOW_HALF_OF_ALL, symmetric=True)

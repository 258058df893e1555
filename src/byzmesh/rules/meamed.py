"""MeaMed: per coordinate the mean of the S - f values nearest the median."""

from __future__ import annotations

from typing import Any

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.ranks import near_median_mean
from byzmesh.types import Booleans, Integers


def largest_mea_med(neighbours: int) -> int:
    """2f < S = d + 1: with more, the median itself may be a lie."""
    return neighbours // 2


BELOW_HALF_OF_ALL = Feasible("2f < d + 1", largest_mea_med)


@rules.register("MeaMed", aliases=("mean-around-median",))
def meamed() -> Rule:
    """Mean around the median: per coordinate the mean of the S - f values nearest the median, own included.

    Of two values equally near the median the smaller counts as nearer.
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return near_median_mean(vectors(inbox), inbox.index, present, present.sum(axis=1) - f)

    return coordinate_rule("MeaMed", models, feasible=BELOW_HALF_OF_ALL)

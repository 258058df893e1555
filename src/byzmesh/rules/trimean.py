"""TriMean: per coordinate the mean without the f smallest and the f largest neighbours.

With y_m,j coordinate j of what neighbour m sent:

    x_n,j = the mean of x_n,j and of the y_m,j without their f smallest and f largest
"""

from __future__ import annotations

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
from byzmesh.rules.coordinate import rank_rule
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.types import Floats, Integers


@rules.register("TriMean", aliases=("trimmed-mean", "tm"))
def trimean() -> Rule:
    """Trimmed mean of own and, per coordinate, the neighbours without the f smallest and f largest; equal weights."""

    def ranks(values: Integers, f: Integers) -> tuple[Integers, Integers]:
        return f, values - 1 - f

    def self_weight(inbox: Inbox, f: Integers) -> Floats:
        weight: Floats = 1.0 / (inbox.present.sum(axis=1) - 2 * f)
        return weight

    return rank_rule(
        "TriMean",
        ranks,
        apart=True,
        feasible=BELOW_HALF,
        self_weight=self_weight,
        keeps_own=True,
        virtual_mixing="equal",
        contraction=MEAN_WITHOUT_CUTS,
    )

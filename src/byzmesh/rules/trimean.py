"""TriMean: per coordinate the mean without the f smallest and the f largest neighbours."""

from __future__ import annotations

from typing import Any

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Booleans, Floats, Integers


@rules.register("TriMean", aliases=("trimmed-mean", "tm"))
def trimean() -> Rule:
    """Trimmed mean of own and, per coordinate, the neighbours without the f smallest and f largest; equal weights."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return rank_mean(vectors(inbox), inbox.index, present, f, present.sum(axis=1) - 1 - f, apart=True)

    def self_weight(inbox: Inbox, f: Integers) -> Floats:
        weight: Floats = 1.0 / (inbox.present.sum(axis=1) - 2 * f)
        return weight

    return coordinate_rule(
        "TriMean",
        models,
        feasible=BELOW_HALF,
        self_weight=self_weight,
        keeps_own=True,
        virtual_mixing="equal",
        contraction=MEAN_WITHOUT_CUTS,
    )

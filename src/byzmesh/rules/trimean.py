"""TriMean: per coordinate the mean without the f least and the f largest neighbours."""

from __future__ import annotations

from typing import Any

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import below_half
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Booleans, Floats, Integers


@rules.register("TriMean", aliases=("trimmed-mean", "tm"), facts={"feasible": "2f < d"})
def trimean() -> Rule:
    """Trimmed mean of own and, per coordinate, the neighbours without the f least and f largest; equal weights."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return rank_mean(vectors(inbox), inbox.index, present, f, present.sum(axis=1) - 1 - f, apart=True)

    def self_weight(inbox: Inbox, f: Integers) -> Floats:
        weight: Floats = 1.0 / (inbox.present.sum(axis=1) - 2 * f)
        return weight

    return coordinate_rule("TriMean", models, largest_f=below_half, self_weight=self_weight)

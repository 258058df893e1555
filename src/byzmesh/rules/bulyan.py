"""Bulyan: S - 2f vectors by repeated Krum, then MeaMed's mean of the S - 4f values nearest their median.

With y_m,j coordinate j of what neighbour m sent:

    U       S - 2f vectors, one after another Krum's choice among those left
    x_n,j   the mean of the S - 4f values y_m,j, m in U, that are nearest their median
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gram.rule import block_of
from byzmesh.rules.ranks import near_median_mean
from byzmesh.types import Booleans, Floats, Integers


@exact
def repeated_krum(distance2: Floats, present: Booleans, f: Integers, picks: Integers, tie: float) -> Booleans:
    """(R, K) the slots picked one after another, each being Krum's choice among the rest.

    With n slots left the score sums over the n - f - 2 nearest others, at least one. Each slot's distances are sorted
    once and picked slots are skipped: O(K^2 log K + picks K^2).
    """
    receivers, slots = present.shape
    chosen = np.zeros((receivers, slots), np.bool_)
    order = np.empty((slots, slots), np.int64)
    scores = np.empty(slots)
    for receiver in range(receivers):
        left = present[receiver].copy()
        for slot in range(slots):
            if left[slot]:
                order[slot] = np.argsort(distance2[receiver, slot])
        for _ in range(picks[receiver]):
            nearest = max(1, left.sum() - f[receiver] - 2)
            least = np.inf
            for slot in range(slots):
                if left[slot]:
                    scores[slot] = 0.0
                    counted = 0
                    for other in order[slot]:
                        if counted == nearest:
                            break
                        if other != slot and left[other]:
                            scores[slot] += distance2[receiver, slot, other]
                            counted += 1
                    least = min(least, scores[slot])
            for slot in range(slots):
                if left[slot] and scores[slot] <= least * (1.0 + tie):
                    chosen[receiver, slot] = True
                    left[slot] = False
                    break
    return chosen


def largest_bulyan(neighbours: int) -> int:
    """S >= 4f + 3 with S = d + 1.

    >>> [largest_bulyan(d) for d in (1, 2, 5, 6, 10)]
    [-1, 0, 0, 1, 2]
    """
    return (neighbours - 2) // 4 if neighbours >= 2 else -1


BELOW_QUARTER = Feasible("d >= 4f + 2", largest_bulyan)


@rules.register("Bulyan")
def bulyan() -> Rule:
    """Bulyan: S - 2f vectors by repeated Krum, then per coordinate the mean of the S - 4f nearest their median."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        block = block_of(inbox, f)
        held = present.sum(axis=1)
        picked = repeated_krum(block.distance2, present, f, held - 2 * f, block.tie)
        return near_median_mean(vectors(inbox), inbox.index, picked, held - 4 * f)

    return coordinate_rule("Bulyan", models, feasible=BELOW_QUARTER, symmetric=True)

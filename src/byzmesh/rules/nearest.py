"""Picks the slots with the smallest scores, for rules that take their nearest."""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.types import Booleans, Floats, Integers


@exact
def pick_least(scores: Floats, picks: Integers, tie: float) -> Booleans:
    """(R, K) the `picks` slots with the smallest scores; among scores equal up to rounding, the lowest slot first."""
    receivers, slots = scores.shape
    chosen = np.zeros((receivers, slots), np.bool_)
    for receiver in range(receivers):
        for _ in range(picks[receiver]):
            best = -1
            for slot in range(slots):
                score = scores[receiver, slot]
                open_slot = not chosen[receiver, slot] and np.isfinite(score)
                if open_slot and (best < 0 or score < scores[receiver, best] * (1.0 - tie)):
                    best = slot
            if best >= 0:
                chosen[receiver, best] = True
    return chosen

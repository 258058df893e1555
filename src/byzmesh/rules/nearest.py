"""Picks the slots with the smallest scores, for rules that take their nearest."""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.types import Booleans, Floats, Integers

_MANY = 8
"""From so many picks on it is faster to separate the smallest scores from the others than to choose one by one."""


@exact
def _pick_apart(scores: Floats, picks: int, tie: float, chosen: Booleans) -> bool:
    """Choose the `picks` smallest of a row if the next one is larger by more than rounding; whether it is.

    Then the order in which they are chosen does not matter. The next one must be positive, so that rounding is
    measured in the right direction.
    """
    values, count = np.empty(scores.size), 0
    for score in scores:
        if np.isfinite(score):
            values[count] = score
            count += 1
    largest = np.inf
    if picks < count:
        ordered = np.partition(values[:count], picks)
        largest = ordered[:picks].max()
        if not (ordered[picks] > 0.0 and largest < ordered[picks] * (1.0 - tie)):
            return False
    for slot in range(scores.size):
        chosen[slot] = np.isfinite(scores[slot]) and scores[slot] <= largest
    return True


@exact
def pick_least(scores: Floats, picks: Integers, tie: float) -> Booleans:
    """(R, K) the `picks` slots with the smallest scores; among scores equal up to rounding, the lowest slot first."""
    receivers, slots = scores.shape
    chosen = np.zeros((receivers, slots), np.bool_)
    for receiver in range(receivers):
        if picks[receiver] >= _MANY and _pick_apart(scores[receiver], picks[receiver], tie, chosen[receiver]):
            continue
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

"""Picks the slots with the smallest scores, or the nearest of a given weight, for rules that take their nearest."""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING
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


@exact
def nearest_of_weight(distance2: Floats, weight: Floats, present: Booleans, most: Floats, tie: float) -> Floats:
    """(R, K, K) how much of every slot's weight counts for each slot: itself first, then the nearest, in all `most`.

    `most` is (R,); the last one counts in part. Among distances equal up to rounding the lowest slot is first; rows of
    absent slots are 0.

    >>> far = np.array([[[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]])
    >>> nearest_of_weight(far, np.array([[0.5, 0.25, 0.25]]), np.ones((1, 3), bool), np.array([0.625]), 1e-12)[0]
    array([[0.5  , 0.125, 0.   ],
           [0.375, 0.25 , 0.   ],
           [0.125, 0.25 , 0.25 ]])
    """
    receivers, slots = weight.shape
    counted = np.zeros((receivers, slots, slots))
    for receiver in range(receivers):
        for slot in range(slots):
            if not present[receiver, slot]:
                continue
            distance, parts = distance2[receiver, slot], counted[receiver, slot]
            parts[slot] = max(0.0, min(weight[receiver, slot], most[receiver]))
            left = most[receiver] - parts[slot]
            order = np.argsort(distance)
            for last in range(1, slots):
                i = last
                while i > 0 and order[i] < order[i - 1] and distance[order[i]] <= distance[order[i - 1]] * (1.0 + tie):
                    order[i], order[i - 1] = order[i - 1], order[i]
                    i -= 1
            for other in order:
                if left > ROUNDING and other != slot and present[receiver, other]:
                    parts[other] = min(left, weight[receiver, other])
                    left -= parts[other]
    return counted

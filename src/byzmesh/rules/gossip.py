"""Gossip rules: the weight of what is dropped or clipped stays with the receiver.

    x_n + sum_m a_m (y_m - x_n),   0 <= a_m <= w'_nm,   z_m = x_n - y_m

The lost weight goes to its own model instead of to the others, so symmetric weights stay symmetric: if exactly the
liars are dropped, the rule realises the paper's doubly stochastic W exactly. The rules take the *weight* b_n of the
lying neighbours instead of their number; unless it is given, it follows from f as the sum of the f largest neighbour
weights, which f liars cannot exceed.

    kept(b)         the nearest neighbours of weight at most W'(neighbours) - b: the longest such run, nearest first
    GTS             a_m = w'_nm on kept(b), else 0
    ClippedGossip   a_m = w'_nm min(1, tau / ||z_m||), tau^2 = (1/b) sum_{kept(b)} w' ||z||^2
    CS+             the same, tau = the largest ||z|| in kept(2 b)
    RTC             remove then clip: ClippedGossip's step and radius on kept(b), 0 outside
    LazyIOS         a_m = w'_nm on what IOS trusts, else 0

Sources: He, Karimireddy and Jaggi 2022 (ClippedGossip, its adaptive radius); Gaucher, Dieuleveut and Hendrikx 2024
(GTS, CS+); Yang and Ghaderi 2024 (RTC, from its description). With b = 0 all of them are the weighted mean.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING, of_the_heaviest
from byzmesh.rules.base import Block, Inbox
from byzmesh.types import Booleans, Floats


def lying_weight(block: Block | Inbox) -> Floats:
    """(R,) b_n: the sum of the f largest weights among the neighbours that were heard, at most the b that was given."""
    heard = of_the_heaviest(block.f, np.where(block.present, block.weight, 0.0)[:, 1:])
    return heard if block.b is None else np.minimum(heard, block.b)


@exact
def keep_nearest(distance2: Floats, weight: Floats, present: Booleans, spare: Floats, tie: float) -> Booleans:
    """(R, K) own and the nearest neighbours whose weights sum to at most those of all neighbours minus `spare`."""
    receivers, slots = weight.shape
    kept = np.zeros((receivers, slots), np.bool_)
    for receiver in range(receivers):
        kept[receiver, 0] = True
        total = 0.0
        for slot in range(1, slots):
            if present[receiver, slot]:
                total += weight[receiver, slot]
        room = total * (1.0 + ROUNDING) - spare[receiver]
        for _ in range(1, slots):
            best = -1
            for slot in range(1, slots):
                left = present[receiver, slot] and not kept[receiver, slot]
                if left and (best < 0 or distance2[receiver, slot] < distance2[receiver, best] * (1.0 - tie)):
                    best = slot
            if best < 0 or weight[receiver, best] > room:
                break
            room -= weight[receiver, best]
            kept[receiver, best] = True
    return kept


def reach2(block: Block) -> Floats:
    """(R, K) squared distances from its own model; rounding may put a product below 0."""
    square: Floats = np.maximum(np.einsum("rkk->rk", block.inner), 0.0)
    return square


def kept_nearest(block: Block, times: float) -> Booleans:
    return keep_nearest(reach2(block), block.weight, block.present, times * lying_weight(block), block.tie)


def rest_to_own(shares: Floats) -> Floats:
    """(R, K) the neighbours' coefficients, with the rest to 1 on its own model.

    >>> rest_to_own(np.array([[0.0, 0.25, 0.25]]))
    array([[0.5 , 0.25, 0.25]])
    """
    shares = shares.copy()
    shares[:, 0] = 1.0 - shares[:, 1:].sum(axis=1)
    return shares


def shrinking(reach2: Floats, radius2: Floats) -> Floats:
    """(R, K) min(1, radius / distance), from squared distances (R, K) and squared radii (R,).

    >>> shrinking(np.array([[0.0, 4.0, 16.0]]), np.array([4.0]))
    array([[1. , 1. , 0.5]])
    """
    far = reach2 > radius2[:, None]
    factor: Floats = np.sqrt(np.where(far, radius2[:, None] / np.where(far, reach2, 1.0), 1.0))
    return factor


def clipped(shares: Floats, reach2: Floats, radius2: Floats) -> Floats:
    """The coefficients times min(1, radius / distance)."""
    return rest_to_own(shares * shrinking(reach2, radius2))


def adaptive_radius2(block: Block, kept: Booleans) -> Floats:
    """(R,) (1/b) sum over the kept of w' ||z||^2; infinite if b = 0."""
    bound = lying_weight(block)
    total = np.where(kept, block.weight * reach2(block), 0.0).sum(axis=1)
    radius2: Floats = np.where(bound > 0.0, total / np.where(bound > 0.0, bound, 1.0), np.inf)
    return radius2

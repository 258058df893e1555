"""MDA: the mean of the S - f vectors with the smallest diameter.

    x_n = the mean of T,    T = the S - f vectors with the smallest max_{i, j in T} ||y_i - y_j||

Leaving out f of S vectors so that no two of the rest are farther apart than t is a vertex cover of at most f in the
graph of the pairs that are farther apart. Such a cover is searched by branching on the vector with the most conflicts:
leave out either it, or all that conflict with it. A vector with one conflict never needs to go itself, and in a ring of
conflicts any may go first. With three conflicts or more there are at most T(f) = T(f - 1) + T(f - 3) branches, 1.47^f,
however the liars choose their messages. The smallest t is found by bisection over the K (K - 1) / 2 distances.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
from byzmesh.rules.feasible import Feasible, below_half_of_all, below_neighbours
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats, Integers

LARGEST_F = 25
"""MDA refuses larger f: 1.47^25 = 14,000 branches."""


@exact
def coverable(conflict: Booleans, left: Booleans, budget: int) -> bool:
    """Whether leaving out at most `budget` of the slots `left` leaves no conflict between them."""
    slots = len(left)
    alive = np.empty((max(budget, 0) + 2, slots), np.bool_)
    spare = np.empty(max(budget, 0) + 2, np.int64)
    alive[0], spare[0] = left, budget
    degree = np.empty(slots, np.int64)
    open_branches = 1
    while open_branches > 0:
        open_branches -= 1
        here, room = alive[open_branches], spare[open_branches]
        while room >= 0:
            total, most, end = 0, 0, -1
            for i in range(slots):
                degree[i] = 0
                if here[i]:
                    for j in range(slots):
                        if here[j] and conflict[i, j]:
                            degree[i] += 1
                    total += degree[i]
                    if degree[i] > degree[most] or not here[most]:
                        most = i
                    if degree[i] == 1 and end < 0:
                        end = i
            if total == 0:
                return True
            if total > 2 * room * degree[most]:
                break
            if end >= 0:
                for j in range(slots):
                    if here[j] and conflict[end, j]:
                        here[j] = False
                room -= 1
            elif degree[most] <= 2 or degree[most] > room:
                here[most] = False
                room -= 1
            else:  # continue without `most`, and return later to keep it
                alive[open_branches + 1] = here
                alive[open_branches + 1, most] = False
                spare[open_branches + 1] = room - 1
                for j in range(slots):
                    if conflict[most, j]:
                        here[j] = False
                spare[open_branches] = room - degree[most]
                open_branches += 1
                here, room = alive[open_branches], spare[open_branches]
    return False


@exact
def tightest(distance2: Floats, present: Booleans, f: Integers, tie: float) -> Booleans:
    """(R, K) the subset of S - f slots with the smallest diameter; the lexicographically first among equals."""
    receivers, slots = present.shape
    best = np.zeros((receivers, slots), np.bool_)
    for receiver in range(receivers):
        there = present[receiver]
        gaps = np.zeros((slots, slots))
        wanted = there.sum() - f[receiver]
        lengths = np.zeros(1 + slots * slots)
        count = 1
        for i in range(slots):
            for j in range(i):
                if there[i] and there[j]:
                    lengths[count] = distance2[receiver, i, j]
                    gaps[i, j] = gaps[j, i] = lengths[count]  # one distance for both ways, whose rounding may differ
                    count += 1
        lengths = np.sort(lengths[:count])
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if coverable(gaps > lengths[middle], there, f[receiver]):
                high = middle
            else:
                low = middle + 1
        conflict = gaps > lengths[low] * (1.0 + tie)
        left, room, kept = there.copy(), f[receiver], 0
        for slot in range(slots):
            if not left[slot] or kept == wanted:
                continue
            without = left & ~conflict[slot]
            gone = left.sum() - without.sum()
            if coverable(conflict, without, room - gone):
                left, room, kept = without, room - gone, kept + 1
                best[receiver, slot] = True
            else:
                left[slot] = False
                room -= 1
    return best


def largest_searchable(neighbours: int) -> int:
    """The largest f < d, at most `LARGEST_F`."""
    return min(below_neighbours(neighbours), LARGEST_F)


SEARCHABLE = Feasible(f"f < d and f <= {LARGEST_F}", largest_searchable, below_half_of_all)


@rules.register("MDA", aliases=("minimum-diameter-averaging",))
def mda() -> Rule:
    """Minimum-diameter averaging: the plain mean of the S - f vectors with the smallest diameter (exact search)."""

    def coefficients(block: Block) -> Floats:
        return normalised(tightest(block.distance2, block.present, block.f, block.tie))

    return gram_rule(
        "MDA",
        coefficients,
        feasible=SEARCHABLE,
        weights_alone_at_zero=True,
        symmetric=True,
        contraction=MEAN_WITHOUT_CUTS,
    )

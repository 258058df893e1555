"""MDA: the mean of the S - f vectors with the smallest diameter."""

from __future__ import annotations

import math

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
from byzmesh.rules.feasible import Feasible, below_neighbours
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats, Integers

LARGEST_SEARCH = 200_000
"""MDA refuses neighbourhoods with more subsets than this."""


@exact
def tightest(distance2: Floats, present: Booleans, f: Integers, tie: float) -> Booleans:
    """(R, K) the subset of S - f slots with the smallest diameter; the lexicographically first among equals."""
    receivers, slots = present.shape
    best_set = np.zeros((receivers, slots), np.bool_)
    for receiver in range(receivers):
        held = np.flatnonzero(present[receiver])
        size = held.size - f[receiver]
        pick = np.arange(size)
        best = -1.0
        while True:
            diameter = 0.0
            for i in range(size):
                for j in range(i):
                    diameter = max(diameter, distance2[receiver, held[pick[i]], held[pick[j]]])
            if best < 0.0 or diameter < best * (1.0 - tie):
                best = diameter
                best_set[receiver] = False
                for i in range(size):
                    best_set[receiver, held[pick[i]]] = True
            place = size - 1
            while place >= 0 and pick[place] == held.size - size + place:
                place -= 1
            if place < 0:
                break
            pick[place] += 1
            for i in range(place + 1, size):
                pick[i] = pick[i - 1] + 1
    return best_set


def largest_searchable(neighbours: int) -> int:
    """Largest f < d for which the number of subsets stays within `LARGEST_SEARCH`."""
    largest = 0
    for f in range(below_neighbours(neighbours) + 1):
        if math.comb(neighbours + 1, f) > LARGEST_SEARCH:
            break
        largest = f
    return largest


SEARCHABLE = Feasible(f"f < d and C(S, f) <= {LARGEST_SEARCH:,}", largest_searchable)


@rules.register("MDA", aliases=("minimum-diameter-averaging",))
def mda() -> Rule:
    """Minimum-diameter averaging: plain mean of the S - f vectors with the smallest diameter (exhaustive search)."""

    def coefficients(block: Block) -> Floats:
        return normalised(tightest(block.distance2, block.present, block.f, block.tie))

    return gram_rule("MDA", coefficients, feasible=SEARCHABLE, contraction=MEAN_WITHOUT_CUTS)

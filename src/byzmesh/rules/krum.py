"""Krum and MultiKrum: the vectors closest to their nearest others.

    score_m = sum of ||y_m - y_i||^2 over its S - f - 2 nearest others i
    x_n     = the y_m with the smallest score

The score of a vector is the sum of its squared distances to its S - f - 2 nearest others (the paper's formula; its text
says S - f - 1). Krum returns the vector with the smallest score, MultiKrum the mean of the m best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Block, Rule, normalise, rules, squared_distances
from byzmesh.rules.feasible import Feasible, below_half
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.nearest import pick_least
from byzmesh.types import Booleans, Floats, Integers

_SHORT = 48


@exact
def sort_short(values: Floats) -> None:
    """Sort in place, by insertion if there are few, which is far faster than a general sort."""
    if values.size > _SHORT:
        values[:] = np.sort(values)
        return
    for place in range(1, values.size):
        value = values[place]
        before = place - 1
        while before >= 0 and values[before] > value:
            values[before + 1] = values[before]
            before -= 1
        values[before + 1] = value


@exact
def krum_scores(distance2: Floats, present: Booleans, f: Integers) -> Floats:
    """(R, K) Krum's scores; infinity where absent."""
    receivers, slots = present.shape
    scores = np.full((receivers, slots), np.inf)
    others = np.empty(slots)
    for receiver in range(receivers):
        for slot in range(slots):
            if present[receiver, slot]:
                count = 0
                for other in range(slots):
                    if other != slot and present[receiver, other]:
                        others[count] = distance2[receiver, slot, other]
                        count += 1
                near = min(count, max(1, count - 1 - f[receiver]))
                if count > _SHORT and near < count:
                    scores[receiver, slot] = np.partition(others[:count], near)[:near].sum()
                else:
                    sort_short(others[:count])
                    scores[receiver, slot] = others[:near].sum()
    return scores


@exact
def least_score(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """Krum's choice as a `Choosing.kernel`."""
    distance2 = np.empty(inner.shape)
    squared_distances(inner, distance2)
    out[:] = pick_least(krum_scores(distance2, present, f), np.ones(f.size, np.int64), tie)


@exact
def least_scores(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """MultiKrum's choice as a `Choosing.kernel`; the setting is m, 0 for S - f."""
    distance2, picks = np.empty(inner.shape), np.empty(f.size, np.int64)
    squared_distances(inner, distance2)
    for receiver in range(f.size):
        held = present[receiver].sum()
        picks[receiver] = min(np.int64(settings[0]), held) if settings[0] > 0.0 else held - f[receiver]
    normalise(pick_least(krum_scores(distance2, present, f), picks, tie), out)


def largest_krum(neighbours: int) -> int:
    """S - f - 2 >= 1 with S = d + 1: the largest f is d - 2."""
    return neighbours - 2 if neighbours >= 2 else -1


ALL_BUT_TWO = Feasible("f <= d - 2", largest_krum, below_half)
"""It resists lies while S - f - 2 >= f: at least one of a lie's nearest others is then honest."""


@rules.register("Krum")
def krum() -> Rule:
    """Krum: the vector with the smallest sum of squared distances to its S - f - 2 nearest others."""

    def coefficients(block: Block) -> Floats:
        scores = krum_scores(block.distance2, block.present, block.f)
        return pick_least(scores, np.ones(len(scores), np.int64), block.tie).astype(np.float64)

    return gram_rule(
        "Krum", coefficients, kernel=least_score, feasible=ALL_BUT_TWO, symmetric=True, virtual_mixing="equal"
    )

"""Krum and MultiKrum: the vectors that lie closest to their nearest others.

The score of a vector is the sum of its squared distances to its S - f - 2 nearest others (the paper's formula; its
sentence says S - f - 1). Krum returns the vector of the least score, MultiKrum the mean of the m best.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Block, Booleans, Floats, Integers, Rule, normalised, rules
from byzmesh.rules.gram import gram_rule


@exact
def sort_short(values: Floats) -> None:
    """Sort in place: by insertion while there are few, which beats a general sort by far."""
    if values.size > 48:
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
                sort_short(others[:count])
                scores[receiver, slot] = others[: min(count, max(1, count - 1 - f[receiver]))].sum()
    return scores


@exact
def pick_least(scores: Floats, picks: Integers, tie: float) -> Booleans:
    """(R, K) the `picks` slots of least score; within rounding the lowest slot goes first."""
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


def largest_krum(neighbours: int) -> int:
    """S - f - 2 >= 1 with S = d + 1: the largest f is d - 2."""
    return neighbours - 2 if neighbours >= 2 else -1


@rules.register("Krum", facts={"feasible": "f <= d - 2"})
def krum() -> Rule:
    """Krum: the one vector with the least sum of squared distances to its S - f - 2 nearest others."""

    def coefficients(block: Block) -> Floats:
        scores = krum_scores(block.distance2, block.present, block.f)
        return pick_least(scores, np.ones(len(scores), np.int64), block.tie).astype(np.float64)

    return gram_rule("Krum", coefficients, largest_f=largest_krum)


@rules.register("MultiKrum", aliases=("multi-krum",), facts={"feasible": "f <= d - 2"})
def multikrum(m: int | None = None) -> Rule:
    """MultiKrum: the mean of the m vectors of least Krum score (m = S - f by default)."""
    if m is not None and m < 1:
        raise ConfigError(f"MultiKrum's m must be at least 1, got {m}")

    def coefficients(block: Block) -> Floats:
        held = block.present.sum(axis=1)
        picks = held - block.f if m is None else np.minimum(m, held)
        return normalised(pick_least(krum_scores(block.distance2, block.present, block.f), picks, block.tie))

    return gram_rule("MultiKrum", coefficients, largest_f=largest_krum, options={"m": m})

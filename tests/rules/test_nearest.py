"""The smallest scores at once are those chosen one by one; the nearest of a weight are in the order of slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.rules.nearest import nearest_of_weight, pick_least


def one_by_one(scores: Any, picks: int, tie: float) -> Any:
    chosen = np.zeros(len(scores), bool)
    for _ in range(picks):
        best = -1
        for slot in np.flatnonzero(np.isfinite(scores) & ~chosen).tolist():
            if best < 0 or scores[slot] < scores[best] * (1.0 - tie):
                best = slot
        if best >= 0:
            chosen[best] = True
    return chosen


def test_near_ties_negative_scores_and_slots_that_are_not_there() -> None:
    random, apart = np.random.default_rng(0), 0
    for trial in range(600):
        slots, tie = int(random.integers(1, 40)), float(random.choice([0.0, 2e-6, 1e-12, 0.1]))
        scores = random.random(slots) if trial % 2 else random.integers(0, 12, slots).astype(float)
        scores *= 1.0 + 1e-6 * random.normal(size=slots) * (trial % 3 == 0)
        scores -= 0.3 * (trial % 5 == 0)
        scores[random.random(slots) < 0.2 * (trial % 4 == 0)] = random.choice([np.inf, -np.inf, np.nan])
        picks = int(random.integers(0, slots + 3))
        found = pick_least(scores[None], np.array([picks]), tie)[0]
        np.testing.assert_array_equal(found, one_by_one(scores, picks, tie))
        apart += picks >= 8
    assert apart > 200


def test_the_nearest_of_a_weight_are_in_the_order_of_slots_if_distances_are_equal_up_to_rounding() -> None:
    """Whole distances, each off by less than the tolerance; some slots are absent."""
    random, tied = np.random.default_rng(0), 0
    for _ in range(300):
        slots, tie = int(random.integers(2, 30)), float(random.choice([1e-12, 2e-6]))
        whole = random.integers(1, 6, (slots, slots))
        off = whole * (1.0 + 0.4 * tie * random.uniform(-1.0, 1.0, (slots, slots)))
        present = random.random(slots) < 0.9
        weight = random.dirichlet(np.ones(slots))
        most = float(random.uniform(0.3, 1.0))
        found = nearest_of_weight(off[None], weight[None], present[None], np.array([most]), tie)[0]
        for slot in range(slots):
            parts, left = np.zeros(slots), most if present[slot] else 0.0
            others = [other for other in np.flatnonzero(present).tolist() if other != slot]
            for other in [slot, *sorted(others, key=lambda other: (whole[slot, other], other))]:
                parts[other] = min(left, weight[other])
                left -= parts[other]
            np.testing.assert_allclose(found[slot], parts, atol=1e-12)
            tied += len(others) > len(set(whole[slot, others].tolist()))
    assert tied > 1000

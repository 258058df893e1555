"""Reprieve: cut as IOS does, then take back those that were cut needlessly.

IOS must cut f messages even when nobody lies, and then it cuts honest workers whose data differ. Reprieve looks again,
from the trusted average that the cuts left:

    U    the f-fold cut of IOS, its own model inside                    (n the receiver, w' the mixing weights)
    a    = sum_{m in U} w'_nm y_m / W'(U)                               what IOS would return
    s    = weighted median of ||y_m - a|| over U, its own included
    V    = U and every cut m with ||y_m - a|| <= c s
    x_n  = sum_{m in V} w'_nm y_m / W'(V)

Cutting first makes the centre safe, and the weighted median is at most an honest distance as long as the f heaviest
neighbours together weigh h < 1/3, the condition of Theorem 3. A reprieved liar is then within c s of a safe centre, and

    rho <= max_n h_n max((1 + 2 t_n) / (1 - h_n), (1 + c) t_n),   t_n = 1 / ((1 - h_n)(1 - 2 h_n))

with the doubly stochastic W of Theorem 3 (docs/theory.md has the proof, docs/reprieve.md the first one, which gives
max(3, 1 + c) h_n / (1 - 3 h_n)). Without outliers V is everybody and the rule is the weighted mean (unless its own
model has about half of the weight: the median is then that model's distance, and the rule turns into IOS); with f far
outliers V = U and the rule is IOS. It costs as much as IOS.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import at_least
from byzmesh.compiled import exact
from byzmesh.heaviest import THIRD, below
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import by_weight
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import CUTS_FARTHEST
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats

HALF = 0.5 * (1.0 - 1e-12)
"""Half of a sum of weights, with a margin for rounding."""


@exact
def reprieved(
    inner: Floats, weight: Floats, present: Booleans, trusted: Booleans, reach2: float, tie: float
) -> Booleans:
    """(R, K) the trusted slots and those within sqrt(reach2) weighted medians of the trusted average."""
    receivers, slots = weight.shape
    chosen = trusted.copy()
    share = np.empty(slots)
    distance2 = np.empty(slots)
    for receiver in range(receivers):
        gram = inner[receiver]
        total = 0.0
        for slot in range(slots):
            share[slot] = weight[receiver, slot] if trusted[receiver, slot] else 0.0
            total += share[slot]
        if total <= 0.0:
            continue
        spread = 0.0
        for i in range(slots):
            if share[i] > 0.0:
                for j in range(slots):
                    spread += share[i] * share[j] * gram[i, j]
        for slot in range(slots):
            lean = 0.0
            for other in range(slots):
                lean += share[other] * gram[slot, other]
            distance2[slot] = max(0.0, gram[slot, slot] - 2.0 * lean / total + spread / total**2)
        scale2, weighed = 0.0, 0.0
        for slot in np.argsort(distance2):
            weighed += share[slot]
            if weighed >= HALF * total:
                scale2 = distance2[slot]
                break
        for slot in range(1, slots):
            if present[receiver, slot] and distance2[slot] <= reach2 * scale2 * (1.0 + tie):
                chosen[receiver, slot] = True
    return chosen


def moved_at_most(h: Floats, c: float) -> Floats:
    """The bound on rho in terms of h, NaN where h >= 1/3.

    >>> moved_at_most(np.array([0.0, 0.1, 0.4]), 3.5)
    array([0.   , 0.625,   nan])
    """
    safe = np.where(below(h, THIRD), h, 0.0)
    scale = 1.0 / ((1.0 - safe) * (1.0 - 2.0 * safe))
    most = safe * np.maximum((1.0 + 2.0 * scale) / (1.0 - safe), (1.0 + c) * scale)
    return np.where(below(h, THIRD), most, np.nan)


@rules.register("Reprieve", aliases=("readmission", "ios-readmission"))
def reprieve(c: float = 3.5) -> Rule:
    """Cut f neighbours as IOS does, then take back those within c median distances of the trusted average.

    x_n = sum_{m in V} w'_nm y_m / W'(V), V = trusted and reprieved; r_n = w'_nn / W'(V). `c` is at least 1; the
    smaller, the closer to IOS.

    >>> import byzmesh as bm
    >>> square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    >>> bm.aggregate("reprieve", [0.0, 0.0], square, f=1) + 0.0          # nobody stands out: the mean
    array([0., 0.])
    >>> square[3] = [-9.0, -9.0]
    >>> bm.aggregate("reprieve", [0.0, 0.0], square, f=1)                # an outlier: IOS
    array([0.25, 0.25])
    """
    at_least("rule Reprieve: c", c, 1)

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.room, block.tie, True)
        chosen = reprieved(block.inner, block.weight, block.present, trusted, c * c, block.tie)
        return normalised(np.where(chosen, block.weight, 0.0))

    return gram_rule(
        "Reprieve",
        coefficients,
        feasible=CUTS_FARTHEST,
        uses_weights=True,
        options={"c": c},
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=by_weight(lambda h: moved_at_most(h, c), "Reprieve's bound"),
    )

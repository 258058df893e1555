"""Iterative cutting: IOS (the paper's Algorithm 2) and FABA.

f times: average what is still trusted and cut the neighbour farthest from that average (never its own model); finally
average what is left. In Gram space, with trusted weights a (summing to 1) and y relative to the receiver's own model,

    ||y_m - sum_i a_i y_i||^2 = G_mm - 2 (G a)_m + a' G a,

so a cut costs O(K^2) whatever D is. The last term is the same for all m. Averages are recomputed after each cut:
subtracting a liar at 1e30 from a running sum would leave nothing of the honest part.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.types import Booleans, Floats, Integers


@exact
def cut_farthest(
    inner: Floats, weight: Floats, present: Booleans, f: Integers, tie: float, own_inside: bool
) -> Booleans:
    """(R, K) which slots are still trusted after f cuts; `weight` gives the weights in the averages.

    `own_inside` says whether its own vector is part of the averages; it is never cut.
    """
    receivers, slots = weight.shape
    trusted = present.copy()
    share = np.empty(slots)
    for receiver in range(receivers):
        gram = inner[receiver]
        for _ in range(f[receiver]):
            total = 0.0
            for slot in range(slots):
                counts = trusted[receiver, slot] and (own_inside or slot > 0)
                share[slot] = weight[receiver, slot] if counts else 0.0
                total += share[slot]
            if total > 0.0:
                share /= total
            spread = 0.0
            for i in range(slots):
                if share[i] > 0.0:
                    for j in range(slots):
                        spread += share[i] * share[j] * gram[i, j]
            worst, largest = -1, -1.0
            for slot in range(1, slots):
                if trusted[receiver, slot]:
                    lean = 0.0
                    for other in range(slots):
                        lean += share[other] * gram[slot, other]
                    distance = max(0.0, gram[slot, slot] - 2.0 * lean + spread)
                    if worst < 0 or distance > largest * (1.0 + tie):
                        worst, largest = slot, distance
            if worst > 0:
                trusted[receiver, worst] = False
    return trusted

"""Iterative cutting: IOS (the paper's Algorithm 2) and FABA.

f times: average what is still trusted, cut the neighbour farthest from that average (never the own model), and at last
average what is left. In Gram space, with trusted shares a (summing to 1) and y relative to the own model,

    ||y_m - sum_i a_i y_i||^2 = G_mm - 2 (G a)_m + a' G a,

so a cut costs O(K^2) whatever D is. The last term is the same for all m. Averages are formed afresh after each cut:
subtracting a liar at 1e30 from a running sum would leave nothing of the honest part.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Block, Booleans, Floats, Integers, Rule, normalised, rules
from byzmesh.rules.gram import gram_rule


@exact
def cut_farthest(
    inner: Floats, weight: Floats, present: Booleans, f: Integers, tie: float, own_inside: bool
) -> Booleans:
    """(R, K) who is still trusted after f cuts; `weight` are the shares in the averages.

    `own_inside` says whether the own vector takes part in the averages; it is never cut.
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


def below_neighbours(neighbours: int) -> int:
    """Largest f of a rule that must keep at least one neighbour: d - 1."""
    return max(0, neighbours - 1)


@rules.register("IOS", aliases=("iterative-outlier-scissor",), facts={"feasible": "f < d"})
def ios() -> Rule:
    """Iterative outlier scissor: f times cut the neighbour farthest from the weighted mean, then weighted mean.

    x_n = sum_{m in U} w'_nm y_m / sum_{m in U} w'_nm over the trusted set U left after f cuts; r_n = w'_nn / W'(U).
    """

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.tie, True)
        return normalised(np.where(trusted, block.weight, 0.0))

    return gram_rule("IOS", coefficients, largest_f=below_neighbours, uses_weights=True)


@rules.register("FABA", published={"own": "outside"}, facts={"feasible": "f < d"})
def faba(own: str = "inside") -> Rule:
    """FABA: f times cut the neighbour farthest from the plain mean, then plain mean.

    own="inside": the own model takes part in the means that decide the cuts (the text).
    own="outside": it does not (the published runs); both average it into the result, r_n = 1/(d - f + 1).
    """
    if own not in ("inside", "outside"):
        raise ConfigError(f"FABA's own must be 'inside' or 'outside', got {own!r}")

    def coefficients(block: Block) -> Floats:
        equal = np.ones(block.weight.shape)
        trusted = cut_farthest(block.inner, equal, block.present, block.f, block.tie, own == "inside")
        return normalised(trusted)

    return gram_rule("FABA", coefficients, largest_f=below_neighbours, options={"own": own})

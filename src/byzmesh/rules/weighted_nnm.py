"""WeightedNNM: every vector becomes the weighted mean of its nearest of weight 1 - b, then any rule by weights.

With y_m what neighbour m sent and w'_nm the mixing weights, own included:

    b    what lies weigh at most: the weight of the f heaviest neighbours, or b if that is given and less
    z_m  = sum_i a_mi y_i / (1 - b)    y_m itself first, then the nearest to it, a_mi = w'_ni, the last one in part,
                                       so that the a_mi sum to 1 - b
    x_n  = rule(z_n; the z_m of the neighbours), with the weights w'_nm and the bounds f and b

With b = 0 every z_m is the weighted mean, and so is x_n: a doubly stochastic W' stays what it is. NNM counts instead of
weighing; its rows are plain means.

What is proved, for the W that gives the liars' weight to the receiver (doubly stochastic if W' is symmetric), if at
most f lie and weigh at most b, with h >= b the weight of the f heaviest neighbours:

    rho <= h (1 + 4 / sqrt(1 - 2 h)) / (1 - h)       h < 1/2, before WeightedCooMed and WeightedTriMean
    rho <= h (5 + 8 rho_in) / (1 - h)                before a rule whose own contraction constant is rho_in;
                                                     at least 1 where it cannot work with the honest messages alone

Before WeightedCooMed liars reach 5 b / (1 - b), so for small h the first is sharp: half of W with the receiver at 1,
half at -1, all lies at -3. IOS has 3 h there; its bound is the larger one from h = 0.38 on. Nothing is proved before
WeightedGeoMed, whose steps end within a tolerance.

Proof. Write u_m = x_m - xbar for the honest, R for the largest ||u_m||, B <= b for the weight of the lies, and
p_m = w'_nm + B [m = n], so that sum p_m u_m = 0 over the honest. Let m be honest and l_i = w'_ni - a_mi; they sum to b.
With c = xbar - B u_n / (1 - b), which does not depend on m,

    (1 - b)(z_m - c) = - sum_{honest i} l_i u_i + sum_{lies j} a_mj v_j,    v_j = y_j - xbar.                     (1)

The honest l_i sum to b - B + sum_j a_mj. If a_mj > 0, an honest i has l_i > 0; it is not nearer x_m than y_j is:

    ||v_j - u_m|| <= ||u_i - u_m|| <= 2 R,    so ||v_j|| <= 3 R.                                                  (2)

By (1), with s_j = ||v_j|| and I_mj = 1 where a_mj > 0,

    (1 - b) ||z_m - c|| <= (b - B) R + sum_j w'_nj I_mj (s_j + R) <= (b - B + 4 B) R <= 4 b R.                    (3)

The second bound: any average zbar of the honest z_m is within 4 b R / (1 - b) of c, every honest z_m within twice that
of zbar, and c within b R / (1 - b) of xbar.

The first: on average the squares of (3) are half as large. (2) is s_j^2 - 2 <v_j, u_m> <= ||u_i||^2 - 2 <u_i, u_m>, so
<v_j, u_m> >= (s_j^2 - 3 R^2) / 2 where I_mj = 1; elsewhere it is at least -s_j R. Weighed by p_m these sum to 0. Hence
where s_j > sqrt(3) R, the p_m of those with I_mj = 1 sum to at most q = 2 s_j R / ((s_j + 3 R)(s_j - R)), and

    sum_m p_m I_mj (s_j + R)^2 <= q (s_j + R)^2 <= 8 R^2,

the last as (s - 3)(s^2 + s - 4) <= 0 for sqrt(3) <= s <= 3; where s_j <= sqrt(3) R, it is at most (1 + sqrt(3))^2 R^2,
less than that. By the triangle inequality for roots of mean squares,

    sum_m w'_nm ||z_m - c||^2 <= sum_m p_m ||z_m - c||^2 <= ((b - B + sqrt(8) B) R / (1 - b))^2 <= 8 (b R / (1 - b))^2.

A rule with the `square_error` k ends within sqrt(8 k) b R / (1 - b) of c, and k = 2 / (1 - 2 h) for those two.

Where silent liars leave too few messages, a worker keeps its own model, within R of xbar. For those two rules the
messages are then 2 f or fewer, of weight 2 h at most, and its own model within min(1, 2 h / (1 - 2 h)) R of xbar, which
is less than 5 h / (1 - h).

In numbers weights within 1e-12 count as equal: of links that weigh less than that nothing is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods, by_weight
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gossip import lying_weight
from byzmesh.rules.nearest import nearest_of_weight
from byzmesh.rules.preaggregate import Mixed, feasible_before, premixed
from byzmesh.types import Floats


def mixing(block: Block) -> Mixed:
    """Every slot's mean of its nearest of weight 1 - b; a slot that has no such weight near it stays what it is."""
    counted = nearest_of_weight(block.distance2, block.weight, block.present, 1.0 - lying_weight(block), block.tie)
    itself = block.present[:, :, None] & np.eye(counted.shape[1], dtype=bool)
    total = counted.sum(axis=2, keepdims=True)
    matrix = np.where(total > 0.0, counted / np.where(total > 0.0, total, 1.0), itself)
    return matrix, block.weight, block.present


@rules.register("WeightedNNM", aliases=("weighted-nearest-neighbour-mixing", "wnnm"))
def weighted_nnm(inner: Rule | str = "WeightedCooMed") -> Rule:
    """Nearest-neighbour mixing by weights: each vector becomes the weighted mean of its nearest, then the inner rule.

    >>> import byzmesh as bm
    >>> bm.aggregate(bm.weighted_nnm(), [0.0], [[1.0], [2.0], [90.0]], weights=[0.4, 0.2, 0.2, 0.2], f=1)
    array([0.75])
    """
    rule = rules.build(inner)
    feasible = feasible_before(rule)
    proved = contraction(rule, feasible)
    return replace(
        premixed("WeightedNNM", rule, mixing, feasible, weighted=True, tells_b=True),
        uses_weights=True,
        virtual_mixing=None if proved is None else "to-own",
        contraction=proved,
    )


def contraction(inner: Rule, feasible: Feasible) -> Contraction | None:
    """What is proved before this inner rule; None: nothing, as nothing is proved about the inner rule itself."""
    error, declared = inner.square_error, inner.contraction
    if error is not None:
        return by_weight(lambda h: h * (1.0 + np.sqrt(8.0 * error(h))) / (1.0 - h), "near the mean of the nearest")
    if declared is None:
        return None

    def bound(near: Neighbourhoods) -> Floats:
        h = near.cut_weight()
        within = np.asarray(declared.bound(near), np.float64)
        safe = (near.lying <= near.f) & np.isfinite(within) & (h < 1.0)
        most = np.where(safe, h * (5.0 + 8.0 * np.where(safe, within, 0.0)) / np.where(safe, 1.0 - h, 1.0), np.nan)
        heard = [feasible.largest(int(count)) for count in near.neighbours - near.lying]
        return np.where(near.f > np.array(heard, np.int64), np.maximum(most, 1.0), most)

    return Contraction(bound, "near the mean of the nearest, and the inner rule near those")

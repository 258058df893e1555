"""Tether: an average about a safe centre in which no message pulls farther than most of them do.

IOS keeps or cuts. When lies hide inside the honest spread it cuts honest workers instead, and what is left weighs the
lies more. Tether cuts as IOS does to find a safe centre, lets everybody back who is not far away, and then lets nobody
pull much more than the others (n the receiver, w' the mixing weights, h what the lies weigh at most):

    U, a  what IOS's f cuts leave, and its average
    d_m   = ||y_m - a||
    J     every cut m with d_m > c times the weighted median of d over U         c = 4.5; those are left out
    s     = max(h', min(2 h', 1/4)),  h' = max(0, h - W'(J))                     what may still be lies, and be far away
    t     = the least t with W'({m not in J: d_m <= t}) >= 1 - W'(J) - s         the length of the tether
    p_m   = w'_nm min(1, t / d_m) for m not in J
    x_n   = sum_m p_m y_m / sum_m p_m

So a lie inside the crowd pulls as far as the crowd's edge, lies far away do not pull at all, and an honest worker with
unusual data is shortened, not lost. Where J weighs h it is the weighted mean of the rest; with f = 0 that of everybody.
With h < 1/3 and the doubly stochastic W of Theorem 3,

    rho <= (h + l + h q) / (1 - l),    l = h + min(h, 1/8),    q = (c + 3 h) / (1 - 3 h)

Proof. Write R for the largest distance of an honest model from xbar and b <= h for the weight of the lies. A lie that
is not in J is within q R of xbar: docs/reprieve.md, (1) and (4), which are about this U and J. Let l_m = w'_nm - p_m,
which is w'_nm on J. The sum of all l_m is at most W'(J) + s: only what is farther than t loses weight, and that weighs
at most s. As g = W'(J) <= h, this is at most l: it is g + (h - g) = h, or min(2 h - g, g + 1/4), which is at most 2 h
and at most h + 1/8. By the definition of xbar, the honest w'_nm (x_m - xbar) sum to -b (x_n - xbar), so

    sum_m p_m (y_m - xbar) = -b (x_n - xbar) - sum_{honest m} l_m (x_m - xbar) + sum_{lies m} p_m (y_m - xbar),

at most (b + l + b q) R. Divide by sum_m p_m >= 1 - l.

In numbers weights within 1e-12 count as equal: of links that weigh less than that nothing is said.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import at_least
from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING, THIRD, below
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import by_weight
from byzmesh.rules.cutting import cut_farthest
from byzmesh.rules.feasible import CUTS_FARTHEST
from byzmesh.rules.gossip import lying_weight
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats


@exact
def tethered(
    inner: Floats, weight: Floats, present: Booleans, trusted: Booleans, lies: Floats, c: float, tie: float
) -> Floats:
    """(R, K) the pulls p, not normalised, from what IOS trusts and the weight h (R,) of the lies."""
    receivers, slots = weight.shape
    pulls = np.where(present, weight, 0.0)
    share = np.empty(slots)
    distance = np.empty(slots)
    for receiver in range(receivers):
        left = lies[receiver]
        total = 0.0
        for slot in range(slots):
            share[slot] = weight[receiver, slot] if trusted[receiver, slot] else 0.0
            total += share[slot]
        if left <= 0.0 or total <= 0.0:
            continue
        gram, pull = inner[receiver], pulls[receiver]
        spread = 0.0
        for slot in range(slots):
            lean = 0.0
            for other in range(slots):
                lean += share[other] * gram[slot, other]
            distance[slot] = gram[slot, slot] - 2.0 * lean / total
            spread += share[slot] * lean
        for slot in range(slots):
            distance[slot] = np.sqrt(max(0.0, distance[slot] + spread / total**2))
        order = np.argsort(distance)
        median, weighed = 0.0, 0.0
        for slot in order:
            weighed += share[slot]
            if weighed >= 0.5 * total * (1.0 - ROUNDING):
                median = distance[slot]
                break
        heard = 0.0
        for slot in range(slots):
            if not trusted[receiver, slot] and distance[slot] > c * median * (1.0 + tie):
                left -= pull[slot]
                pull[slot] = 0.0
            heard += pull[slot]
        spare = max(left, min(2.0 * left, 0.25), 0.0)
        length, weighed = 0.0, 0.0
        for slot in order:
            weighed += pull[slot]
            length = distance[slot]
            if weighed >= heard - spare - ROUNDING:
                break
        for slot in range(slots):
            if distance[slot] > length:
                pull[slot] *= length / distance[slot]
    return pulls


def moved_at_most(h: Floats, c: float) -> Floats:
    """The bound on rho in terms of h, NaN where h >= 1/3.

    >>> moved_at_most(np.array([0.0, 0.1, 0.4]), 4.5).round(4)
    array([0.    , 1.2321,    nan])
    """
    safe = np.where(below(h, THIRD), h, 0.0)
    lost = safe + np.minimum(safe, 0.125)
    most = (safe + lost + safe * (c + 3.0 * safe) / (1.0 - 3.0 * safe)) / (1.0 - lost)
    return np.where(below(h, THIRD), most, np.nan)


@rules.register("Tether")
def tether(c: float = 4.5) -> Rule:
    """Weighted mean about IOS's average: far messages that IOS cuts are left out, others shortened to where most are.

    `c`, at least 1, says how many median distances are far; the smaller, the closer to IOS.

    >>> import byzmesh as bm
    >>> square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    >>> bm.aggregate("tether", [0.0, 0.0], square, f=1).round(2) + 0.0    # nobody is far: nearly the mean
    array([-0.04, -0.04])
    >>> square[3] = [-90.0, -90.0]
    >>> bm.aggregate("tether", [0.0, 0.0], square, f=1).round(2)          # a liar far away: left out
    array([0.25, 0.25])
    """
    at_least("rule Tether: c", c, 1)

    def coefficients(block: Block) -> Floats:
        trusted = cut_farthest(block.inner, block.weight, block.present, block.f, block.room, block.tie, True)
        lies = lying_weight(block)
        return normalised(tethered(block.inner, block.weight, block.present, trusted, lies, c, block.tie))

    return gram_rule(
        "Tether",
        coefficients,
        feasible=CUTS_FARTHEST,
        uses_weights=True,
        options={"c": c},
        weights_alone_at_zero=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=by_weight(lambda h: moved_at_most(h, c), "Tether's bound"),
    )

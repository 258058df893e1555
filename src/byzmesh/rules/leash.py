"""Leash: what neighbours may do to a worker in a round is measured in steps, not in how much the models differ.

    x_n <- x_n + sum_m w'_nm clip(y_m - x_n, tau_k),    tau_k = c alpha^k
    clip(z, tau) = min(1, tau / ||z||) z

A rule that takes its threshold from the inbox lets lies go as far as honest models differ, and where data differ that
is far: aimed at one wrong model in every round, such lies win (docs/recommendation.md). Here a lie is worth its weight
times c gradient units after the first rounds, whatever it says and however far the models are apart. No bound f is
needed.

Let W' be symmetric, xbar the mean of the N honest models, g_n the directions of their local steps, and
b = (1/N) sum_n sum_{lying m} w'_nm what lies weigh at a worker on average. In a round after the first `agree`, if every
honest message arrives as it was sent,

    || xbar^{k+1} - (xbar^k - alpha^k (1/N) sum_n g_n) || <= alpha^k c b.

Proof. For honest n and m, w'_nm clip(x_m - x_n, tau_k) = -w'_mn clip(x_n - x_m, tau_k), as both clip to the same tau_k:
in the sum over the honest workers these cancel. What is left are the lies, each of length at most w'_nm tau_k. ∎

So all liars together move the honest mean by at most one more gradient of length c b. That bounds a round, not a run:
directions are taken at each worker's own model, and with momentum they are of the last hundred rounds, so that lies
straight up the loss (`ascent` with a length) are answered late. In the lower bound of studies/audit/unavoidable.py it
is sqrt(B / (N - B)) zeta that no rule can rule out: c plays the part of zeta, the distance of the workers'
gradients. That is also the price: neighbours pull a worker by no more than (1 - w'_nn) c gradient units, so one whose
gradient differs from the honest mean's by more than that drifts away, and with too small a c it learns little but its
own data.
c is a choice between the two, and there is no contraction constant (where all honest models agree, a lie still moves a
worker by w' tau_k, as in `clipping`).

Workers that do not start at the same point must first come together, which steps alone would take long for: in the
first `agree` rounds tau is at least the weighted median of the neighbours' distances, which is no more than an honest
one where less than half of the neighbours' weight lies.
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import positive, whole
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.clipping import FIXED_RADIUS
from byzmesh.rules.contraction import Contraction
from byzmesh.rules.gossip import clipped, reach2
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.scc import moved
from byzmesh.types import Floats


def median2(reach2: Floats, weight: Floats) -> Floats:
    """(R,) the least t with at least half of the weight (R, K) at squared distances (R, K) up to t; 0 without weight.

    >>> median2(np.array([[0.0, 1.0, 9.0, 4.0]]), np.array([[0.0, 0.2, 0.2, 0.2]]))
    array([4.])
    """
    order = np.argsort(reach2, axis=1, kind="stable")
    below = np.take_along_axis(weight, order, axis=1).cumsum(axis=1)
    first = (below >= 0.5 * below[:, -1:] * (1.0 - 1e-12)).argmax(axis=1)
    return np.take_along_axis(np.take_along_axis(reach2, order, axis=1), first[:, None], axis=1)[:, 0]


@rules.register("Leash")
def leash(c: float = 2.0, agree: int = 30) -> Rule:
    """Move towards every neighbour, by at most its weight times `c` step sizes each; no f.

    c      the longest pull in units of a gradient: about as much as the workers' gradients differ where they shall
           agree, less where lies are feared more
    agree  rounds in which neighbours may pull as far as half of them do, so that different first models come together

    >>> import byzmesh as bm
    >>> bm.aggregate("leash", [0.0], [[1.0], [-1.0], [90.0]], agree=0)      # a step of size 1: pulls of at most 2
    array([0.5])
    """
    positive("rule Leash: c", c)
    whole("rule Leash: agree", agree, 0)

    def coefficients(block: Block) -> Floats:
        far2 = reach2(block)
        weight = np.where(block.present, block.weight, 0.0)
        radius2 = np.full(len(weight), (c * block.round.step_size) ** 2)
        if block.round.number < agree:
            weight[:, 0] = 0.0
            radius2 = np.maximum(radius2, median2(far2, weight))
        return clipped(weight, far2, radius2)

    return gram_rule(
        "Leash",
        coefficients,
        uses_weights=True,
        own_distances=True,
        options={"c": c, "agree": agree},
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=Contraction(moved, FIXED_RADIUS),
    )

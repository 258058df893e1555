"""The algorithms of the paper's appendix in the generic form A_n = (1 - r_n) A + r_n x_n: their A and r_n.

    TriMean   A = trimmed mean of the d neighbours alone        r = 1 / (d - 2f + 1)   (BRIDGE; ByRDiE on the
                                                                                       coordinates in turn)
    DRSA      A = x_n + sum_m sign(y_m - x_n)                   r = 1 - alpha C, alpha the round's step size
    SCC       A = x_n + sum_m w'_nm / (1 - w'_nn) clip(...)     r = w'_nn
    UBAR      A = mean of the accepted neighbours               r its own parameter, `alpha` of the rule UBAR
    SimRew    A = the rule itself                               r = 0
    CC        A = the rule itself                               r = 0

`generic(*coverage(name))` equals the rule of that name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.errors import UnknownName, nearest
from byzmesh.rules.base import Block, Inbox, Outcome, Rule, State, rules, settle
from byzmesh.rules.clipping import clip_towards
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.generic import SelfWeight
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.ranks import rank_mean, sign_sum
from byzmesh.types import Booleans, Floats, Integers

NAMES = ("TriMean", "DRSA", "SCC", "UBAR", "SimRew", "CC")


def coverage(name: str, **options: Any) -> tuple[Rule, SelfWeight]:
    """(A, r) of an algorithm of the appendix; the options are those of the rule of that name.

    >>> import byzmesh as bm
    >>> base, r = coverage("SCC", tau=1.0)
    >>> bm.aggregate(bm.generic(base, r), [0.0], [[0.5], [9.0]], weights=[0.5, 0.25, 0.25])
    array([0.375])
    >>> bm.aggregate("scc", [0.0], [[0.5], [9.0]], weights=[0.5, 0.25, 0.25], tau=1.0)
    array([0.375])
    """
    if name not in NAMES:
        raise UnknownName(f"the appendix has no algorithm {name!r}: {nearest(name, NAMES)}")
    given = rules.build(name, **options).options
    if name == "TriMean":
        return trimmed_neighbours(), trimmed_share
    if name == "DRSA":
        penalty = given["penalty"]
        return sign_step(given["at"]), lambda inbox: np.full(len(inbox.index), 1.0 - inbox.round.step_size * penalty)
    if name == "SCC":
        return clipped_neighbours(given["tau"]), lambda inbox: inbox.weight[:, 0]
    if name == "UBAR":
        return rules.build("UBAR", **{**given, "alpha": 0.0}), float(given["alpha"])
    return rules.build(name, **given), 0.0


def trimmed_neighbours() -> Rule:
    """Per coordinate the mean of the neighbours without the f smallest and the f largest, without its own model."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        others = present.copy()
        others[:, 0] = ~present[:, 1:].any(axis=1)  # nobody was heard: its own model, that there be one
        return rank_mean(vectors(inbox), inbox.index, others, f, others.sum(axis=1) - f)

    return coordinate_rule("TrimmedNeighbours", models, feasible=BELOW_HALF)


def trimmed_share(inbox: Inbox) -> Floats:
    """r_n = 1 / (d - 2f + 1) for the d messages that arrived; 1 if too few did."""
    f, kept = settle(inbox, BELOW_HALF)
    share: Floats = np.where(kept, 1.0, 1.0 / np.where(kept, 1, inbox.present.sum(axis=1) - 2 * f))
    return share


def sign_step(at: str = "half") -> Rule:
    """Its own half step plus the sum of the signs of the differences, taken as DRSA's option `at` says."""

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        reference = inbox.pool.own[inbox.index[:, 0]]
        neighbours = inbox.present.copy()
        neighbours[:, 0] = False
        signs = sign_sum(vectors(inbox), inbox.index, neighbours, reference)
        half = reference if inbox.half is None else inbox.half
        return Outcome(models=half + signs, kept=np.zeros(len(inbox.index), bool)), state

    return Rule("SignStep", apply, sends=at, coordinatewise=True, keeps_own=True)


def clipped_neighbours(tau: float) -> Rule:
    """Its own model plus the neighbours' clipped differences, weighed by w'_nm / (1 - w'_nn)."""

    def coefficients(block: Block) -> Floats:
        weight = block.weight.copy()
        weight[:, 0] = 0.0
        total = weight.sum(axis=1, keepdims=True)
        weight = np.where(total > 0.0, weight / np.where(total > 0.0, total, 1.0), weight)
        start = np.zeros(weight.shape)
        start[:, 0] = 1.0
        return clip_towards(block.inner, start, weight, tau, 1)

    return gram_rule("ClippedNeighbours", coefficients, uses_weights=True, keeps_own=True)

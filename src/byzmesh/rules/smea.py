"""SMEA, smallest maximum eigenvalue averaging: the mean of the S - f vectors with the smallest largest variance.

    argmin over T of size S - f of   lambda(T) = largest eigenvalue of  sum_{i in T} (y_i - mu_T)(y_i - mu_T)^T

and then mu_T, the plain mean (Allouah et al. 2023). The inner products of the y_i - mu_T have the same eigenvalue.
Another vector never lowers lambda, so a set is given up as soon as a part of it exceeds the best so far; f vectors are
left out in all ways, the most distant first. The cost is at most O(C(S, f) S^3), and the rule refuses to run where that
exceeds `LARGEST_WORK`.

What is proved, for B <= f liars and S - B honest vectors with plain mean xbar and largest distance R from it. In any
direction the variance of S - f honest vectors is at most R^2, so that of T is. Means of i among t vectors are within
the square root of (t - i)/i times their largest variance of the mean of all t. T and the honest vectors have at least
S - f - B in common, which is t - i = B of T and f of the honest ones; therefore

    rho <= (sqrt(B) + sqrt(f)) / sqrt(S - f - B).
"""

from __future__ import annotations

import math

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.feasible import Feasible, below_half_of_all
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats, Integers

LARGEST_WORK = 200_000_000
"""Largest C(S, f) S^3, under a second for a receiver: any f for 17 vectors, f <= 5 for 20, 3 for 30, 1 for 100."""


@exact
def largest_eigenvalue(gram: Floats, member: Integers) -> float:
    """Of the scatter matrix of these members about their mean, from inner products (S, S) about any point."""
    count = len(member)
    if count < 2:
        return 0.0
    centred = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            centred[i, j] = gram[member[i], member[j]]
    lean = np.empty(count)
    for i in range(count):
        lean[i] = centred[i].sum() / count
    middle = lean.sum() / count
    for i in range(count):
        for j in range(count):
            centred[i, j] += middle - lean[i] - lean[j]
    value: float = max(np.linalg.eigvalsh(centred)[-1], 0.0)
    return value


@exact
def earlier(one: Booleans, other: Booleans) -> bool:
    """Whether the first place in which two sets differ is in `one`."""
    for place in range(len(one)):
        if one[place] != other[place]:
            return bool(one[place])
    return False


@exact
def narrowest_of(gram: Floats, cuts: int, tie: float) -> Booleans:
    """(S,) the set without `cuts` >= 1 vectors with the smallest lambda; among equals, the first vectors."""
    count = len(gram)
    distance = np.empty(count)
    for i in range(count):
        distance[i] = count * gram[i, i] - 2.0 * gram[i].sum()
    order = np.argsort(-distance)
    left = np.ones(count, np.bool_)  # by place in `order`
    cut = np.zeros(cuts, np.int64)  # the places left out, rising
    best = np.ones(count, np.bool_)
    least = np.inf
    depth = 0
    left[0] = False
    while depth >= 0:
        limit = least * (1.0 + tie)
        # what comes before the last cut stays, whatever is cut after it
        if largest_eigenvalue(gram, order[: cut[depth]][left[: cut[depth]]]) > limit:
            left[cut[depth]] = True
            cut[depth] = count
        elif depth < cuts - 1:
            depth += 1
            cut[depth] = cut[depth - 1] + 1
            left[cut[depth]] = False
            continue
        else:
            value = largest_eigenvalue(gram, order[left])
            if value <= limit:
                chosen = np.zeros(count, np.bool_)
                chosen[order[left]] = True
                if value < least * (1.0 - tie) or earlier(chosen, best):
                    best = chosen
                least = min(least, value)
            left[cut[depth]] = True
            cut[depth] += 1
        while depth >= 0 and cut[depth] > count - cuts + depth:
            depth -= 1
            if depth >= 0:
                left[cut[depth]] = True
                cut[depth] += 1
        if depth >= 0:
            left[cut[depth]] = False
    return best


@exact
def narrowest(inner: Floats, present: Booleans, f: Integers, tie: float) -> Booleans:
    """(R, K) the S - f present slots with the smallest lambda."""
    kept = present.copy()
    for receiver in range(len(present)):
        slots = np.flatnonzero(present[receiver])
        cuts = min(f[receiver], len(slots) - 1)
        if cuts > 0:
            gram = np.empty((len(slots), len(slots)))
            for i in range(len(slots)):
                for j in range(len(slots)):
                    gram[i, j] = inner[receiver, slots[i], slots[j]]
            kept[receiver, slots] = narrowest_of(gram, cuts, tie)
    return kept


def largest_searchable(neighbours: int) -> int:
    """The largest f with 2f < d + 1 and C(S, f) S^3 within `LARGEST_WORK`.

    >>> [largest_searchable(d) for d in (1, 4, 16, 19, 29, 99, 999)]
    [0, 2, 8, 5, 3, 1, 0]
    """
    f, vectors = 0, neighbours + 1
    while f < below_half_of_all(neighbours) and math.comb(vectors, f + 1) * vectors**3 <= LARGEST_WORK:
        f += 1
    return f


SEARCHABLE = Feasible(f"2f < d + 1 and C(d + 1, f) (d + 1)^3 <= {LARGEST_WORK:,}", largest_searchable)


def moved_at_most(near: Neighbourhoods) -> Floats:
    """The bound of the module's docstring; silent liars only lower it."""
    common = near.neighbours + 1.0 - near.f - near.lying
    proved = (near.lying <= near.f) & (common > 0.0)
    return np.where(proved, (np.sqrt(near.lying) + np.sqrt(near.f)) / np.sqrt(np.where(proved, common, 1.0)), np.nan)


@rules.register("SMEA", aliases=("smallest-maximum-eigenvalue-averaging",))
def smea() -> Rule:
    """SMEA: the plain mean of the S - f vectors whose largest variance in any direction is smallest (exact search).

    >>> import byzmesh as bm
    >>> bm.aggregate("smea", [0.0], [[1.0], [2.0], [90.0]], f=1)
    array([1.])
    """

    def coefficients(block: Block) -> Floats:
        return normalised(narrowest(block.inner, block.present, block.f, block.tie))

    return gram_rule(
        "SMEA",
        coefficients,
        feasible=SEARCHABLE,
        symmetric=True,
        virtual_mixing="equal",
        contraction=Contraction(moved_at_most, "the smallest largest variance, equal weights"),
    )

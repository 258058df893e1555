"""What is proved about a rule's contraction constant rho, as the rule declares it.

    ||A_n - xbar_n|| <= rho max_{m honest neighbour or n} ||x_m - xbar_n||        (Definition 1)

A_n is what the rule returns at worker n, xbar_n the average of the honest by the rule's virtual mixing matrix
(`Rule.virtual_mixing`). A bound on rho is a function of the neighbourhoods alone (weights, f, how many lie), never of
models; `theory` evaluates it on a network. Rules that cut f neighbours are bounded by what those can weigh:

    rho <= k h / (1 - 3 h)      h the weight of the f heaviest neighbours, if at most f lie and h < 1/3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byzmesh.types import Booleans, Floats, Integers

ROUNDING = 1e-12
"""Two sums of weights that differ by less are equal."""
THIRD = 1.0 / 3.0


def heaviest(weight: Floats) -> Floats:
    """(R, K + 1) entry f of a row is the sum of its f largest weights (R, K).

    >>> heaviest(np.array([[0.1, 0.3, 0.2]])).round(3)
    array([[0. , 0.3, 0.5, 0.6]])
    """
    falling = -np.sort(-weight, axis=1)
    return np.concatenate([np.zeros((len(weight), 1)), np.cumsum(falling, axis=1)], axis=1)


def of_the_heaviest(f: Integers, weight: Floats) -> Floats:
    """(R,) the sum of the f largest weights of each row (R, K); f (R,) beyond K counts as K.

    >>> of_the_heaviest(np.array([2, 9]), np.array([[0.1, 0.3, 0.2], [0.1, 0.1, 0.0]])).round(3)
    array([0.5, 0.2])
    """
    total = heaviest(weight)
    picked: Floats = total[np.arange(len(total)), np.minimum(f, total.shape[1] - 1)]
    return picked


def equal_weights(neighbours: Integers, slots: int) -> Floats:
    """(R, slots) what each of d neighbours weighs beside the receiver if all count the same: 1 / (d + 1).

    >>> equal_weights(np.array([1, 3]), 3)
    array([[0.5 , 0.  , 0.  ],
           [0.25, 0.25, 0.25]])
    """
    weight: Floats = (np.arange(slots) < neighbours[:, None]) / (neighbours[:, None] + 1.0)
    return weight


def below(value: Floats, limit: float) -> Booleans:
    """Whether each value is strictly below the limit, beyond rounding."""
    strict: Booleans = value < limit - ROUNDING  # a sum of weights equal to its limit up to rounding is not below it
    return strict


@dataclass(frozen=True, kw_only=True)
class Neighbourhoods:
    """The neighbours of N honest workers: all that a bound on their contraction may depend on.

    neighbours    (N,) how many there are
    lying         (N,) how many of them lie
    f             (N,) how many of them the worker expects to lie
    weight        (N, K) their mixing weights w', 0 after the last neighbour
    lying_weight  (N,) what the lying ones weigh together

    >>> one = np.ones(1, int)
    >>> near = Neighbourhoods(
    ...     neighbours=2 * one, lying=one, f=one, weight=np.array([[0.2, 0.3]]), lying_weight=np.array([0.3])
    ... )
    >>> near.cut_weight()
    array([0.3])
    """

    neighbours: Integers
    lying: Integers
    f: Integers
    weight: Floats
    lying_weight: Floats

    def cut_weight(self, equal: bool = False) -> Floats:
        """(N,) h_n, the sum of the f_n largest weights among n's neighbours.

        equal=True counts every neighbour 1 / (d_n + 1) instead of w'_nm.
        """
        weight = equal_weights(self.neighbours, self.weight.shape[1]) if equal else self.weight
        return of_the_heaviest(self.f, weight)


@dataclass(frozen=True)
class Contraction:
    """What is proved about a rule's contraction constant.

    bound   (N,) upper bound on each worker's rho; infinity where it is proved that there is none (a lie moves the
            worker even if all honest models agree), NaN where nothing is proved
    reason  the theorem, in one line
    factor  k where the bound is k h / (1 - 3 h); certificates then say how many liars each worker can bear

    >>> told = Contraction(lambda near: np.full(len(near.f), np.nan), "nothing is proved")
    >>> told.reason
    'nothing is proved'
    """

    bound: Callable[[Neighbourhoods], Floats]
    reason: str
    factor: float | None = None


def bound_of_cuts(h: Floats, factor: float) -> Floats:
    """factor h / (1 - 3 h), NaN where h >= 1/3 and nothing is proved.

    >>> bound_of_cuts(np.array([0.0, 0.25, 0.4]), 12.0)
    array([ 0., 12., nan])
    """
    safe = below(h, THIRD)
    return np.where(safe, factor * h / np.where(safe, 1.0 - 3.0 * h, 1.0), np.nan)


def cutting(factor: float, reason: str, *, equal: bool = False) -> Contraction:
    """The bound factor h / (1 - 3 h) of a rule that cuts, for workers of which at most f neighbours lie.

    equal=True: the rule counts every neighbour 1 / (d_n + 1) instead of w'_nm.
    """

    def bound(near: Neighbourhoods) -> Floats:
        return np.where(near.lying <= near.f, bound_of_cuts(near.cut_weight(equal), factor), np.nan)

    return Contraction(bound, reason, factor)


def _zero_without_cuts(near: Neighbourhoods) -> Floats:
    return np.where((near.lying == 0) & (near.f == 0), 0.0, np.nan)


MEAN_WITHOUT_CUTS = Contraction(_zero_without_cuts, "with f = 0 and no liar the rule is a plain mean")
"""Of a rule that with f = 0 is the average xbar_n itself, and of which nothing else is proved."""

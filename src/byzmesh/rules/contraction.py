"""What a rule declares as proved about its contraction constant rho.

    ||A_n - xbar_n|| <= rho max_{m honest neighbour or n} ||x_m - xbar_n||        (Definition 1)

A_n is what the rule returns at worker n, xbar_n the average of the honest by the rule's virtual mixing matrix
(`Rule.virtual_mixing`). A bound on rho is a function of the neighbourhoods alone (weights, f, how many lie), never of
models; `theory` evaluates it on a network. Rules that cut f neighbours are bounded by what those can weigh, h the
weight of the f heaviest neighbours, if at most f lie:

    rho <= 12 h / (1 - 3 h)                      IOS for h < 1/3, the paper's Theorem 3
    rho <= h (3 - 2 h) / ((1 - h)(1 - 2 h))      IOS for h < 1/2, attained: docs/theory.md, "The first wrong cut"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from byzmesh.heaviest import ROUNDING, THIRD, below, of_the_heaviest
from byzmesh.types import Floats, Integers

HALF = 0.5
CUTS_BELOW = HALF - 1e-6
"""Where the bounds of rules that cut the farthest end. Near 1/2 a lie at any distance is hardly farther than an honest
message, and in float32 distances that differ by 2e-6 count as equal (`cutting.py`)."""


def equal_weights(neighbours: Integers, slots: int) -> Floats:
    """(R, slots) the weight of each of d neighbours if they and the receiver count the same: 1 / (d + 1).

    >>> equal_weights(np.array([1, 3]), 3)
    array([[0.5 , 0.  , 0.  ],
           [0.25, 0.25, 0.25]])
    """
    weight: Floats = (np.arange(slots) < neighbours[:, None]) / (neighbours[:, None] + 1.0)
    return weight


@dataclass(frozen=True, kw_only=True)
class Neighbourhoods:
    """The neighbours of N honest workers: all that a bound on their contraction may depend on.

    neighbours    (N,) number of neighbours
    lying         (N,) how many of them lie
    f             (N,) how many of them the worker expects to lie
    weight        (N, K) their mixing weights w', 0 after the last neighbour
    lying_weight  (N,) total weight of the lying ones
    room          (N,) the worker is told that lies weigh at most this (b); None: it is told f alone

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
    room: Floats | None = None

    def cut_weight(self, equal: bool = False, within_b: bool = False) -> Floats:
        """(N,) h_n, the sum of the f_n largest weights among n's neighbours.

        equal=True counts every neighbour 1 / (d_n + 1) instead of w'_nm; within_b=True: at most b_n, if that is given.
        """
        weight = equal_weights(self.neighbours, self.weight.shape[1]) if equal else self.weight
        most = of_the_heaviest(self.f, weight)
        return np.minimum(most, self.room) if within_b and self.room is not None else most


@dataclass(frozen=True)
class Contraction:
    """What is proved about a rule's contraction constant.

    bound   (N,) upper bound on each worker's rho, whatever the lying neighbours send and also if some of them are
            silent; infinity where it is proved that there is none (a lie moves the worker even if all honest models
            agree), NaN where nothing is proved. It must not fall if the same number of liars weighs more
    reason  the theorem, in one line
    of_h    the bound as a rising function of h, if it is one; certificates then say how many liars a worker tolerates
    equal   whether h counts every neighbour 1 / (d_n + 1) instead of w'_nm
    within_b  whether h is at most b, if the rule is told that lies weigh no more
    beside  weaker bounds worth naming, such as a published one

    >>> told = Contraction(lambda near: np.full(len(near.f), np.nan), "nothing is proved")
    >>> told.reason
    'nothing is proved'
    """

    bound: Callable[[Neighbourhoods], Floats]
    reason: str
    _: KW_ONLY
    of_h: Callable[[Floats], Floats] | None = None
    equal: bool = False
    within_b: bool = False
    beside: tuple[Contraction, ...] = ()


def bound_of_cuts(h: Floats, factor: float) -> Floats:
    """factor h / (1 - 3 h), NaN where h >= 1/3 and nothing is proved.

    >>> bound_of_cuts(np.array([0.0, 0.25, 0.4]), 12.0)
    array([ 0., 12., nan])
    """
    safe = below(h, THIRD)
    return np.where(safe, factor * h / np.where(safe, 1.0 - 3.0 * h, 1.0), np.nan)


def first_wrong_cut(h: Floats) -> Floats:
    """h (3 - 2 h) / ((1 - h)(1 - 2 h)), NaN where h >= 1/2: how far IOS can be moved.

    >>> first_wrong_cut(np.array([0.0, 0.1, 0.5])).round(4)
    array([0.    , 0.3889,    nan])
    """
    safe = np.where(below(h, CUTS_BELOW), h, 0.0)
    return np.where(below(h, CUTS_BELOW), safe * (3.0 - 2.0 * safe) / ((1.0 - safe) * (1.0 - 2.0 * safe)), np.nan)


def twice_over_the_rest(h: Floats) -> Floats:
    """2 h / (1 - 2 h), NaN where h >= 1/2: how far LazyIOS, and FABA with equal weights, can be moved.

    >>> twice_over_the_rest(np.array([0.0, 0.1, 0.5]))
    array([0.  , 0.25,  nan])
    """
    safe = np.where(below(h, CUTS_BELOW), h, 0.0)
    return np.where(below(h, CUTS_BELOW), 2.0 * safe / (1.0 - 2.0 * safe), np.nan)


def twice_over_the_middle(h: Floats) -> Floats:
    """2 / (1 - 2 h), NaN where h >= 1/2: the `square_error` of medians and trimmed means by weight.

    >>> twice_over_the_middle(np.array([0.0, 0.1, 0.5]))
    array([2. , 2.5, nan])
    """
    safe = np.where(below(h, HALF), h, 0.0)
    return np.where(below(h, HALF), 2.0 / (1.0 - 2.0 * safe), np.nan)


def by_weight(
    of_h: Callable[[Floats], Floats],
    reason: str,
    *,
    equal: bool = False,
    within_b: bool = False,
    beside: tuple[Contraction, ...] = (),
) -> Contraction:
    """A bound that depends only on h, for workers with at most f lying neighbours.

    equal=True: the rule counts every neighbour 1 / (d_n + 1) instead of w'_nm.
    within_b=True: the proof needs no more than that neither the lies nor what is cut weigh more than h, so that b, if
    the rule is told one, takes the place of a larger h. But if silent liars leave f messages or fewer, the worker keeps
    its own model, as far as h / (1 - h) from the average with h the weight of the f heaviest: honest ones, not lies.
    """

    def finite(h: Floats) -> Floats:
        with np.errstate(over="ignore"):  # too large for a float is no proof that there is no bound
            most = of_h(h)
        return np.where(np.isfinite(most), most, np.nan)

    def bound(near: Neighbourhoods) -> Floats:
        most = finite(near.cut_weight(equal, within_b))
        if within_b and near.room is not None:
            h = near.cut_weight(equal)
            alone = np.maximum(most, np.where(h < 1.0, h / np.where(h < 1.0, 1.0 - h, 1.0), np.nan))
            most = np.where(near.neighbours - near.lying <= near.f, alone, most)
        return np.where(near.lying <= near.f, most, np.nan)

    return Contraction(bound, reason, of_h=finite, equal=equal, within_b=within_b, beside=beside)


def cutting(factor: float, reason: str, *, equal: bool = False) -> Contraction:
    """The bound factor h / (1 - 3 h) of a rule that cuts, the form of Theorem 3."""
    return by_weight(lambda h: bound_of_cuts(h, factor), reason, equal=equal)


def most_dropped(near: Neighbourhoods, times: float = 1.0) -> Floats:
    """(N,) the most that a rule can drop if it drops the farthest neighbours of weight at least `times` b.

    b is the weight of the f heaviest. Neighbours are dropped whole: if all weigh the same, the result is `times` b,
    otherwise less than `times` b plus the heaviest neighbour; never more than all neighbours.
    """
    total, heaviest_one = near.weight.sum(axis=1), near.weight.max(axis=1, initial=0.0)
    lightest = np.where(near.weight > 0.0, near.weight, np.inf).min(axis=1, initial=np.inf)
    spare = times * near.cut_weight()
    even = heaviest_one - lightest <= ROUNDING * heaviest_one
    most = np.minimum(total, np.where(even, spare, spare + heaviest_one))
    dropped: Floats = np.where(spare > 0.0, most, 0.0)
    return dropped


def _zero_without_cuts(near: Neighbourhoods) -> Floats:
    return np.where((near.lying == 0) & (near.f == 0), 0.0, np.nan)


MEAN_WITHOUT_CUTS = Contraction(_zero_without_cuts, "with f = 0 and no liar the rule is a plain mean")
"""For a rule that is the average xbar_n itself if f = 0, and about which nothing else is proved."""

"""The contraction constant rho: how far liars can push a rule away from its virtual average.

    ||A_n - xbar_n|| <= rho max_{m honest neighbour or n} ||x_m - xbar_n||        (Definition 1)

What is proved about it stands beside each rule (`Rule.contraction`: a theorem with constants, or a proof that there is
no constant) and is evaluated here on a network. Rules that cut have bounds by h_n, the sum of the f_n largest weights
among n's neighbours: with B_n <= f_n liars and h_n < 1/3

    rho <= max_n k h_n / (1 - 3 h_n),        RCA if h_n < rho* / (k + 3 rho*) for every n

(IOS, Theorem 3: k = 12).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byzmesh.errors import ByzmeshError, ConfigError
from byzmesh.networks import Network
from byzmesh.rules import contraction
from byzmesh.rules.base import Rule
from byzmesh.rules.ios import THEOREM_3
from byzmesh.theory.mixing import lying_weight
from byzmesh.types import Floats, Integers


class ContradictedProof(ByzmeshError):
    """An input was found on which a proved bound fails: the theory or its implementation is wrong."""


@dataclass(frozen=True)
class Proof:
    """What is proved about each worker's contraction.

    bound   (N,) upper bound on the worker's rho; infinity where rho is proved to be unbounded, NaN where nothing is
    reason  one line
    factor  k where the bound is k h / (1 - 3 h), None where it has another form
    """

    bound: Floats
    reason: str
    factor: float | None = None

    @property
    def rho(self) -> float:
        """The network's bound, the largest of the workers'; NaN if one of them has none."""
        return float(np.max(self.bound))


def neighbourhoods(network: Network, f: Integers) -> contraction.Neighbourhoods:
    """What a declared bound may depend on, with bounds f (N,) on the lying neighbours."""
    return contraction.Neighbourhoods(
        neighbours=network.layout.degree,
        lying=network.lying_neighbours,
        f=f,
        weight=network.layout.weight[:, 1:],
        lying_weight=lying_weight(network),
    )


def heaviest(network: Network, equal: bool = False) -> Floats:
    """(N, K) entry f of row n is the sum of the f largest weights among n's neighbours, f = 0 .. K - 1.

    equal=True counts every neighbour 1 / (d_n + 1) instead of w'_nm.

    >>> from byzmesh.networks import network
    >>> heaviest(network("star", n=3))[0].round(3)
    array([0.   , 0.333, 0.667])
    """
    return contraction.heaviest(_weights(network, equal))


def cut_weight(network: Network, f: Integers, equal: bool = False) -> Floats:
    """(N,) h_n, the sum of the f_n largest neighbour weights; f (N,) beyond the degree counts as the degree.

    >>> from byzmesh.networks import network
    >>> net = network("paper/two-castle")
    >>> cut_weight(net, net.bounds("exact")).max().round(3)
    np.float64(0.182)
    """
    return contraction.of_the_heaviest(f, _weights(network, equal))


def _weights(network: Network, equal: bool) -> Floats:
    weight = network.layout.weight[:, 1:]
    return contraction.equal_weights(network.layout.degree, weight.shape[1]) if equal else weight


def rca_limit(rho_star: float, factor: float | None = None) -> float:
    """h below this makes a rule with rho <= factor h / (1 - 3 h) robust contractive: rho* / (factor + 3 rho*).

    factor  None: IOS's 12 of Theorem 3

    >>> round(rca_limit(0.0366), 4)
    0.003
    """
    return max(0.0, rho_star) / ((THEOREM_3 if factor is None else factor) + 3.0 * max(0.0, rho_star))


def largest_f(network: Network, limit: float, equal: bool = False) -> Integers:
    """(N,) the largest f_n whose h_n stays below the limit, at most the degree; -1 if not even f_n = 0 does.

    >>> from byzmesh.networks import network
    >>> largest_f(network("paper/two-castle"), 1 / 3).max()
    np.int64(3)
    """
    fits = contraction.below(heaviest(network, equal), limit).sum(axis=1) - 1
    most: Integers = np.minimum(fits, network.layout.degree)
    return most


def proved_contraction(network: Network, rule: Rule, f: Integers) -> Proof:
    """Upper bounds on rho that are proved for this rule on this network, with bounds f (N,) on the lying neighbours.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("complete", n=13, byzantine=[0])
    >>> round(proved_contraction(net, rule("ios"), net.bounds(1)).rho, 6)
    1.2
    """
    declared = rule.contraction
    if declared is None:
        return Proof(np.full(len(network.honest), np.nan), "no bound with constants is known")
    bound = np.asarray(declared.bound(neighbourhoods(network, f)), np.float64)
    if bound.shape != network.honest.shape:
        raise ConfigError(
            f"the contraction bound of rule {rule.name} must have one entry per honest worker, "
            f"{network.honest.shape}, got {bound.shape}"
        )
    return Proof(bound, declared.reason, declared.factor)


SMALL_SHARE_LIMIT = 1 << 40


def first_size(bound: Callable[[float], float], to_own: bool) -> int:
    """The least n for which bound(1/n) < rho* on the complete graph with one liar.

    There W = 11^T/n + I/n (the liar's weight goes to own), lambda = 1 - 1/n^2, or equal weights with lambda = 1.

    >>> first_size(lambda h: 2.0 * h, to_own=True)
    256
    """
    low, high = 4, SMALL_SHARE_LIMIT
    while low < high:
        n = (low + high) // 2
        rate = 1.0 - 1.0 / n**2 if to_own else 1.0
        if bound(1.0 / n) < rate / (8.0 * math.sqrt(n - 1)):
            high = n
        else:
            low = n + 1
    return low

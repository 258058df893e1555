"""The contraction constant rho: how far liars can push a rule away from its virtual average.

    ||A_n - xbar_n|| <= rho max_{m honest neighbour or n} ||x_m - xbar_n||        (Definition 1)

IOS (Theorem 3), with h_n the sum of the f_n largest weights among n's neighbours, B_n <= f_n and h_n < 1/3:

    rho <= max_n 12 h_n / (1 - 3 h_n),        RCA if h_n < rho* / (12 + 3 rho*) for every n

The same holds for FABA with its own model inside the means, with h_n = f_n / (d_n + 1) (docs/theory.md). Under the same
condition (docs/reprieve.md)

    Reprieve  rho <= max_n max(3, 1 + c) h_n / (1 - 3 h_n)
    LazyIOS   rho <= max_n 2 h_n / (1 - 3 h_n)

Other rules have a proved value only where it is 0 (nobody lies
and the rule is a plain average) or infinite (a lie moves a worker even if all honest models agree).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byzmesh.errors import ByzmeshError
from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.theory.mixing import STRICT, lying_weight
from byzmesh.types import Booleans, Floats, Integers

THIRD = 1.0 / 3.0

_PLAIN_WITHOUT_CUTS = ("IOS", "FABA", "TriMean", "NNA", "MDA", "WeiMean")


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


def heaviest(network: Network, equal: bool = False) -> Floats:
    """(N, K) entry f of row n is the sum of the f largest weights among n's neighbours, f = 0 .. K - 1.

    equal=True counts every neighbour 1 / (d_n + 1) instead of w'_nm.

    >>> from byzmesh.networks import network
    >>> heaviest(network("star", n=3))[0].round(3)
    array([0.   , 0.333, 0.667])
    """
    layout = network.layout
    weight = layout.weight[:, 1:]
    if equal:
        weight = (layout.sender[:, 1:] >= 0) / (layout.degree[:, None] + 1.0)
    falling = -np.sort(-weight, axis=1)
    return np.concatenate([np.zeros((len(weight), 1)), np.cumsum(falling, axis=1)], axis=1)


def cut_weight(network: Network, f: Integers, equal: bool = False) -> Floats:
    """(N,) h_n, the sum of the f_n largest neighbour weights; f (N,) beyond the degree counts as the degree.

    >>> from byzmesh.networks import network
    >>> net = network("paper/two-castle")
    >>> cut_weight(net, net.bounds("exact")).max().round(3)
    np.float64(0.182)
    """
    total = heaviest(network, equal)
    picked: Floats = total[np.arange(len(total)), np.minimum(f, total.shape[1] - 1)]
    return picked


def below(value: Floats, limit: float) -> Booleans:
    """Whether each value is strictly below the limit, beyond rounding."""
    strict: Booleans = value < limit - STRICT  # a sum of weights equal to its limit up to rounding is not below it
    return strict


def theorem_3(h: Floats, factor: float = 12.0) -> Floats:
    """12 h / (1 - 3 h), NaN where h >= 1/3 and nothing is proved; other rules have other factors.

    >>> theorem_3(np.array([0.0, 0.25, 0.4]))
    array([ 0., 12., nan])
    """
    safe = below(h, THIRD)
    return np.where(safe, factor * h / np.where(safe, 1.0 - 3.0 * h, 1.0), np.nan)


def rca_limit(rho_star: float, factor: float | None = None) -> float:
    """h below this makes a rule with rho <= factor h / (1 - 3 h) robust contractive: rho* / (factor + 3 rho*).

    factor  None: IOS's 12 of Theorem 3

    >>> round(rca_limit(0.0366), 4)
    0.003
    """
    return max(0.0, rho_star) / ((12.0 if factor is None else factor) + 3.0 * max(0.0, rho_star))


def largest_f(network: Network, limit: float, equal: bool = False) -> Integers:
    """(N,) the largest f_n whose h_n stays below the limit, at most the degree; -1 if not even f_n = 0 does.

    >>> from byzmesh.networks import network
    >>> largest_f(network("paper/two-castle"), 1 / 3).max()
    np.int64(3)
    """
    fits = below(heaviest(network, equal), limit).sum(axis=1) - 1
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
    lying, liars = network.lying_neighbours, lying_weight(network) > 0.0
    nothing = np.full(len(network.honest), np.nan)
    if rule.name == "NoComm":
        return Proof(np.zeros(len(nothing)), "no worker listens to any other")
    if rule.name == "WeiMean":
        return Proof(np.where(liars, np.inf, 0.0), "a mean follows a liar as far as it goes; without one it is exact")
    if rule.name == "IOS" or (rule.name == "FABA" and rule.options.get("own") == "inside"):
        equal = rule.name == "FABA"
        bound = np.where(lying <= f, theorem_3(cut_weight(network, f, equal)), np.nan)
        return Proof(bound, "Theorem 3" + (" with equal weights" if equal else ""), 12.0)
    if rule.name in ("Reprieve", "LazyIOS"):
        factor = 2.0 if rule.name == "LazyIOS" else max(3.0, 1.0 + float(rule.options["c"]))
        bound = np.where(lying <= f, theorem_3(cut_weight(network, f), factor), np.nan)
        return Proof(bound, f"{rule.name}'s bound, docs/reprieve.md", factor)
    if rule.name in _PLAIN_WITHOUT_CUTS:
        return Proof(np.where((lying == 0) & (f == 0), 0.0, np.nan), "with f = 0 and no liar the rule is a plain mean")
    if rule.name == "SCC" or (rule.name == "CC" and rule.options.get("centre") == "own"):
        listens = liars if rule.name == "SCC" else lying > 0
        reason = "a fixed radius lets a liar move a worker even where all honest models agree"
        return Proof(np.where(listens, np.inf, np.nan), reason)
    return Proof(nothing, "no bound with constants is known")


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

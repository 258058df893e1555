"""The contraction constant rho: how far liars can push a rule away from its virtual average.

    ||A_n - xbar_n|| <= rho max_{m honest neighbour or n} ||x_m - xbar_n||        (Definition 1)

Each rule declares what is proved about it (`Rule.contraction`: a theorem with constants, or a proof that there is no
constant); this module evaluates that on a network. Rules that cut have bounds in h_n, the sum of the f_n largest
weights among n's neighbours; the paper's for IOS, with B_n <= f_n liars and h_n < 1/3, is

    rho <= max_n 12 h_n / (1 - 3 h_n),        RCA if h_n < rho* / (12 + 3 rho*) for every n        (Theorem 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from byzmesh.errors import ByzmeshError, ConfigError
from byzmesh.heaviest import ROUNDING, most_below, of_the_heaviest
from byzmesh.heaviest import heaviest as over_neighbours
from byzmesh.networks import Network
from byzmesh.rules import contraction
from byzmesh.rules.base import Rule
from byzmesh.rules.ios import THEOREM_3
from byzmesh.types import Booleans, Floats, Integers


class ContradictedProof(ByzmeshError):
    """An input was found on which a proved bound fails: the theory or its implementation is wrong."""


@dataclass(frozen=True)
class Proof:
    """What is proved about each worker's contraction.

    bound   (N,) upper bound on the worker's rho; infinity where rho is proved to be unbounded, NaN where nothing is
    reason  one line
    beside  weaker proofs worth naming, such as the published one
    """

    bound: Floats
    reason: str
    beside: tuple[Proof, ...] = ()

    @property
    def rho(self) -> float:
        """The network's bound, the largest of the workers'; NaN if one of them has none."""
        return float(np.max(self.bound))


def neighbourhoods(network: Network, f: Integers, room: Floats | None = None) -> contraction.Neighbourhoods:
    """What a declared bound may depend on, with bounds f (N,) on the lying neighbours, `room` (N,) on their weight."""
    return contraction.Neighbourhoods(
        neighbours=network.layout.degree,
        lying=network.lying_neighbours,
        f=f,
        weight=network.layout.weight[:, 1:],
        lying_weight=network.lying_weight,
        room=room,
    )


def heaviest(network: Network, equal: bool = False) -> Floats:
    """(N, K) entry f of row n is the sum of the f largest weights among n's neighbours, f = 0 .. K - 1.

    equal=True counts every neighbour 1 / (d_n + 1) instead of w'_nm.

    >>> from byzmesh.networks import network
    >>> heaviest(network("star", n=3))[0].round(3)
    array([0.   , 0.333, 0.667])
    """
    return over_neighbours(_weights(network, equal))


def cut_weight(network: Network, f: Integers, equal: bool = False) -> Floats:
    """(N,) h_n, the sum of the f_n largest neighbour weights; f (N,) beyond the degree counts as the degree.

    >>> from byzmesh.networks import network
    >>> net = network("paper/two-castle")
    >>> cut_weight(net, net.bounds("exact")).max().round(3)
    np.float64(0.182)
    """
    return of_the_heaviest(f, _weights(network, equal))


def _weights(network: Network, equal: bool) -> Floats:
    weight = network.layout.weight[:, 1:]
    return contraction.equal_weights(network.layout.degree, weight.shape[1]) if equal else weight


def rca_limit(rho_star: float) -> float:
    """h below this makes IOS robust contractive by Theorem 3: rho* / (12 + 3 rho*).

    >>> round(rca_limit(0.0366), 4)
    0.003
    """
    return max(0.0, rho_star) / (THEOREM_3 + 3.0 * max(0.0, rho_star))


def largest_f(network: Network, limit: float, equal: bool = False) -> Integers:
    """(N,) the largest f_n whose h_n stays below the limit, at most the degree; -1 if not even f_n = 0 does.

    >>> from byzmesh.networks import network
    >>> largest_f(network("paper/two-castle"), 1 / 3).max()
    np.int64(3)
    """
    return most_below(_weights(network, equal), network.layout.degree, limit)


def proved_contraction(network: Network, rule: Rule, f: Integers, told: Floats | None = None) -> Proof:
    """Upper bounds on rho that are proved for this rule on this network, with bounds f (N,) on the lying neighbours.

    told  (N,) the rule is told that lies weigh at most this; where they weigh more, nothing is proved

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("complete", n=13, byzantine=[0])
    >>> proof = proved_contraction(net, rule("ios"), net.bounds(1))
    >>> round(proof.rho, 6), [(weaker.reason, round(weaker.rho, 6)) for weaker in proof.beside]
    (0.280303, [('Theorem 3', 1.2)])
    """
    proof = evaluated(rule, [neighbourhoods(network, f, told)])
    return proof if told is None else _except(proof, network.lying_weight > told * (1.0 + ROUNDING))


def _except(proof: Proof, workers: Booleans) -> Proof:
    """The proof without its bounds for these workers (N,); that there is none stays proved."""
    bound = np.where(workers & np.isfinite(proof.bound), np.nan, proof.bound)
    return Proof(bound, proof.reason, tuple(_except(weaker, workers) for weaker in proof.beside))


def evaluated(rule: Rule, cases: list[contraction.Neighbourhoods]) -> Proof:
    """What a rule's declaration proves in all of these cases together, each with the same N workers."""
    if rule.contraction is None:
        return Proof(np.full(len(cases[0].f), np.nan), "no bound with constants is known")
    return _in_all(rule.name, rule.contraction, cases)


def _in_all(name: str, declared: contraction.Contraction, cases: list[contraction.Neighbourhoods]) -> Proof:
    bounds = []
    for near in cases:
        bound = np.asarray(declared.bound(near), np.float64)
        if bound.shape != near.f.shape:
            raise ConfigError(
                f"the contraction bound of rule {name} must have one entry per honest worker, "
                f"{near.f.shape}, got {bound.shape}"
            )
        bounds.append(bound)
    stacked = np.stack(bounds)
    worst = np.where(np.isinf(stacked).any(axis=0), np.inf, stacked.max(axis=0))
    return Proof(worst, declared.reason, tuple(_in_all(name, weaker, cases) for weaker in declared.beside))


SMALL_SHARE_LIMIT = 1 << 40


def first_size(bound: Callable[[float], float], to_own: bool) -> int:
    """The smallest n for which bound(1/n) < rho* on the complete graph with one liar.

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

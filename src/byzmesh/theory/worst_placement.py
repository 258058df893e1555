"""The worst placement: which nodes, if they lied, would hurt most.

Exhaustive if all placements can be tried within about a second; otherwise greedy, one liar at a time, each the worst
given those already chosen, and on large networks only among the nodes that the others trust most. One exact test comes
first: nothing is worse than liars that cut off an honest worker or split the honest workers in two. The result is a
placement to look at, not a proof: certificates for liars anywhere use bounds that hold for all placements (`question`,
`connectivity`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from byzmesh.checks import choice, whole
from byzmesh.networks import Network, algebraic_connectivity
from byzmesh.theory.mixing import mixing_rate, to_own
from byzmesh.types import Integers

Score = Callable[[Network], float]

WORK = 2e9
"""Roughly the arithmetic (placements times n^3) spent on one question."""
PLACEMENTS = 20_000
SMALL = 64
"""Networks of up to this many nodes are searched for a smallest cut."""


def _rate(network: Network) -> float:
    return mixing_rate(to_own(network))


def _lies(network: Network) -> float:
    return -float(network.lying_weight.max())


def _gossip(network: Network) -> float:
    if len(network.honest) < 2:
        return 0.0
    return algebraic_connectivity(network.sparse_mixing(network.honest)) + 2.0 * _lies(network)


CRITERIA: dict[str, Score] = {"rate": _rate, "lies": _lies, "gossip": _gossip}
"""What the liars minimise: lambda; minus the largest weight of lies at a worker; mu_2 - 2 b."""


@dataclass(frozen=True)
class Placement:
    """A placement, the value of the criterion there, and how it was found: "cut", "exhaustive" or "greedy"."""

    byzantine: Integers
    value: float
    method: str
    tried: int

    @property
    def exact(self) -> bool:
        """Whether no placement can be worse."""
        return self.method != "greedy"


def worst_placement(network: Network, liars: int, criterion: str = "rate") -> Placement:
    """The worst positions for a number of liars.

    >>> from byzmesh.networks import network
    >>> worst_placement(network("star", n=5), 1).byzantine.tolist()
    [0]
    """
    choice("criterion", criterion, CRITERIA)
    whole("liars", liars, 1, network.n - 1)
    score = CRITERIA[criterion]
    cut = _separating(network, liars) if criterion == "rate" else None
    if cut is not None:
        return Placement(cut, score(network.with_byzantine(cut)), "cut", 1)
    if math.comb(network.n, liars) <= min(PLACEMENTS, WORK / network.n**3):
        return _exhaustive(network, liars, score)
    return _greedy(network, liars, score)


def _exhaustive(network: Network, liars: int, score: Score) -> Placement:
    best, tried = math.inf, 0
    chosen: tuple[int, ...] = ()
    for nodes in combinations(range(network.n), liars):
        tried += 1
        value = score(network.with_byzantine(nodes))
        if value < best - 1e-12:
            best, chosen = value, nodes
    return Placement(np.array(chosen, np.int64), best, "exhaustive", tried)


def _greedy(network: Network, liars: int, score: Score) -> Placement:
    width = max(4, int(WORK / (liars * float(network.n) ** 3)))
    chosen: list[int] = []
    best, tried = math.inf, 0
    for _ in range(liars):
        rest = np.setdiff1d(np.arange(network.n), chosen)
        inner, kept = network.links.among(rest)
        weight = np.bincount(inner.sender, network.link_weight[kept], minlength=len(rest)).round(12)
        shortlist = rest[np.argsort(-weight, kind="stable")[:width]]
        values = [score(network.with_byzantine([*chosen, int(node)])) for node in shortlist]
        tried += len(values)
        best = min(values)
        chosen.append(int(shortlist[int(np.argmin(values))]))
    return Placement(np.sort(np.array(chosen, np.int64)), best, "greedy", tried)


def _separating(network: Network, liars: int) -> Integers | None:
    """Liars that disconnect the honest workers, or None if none were found (exact up to 64 nodes)."""
    if network.n - liars < 2:
        return None
    lonely = int(network.degree.argmin())
    cut = set(network.neighbours(lonely).tolist())
    if len(cut) > liars and network.n <= SMALL:
        import networkx

        graph = networkx.from_numpy_array(network.adjacency)  # small
        cut = set(networkx.minimum_node_cut(graph)) if networkx.is_connected(graph) else set()
    if len(cut) > liars:
        return None
    return _filled(network, cut, liars)


def _filled(network: Network, cut: set[int], liars: int) -> Integers | None:
    """The cut plus more liars up to the wanted number, with honest workers left on both sides."""
    for node in range(network.n):
        if len(cut) == liars:
            break
        if node not in cut and not network.with_byzantine([*cut, node]).honest_connected:
            cut = cut | {node}
    placed = network.with_byzantine(sorted(cut))
    return placed.byzantine if len(cut) == liars and not placed.honest_connected else None

"""The question of a certificate: given liars, or liars anywhere.

given      the network names its liars; the workers are the honest ones
anywhere   nobody is named: the liars may be any set of nodes such that every honest worker n has at most f_n of them as
           neighbours and, if a total is given, of at most `total` nodes. Smaller sets that meet this are included.
           Every node is then a worker that may be the victim

In either case f_n liars weigh at most the sum of n's f_n heaviest neighbours, so bounds that rise with it need no
enumeration of placements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.rules import contraction
from byzmesh.rules.base import Rule
from byzmesh.theory.contraction import Proof, evaluated, heaviest, neighbourhoods
from byzmesh.types import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Question:
    """The network, the bound f (R,) that the rule of each of its R workers is given, and where liars may be.

    total  at most this many lie in the whole network; None: any number that f allows (only if they may be anywhere).
           The rule is given f all the same: it cuts f messages, however few may lie
    """

    network: Network
    f: Integers
    anywhere: bool
    total: int | None = None

    @property
    def workers(self) -> Integers:
        """(R,) ids."""
        return self.network.honest

    @cached_property
    def most(self) -> Integers:
        """(R,) how many neighbours of each worker can lie at once."""
        if not self.anywhere:
            return self.network.lying_neighbours
        limit = self.network.n if self.total is None else self.total
        return np.minimum(np.minimum(self.f, self.network.layout.degree), limit)

    @cached_property
    def alone(self) -> Integers:
        """Ids of the nodes that may lie alone, if liars may be anywhere. With different f others may lie in groups.

        A liar beside a worker with f = 0 is possible only if that worker lies too.
        """
        if self.total == 0:
            return np.zeros(0, np.int64)
        links = self.network.links
        heard_by_wary = np.bincount(links.sender, self.f[links.receiver] < 1, minlength=links.n)
        return np.flatnonzero(heard_by_wary == 0)

    def admits(self, liars: list[int]) -> bool:
        """Whether all of these nodes may lie at once, and somebody is left."""
        chosen = np.zeros(self.network.n, bool)
        chosen[liars] = True
        if chosen.all() or (self.total is not None and len(liars) > self.total):
            return False
        return bool((chosen | (self.network.links.count(chosen) <= self.f)).all())

    def worst_liars(self, worker: int) -> list[int]:
        """Neighbours of a worker that may lie together, the heaviest first: an attack that is possible."""
        near = self.network.neighbours(worker)
        if not self.anywhere:
            return [node for node in near.tolist() if node in self.network.byzantine]
        chosen: list[int] = []
        for node in near[np.argsort(-self.network.neighbour_weights(worker), kind="stable")].tolist():
            if len(chosen) < self.most[worker] and self.admits([*chosen, node]):
                chosen.append(node)
        return chosen

    def proved(self, rule: Rule) -> Proof:
        """Upper bounds (R,) on rho that hold for every placement in question.

        Infinity where a placement is known for which there is no bound, NaN where nothing is proved.
        """
        if not self.anywhere:
            return evaluated(rule, [neighbourhoods(self.network, self.f)])
        weight = heaviest(self.network)
        rows = np.arange(len(self.f))
        cases = []
        for count in range(1 + int(self.most.max(initial=0))):
            lying = np.minimum(count, self.most)
            cases.append(self._near(lying, weight[rows, lying]))
        proof = evaluated(rule, cases)
        if not np.isinf(proof.bound).any():
            return proof
        # With different f the heaviest neighbours may not be able to lie together; only a possible case refutes.
        sets = [self.worst_liars(worker) for worker in range(self.network.n)]
        lying = np.array([len(liars) for liars in sets], np.int64)
        links, weight = self.network.links, self.network.link_weight
        total = np.array([weight[links.find(worker, liars)].sum() for worker, liars in enumerate(sets)])
        sure = np.isinf(evaluated(rule, [self._near(lying, total)]).bound)
        bound = np.where(np.isinf(proof.bound) & ~sure, np.nan, proof.bound)
        return Proof(bound, proof.reason, proof.beside)

    def _near(self, lying: Integers, lying_weight: Floats) -> contraction.Neighbourhoods:
        layout = self.network.layout
        return contraction.Neighbourhoods(
            neighbours=layout.degree, lying=lying, f=self.f, weight=layout.weight[:, 1:], lying_weight=lying_weight
        )

    def gossip_error(self, rule: Rule) -> Floats | None:
        """(R,) e of `Rule.gossip_error` in the worst case; None if the rule declares none."""
        if rule.gossip_error is None:
            return None
        if not self.anywhere:
            return np.asarray(rule.gossip_error(neighbourhoods(self.network, self.f)), np.float64)
        lies = heaviest(self.network)[np.arange(len(self.f)), self.most]
        return np.asarray(rule.gossip_error(self._near(self.most, lies)), np.float64)


def ask(network: Network, f: Any = None, total: int | None = None) -> Question:
    """The question for these arguments.

    f      on a network with liars as in `Network.bounds`, by default "exact"; on one without it must be given: a number
           of liars per neighbourhood, one per node or a mapping from nodes, meant for liars anywhere
    total  liars anywhere, at most this many in the whole network; f, which the rule is given, is the same number unless
           given

    >>> from byzmesh.networks import network
    >>> ask(network("paper/two-castle")).anywhere, ask(network("ring", n=5), 1).most.tolist()
    (False, [1, 1, 1, 1, 1])
    """
    if len(network.byzantine):
        if total is not None:
            raise ConfigError("total is for liars anywhere, but this network names its liars; say byzantine='none' too")
        return Question(network=network, f=network.bounds("exact" if f is None else f), anywhere=False)
    if total is not None:
        whole("total", total, 0, network.n - 1, f"liars among {network.n} nodes")
    if (f is None and total is None) or isinstance(f, str):
        said = "f is not given" if f is None else f"f = {f!r} counts them"
        raise ConfigError(f"nobody lies in this network and {said}: give f, how many neighbours of a worker may lie")
    bounds = np.minimum(network.bounds(total if f is None else f), network.layout.degree)
    return Question(network=network, f=bounds, anywhere=True, total=total)

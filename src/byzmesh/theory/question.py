"""The question of a certificate: given liars, or liars anywhere.

given      the network names its liars; the workers are the honest ones
anywhere   nobody is named: the liars may be any set of nodes such that every honest worker n has at most f_n of them as
           neighbours, that they weigh at most b_n for it, if b is given, and that they are at most `total`, if that is
           given. Smaller sets that meet this are included. Every node is then a worker that may be the victim

In either case f_n liars weigh at most the sum of n's f_n heaviest neighbours, and at most b_n, so bounds that rise with
it need no enumeration of placements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.checks import is_number, whole
from byzmesh.errors import ConfigError
from byzmesh.heaviest import ROUNDING, most_within
from byzmesh.networks import Network
from byzmesh.networks.fault_bounds import unlimited
from byzmesh.rules import contraction
from byzmesh.rules.base import Rule
from byzmesh.theory.contraction import Proof, evaluated, heaviest, neighbourhoods, proved_contraction
from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Question:
    """The network, the bound f (R,) that the rule of each of its R workers is given, and where liars may be.

    total  at most this many lie in the whole network; None: any number that f allows (only if they may be anywhere).
           The rule is given f all the same: it cuts f messages, however few may lie
    b      (R,) the liars beside a worker weigh at most this; None: no such bound
    told   (R,) the rule is given this bound on the weight of lies too (b of a config) and relies on it; None: f alone
    """

    network: Network
    f: Integers
    anywhere: bool
    total: int | None = None
    b: Floats | None = None
    told: Floats | None = None

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
        most = np.minimum(np.minimum(self.f, self.network.layout.degree), limit)
        return most if self.b is None else np.minimum(most, _most_within(self.network, self.b))

    @cached_property
    def most_weight(self) -> Floats:
        """(R,) how much the lying neighbours of each worker can weigh together, at most."""
        if not self.anywhere:
            return self.network.lying_weight
        return self._weighing(self.most)

    @cached_property
    def misled(self) -> Booleans:
        """(R,) whether lies can weigh more than the rule is told: what is proved about it counts on that bound."""
        if self.told is None:
            return np.zeros(len(self.f), bool)
        more: Booleans = self.most_weight > self.told * (1.0 + ROUNDING)
        return more

    def _weighing(self, lying: Integers) -> Floats:
        """(R,) how much so many lying neighbours can weigh at most."""
        weight: Floats = heaviest(self.network)[np.arange(len(self.f)), lying]
        return weight if self.b is None else np.minimum(weight, self.b)

    @cached_property
    def alone(self) -> Integers:
        """Ids of the nodes that may lie alone, if liars may be anywhere. With different f others may lie in groups.

        A liar beside a worker with f = 0 is possible only if that worker lies too.
        """
        if self.total == 0:
            return np.zeros(0, np.int64)
        links = self.network.links
        wary = self.f[links.receiver] < 1
        if self.b is not None:
            wary |= self.network.link_weight > self.b[links.receiver] * (1.0 + ROUNDING)
        return np.flatnonzero(np.bincount(links.sender, wary, minlength=links.n) == 0)

    def admits(self, liars: list[int]) -> bool:
        """Whether all of these nodes may lie at once, and somebody is left."""
        chosen = np.zeros(self.network.n, bool)
        chosen[liars] = True
        if chosen.all() or (self.total is not None and len(liars) > self.total):
            return False
        links = self.network.links
        few = links.count(chosen) <= self.f
        if self.b is not None:
            weight = np.bincount(links.receiver, self.network.link_weight * chosen[links.sender], minlength=links.n)
            few &= weight <= self.b * (1.0 + ROUNDING)
        return bool((chosen | few).all())

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
            return proved_contraction(self.network, rule, self.f, self.told)
        cases = []
        for count in range(1 + int(self.most.max(initial=0))):
            lying = np.minimum(count, self.most)
            cases.append(self._near(lying, self._weighing(lying)))
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
            neighbours=layout.degree,
            lying=lying,
            f=self.f,
            weight=layout.weight[:, 1:],
            lying_weight=lying_weight,
            room=self.told,
        )

    def gossip_error(self, rule: Rule) -> Floats | None:
        """(R,) e of `Rule.gossip_error` in the worst case; None if the rule declares none."""
        if rule.gossip_error is None:
            return None
        if not self.anywhere:
            error = np.asarray(rule.gossip_error(neighbourhoods(self.network, self.f)), np.float64)
            return np.where(self.misled, np.nan, error)
        return np.asarray(rule.gossip_error(self._near(self.most, self.most_weight)), np.float64)


def _most_within(network: Network, b: Floats) -> Integers:
    """(R,) how many neighbours of each worker can weigh at most b (R,) together."""
    return most_within(network.layout.weight[:, 1:], network.layout.degree, b)


def _weight_bounds(b: Any, network: Network) -> Floats:
    """(n,) one bound on the weight of lies per node, from a number, one per node, or a mapping from node id."""
    if isinstance(b, Mapping):
        missing = next((node for node in range(network.n) if node not in b), None)
        if missing is not None or len(b) > network.n:
            raise ConfigError(f"b must name every node, 0 to {network.n - 1}, and no other; got {len(b)} of them")
        b = [b[node] for node in range(network.n)]
    each = list(b) if isinstance(b, Sequence | np.ndarray) and not isinstance(b, str) else [b] * network.n
    if len(each) != network.n or not all(is_number(value) and 0.0 <= value < 1.0 for value in each):
        raise ConfigError(
            f"b must be a weight of at least 0 and below 1, or one for each of {network.n} nodes, got {b!r}"
        )
    return np.asarray(each, np.float64)


def ask(
    network: Network,
    f: Any = None,
    total: int | None = None,
    b: Any = None,
    largest: Callable[[int], int] = unlimited,
) -> Question:
    """The question for these arguments.

    f      on a network with liars as in `Network.bounds`, by default "exact"; on one without it must be given: a number
           of liars per neighbourhood, one per node or a mapping from nodes, meant for liars anywhere
    total  liars anywhere, at most this many in the whole network; f, which the rule is given, is the same number unless
           given
    b      liars anywhere that weigh at most this for each worker: a number, one per node or a mapping from nodes; f,
           which the rule is given, is the largest number of liars that this allows, unless given
    largest  neighbours -> the largest f that the rule allows, for bounds that follow from the weights

    f = {"weight": 0.2}, b of a config, also tells the rule that lies weigh no more, and is b unless that is given, too.

    >>> from byzmesh.networks import network
    >>> ask(network("paper/two-castle")).anywhere, ask(network("ring", n=5), 1).most.tolist()
    (False, [1, 1, 1, 1, 1])
    """
    if len(network.byzantine):
        for name, value in (("total", total), ("b", b)):
            if value is not None:
                raise ConfigError(
                    f"{name} is for liars anywhere, but this network names its liars; say byzantine='none' too"
                )
        bounds = network.bounds("exact" if f is None else f, largest)
        return Question(network=network, f=bounds, anywhere=False, told=network.weight_bounds(f))
    if network.directed:
        raise ConfigError(
            "liars anywhere are decided for links that go both ways; name the liars of a directed network"
        )
    if total is not None:
        whole("total", total, 0, network.n - 1, f"liars among {network.n} nodes")
    told = network.weight_bounds(f)
    weight = told if b is None else _weight_bounds(b, network)
    if told is not None and weight is not None:
        if (weight > told).any():
            node = int(np.argmax(weight - told))
            raise ConfigError(
                f"b = {weight[node]:g} at node {node} is more than the {told[node]:g} that the rule is told (b "
                "of a config, or f as a weight); tell it more, or leave b out"
            )
        f = _most_within(network, told)  # as in a run, which knows of no total
    elif f is None and weight is not None:
        f = np.minimum(_most_within(network, weight), network.n if total is None else total)
    if (f is None and total is None) or (isinstance(f, str) and f in ("exact", "max")):
        said = "f is not given" if f is None else f"f = {f!r} counts them"
        raise ConfigError(f"nobody lies in this network and {said}: give f, how many neighbours of a worker may lie")
    bounds = np.minimum(network.bounds(total if f is None else f, largest), network.layout.degree)
    return Question(network=network, f=bounds, anywhere=True, total=total, b=weight, told=told)

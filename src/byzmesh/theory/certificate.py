"""The certificate: can this network tolerate these liars under this rule?

Two properties of the paper are decided, each "proved", "refuted" or "unknown":

    RDSA   the rule has a contraction constant with a doubly stochastic W: everybody counts the same
    RCA    that constant is below rho* = lambda / (8 sqrt N): the workers reach consensus (Theorem 2)

Proved means by a theorem with constants, never by an order. Refuted means by arithmetic (W, lambda) or by a witness:
an input, which can be saved, on which the rule deviates too much. Everything else is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import choice, is_whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.theory import mixing as matrices
from byzmesh.theory.contraction import Proof, proved_contraction
from byzmesh.theory.gossip import Gossip, gossip_criterion
from byzmesh.theory.search.climb import Search, search_contraction
from byzmesh.theory.theorems import Promise, promise
from byzmesh.theory.verdicts import Facts, Verdict, WorkerReport, decide_rca, decide_rdsa, reports
from byzmesh.theory.worst_placement import Placement, worst_placement
from byzmesh.types import Floats

GUARANTEES = ("rdsa", "rca", "both", "gossip", "connected")


@dataclass(frozen=True)
class Certificate:
    """What is known about a rule on a network. `print` shows it in words, `to_dict` is for machines.

    rho_bound is the proved bound (None: nothing proved; infinity: proved to be unbounded), search what was found.
    """

    network: Network
    rule: Rule
    f: Any
    mixing: matrices.Mixing
    rate: float
    rho_star: float
    chi2: float
    doubly_stochastic: bool
    strongly_connected: bool
    honest_connected: bool
    perron: Floats | None
    proof: Proof
    rho_bound: float | None
    workers: tuple[WorkerReport, ...]
    rdsa: Verdict
    rca: Verdict
    gossip: Gossip
    search: Search | None
    placement: Placement | None
    promise: Promise | None
    guarantee: str

    @property
    def holds(self) -> bool:
        """Whether the guarantee that was asked for is proved."""
        connected = self.honest_connected and self.strongly_connected
        return {
            "rdsa": bool(self.rdsa) and connected,
            "rca": bool(self.rca),
            "both": bool(self.rdsa) and bool(self.rca),
            "gossip": self.gossip.holds.get(self.rule.name, False),
            "connected": connected,
        }[self.guarantee]

    @property
    def h_max(self) -> float:
        """The largest h."""
        return max(worker.h for worker in self.workers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that does not exist or is infinite is None."""
        from byzmesh.theory.certificate_text import as_dict

        return as_dict(self)

    def __str__(self) -> str:
        from byzmesh.theory.certificate_text import in_words

        return in_words(self)


def certify(
    network: Network,
    rule: str | Rule = "ios",
    f: Any = "exact",
    *,
    guarantee: str = "rdsa",
    search: int = 0,
    seed: int = 0,
    dimension: int = 2,
    L: float | None = None,
    delta_in: float | None = None,
    delta_out: float | None = None,
    step: float | None = None,
    rounds: int | None = None,
    gap: float | None = None,
    **options: Any,
) -> Certificate:
    """The certificate of a rule on a network.

    f          bound on the lying neighbours; a number on a network without liars stands for that many liars in the
               worst places, and every worker then expects min(f, its neighbours)
    guarantee  what `holds` answers: "rdsa" (and connected), "rca", "both", "connected" or "gossip" (2 rho b < mu_2,
               for gossip rules)
    search     inputs to try per kind of neighbourhood for a witness; 0: none
    L, delta_in, delta_out (and step, rounds, gap = f(x^0) - f*)  the problem, for the theorems in numbers

    >>> from byzmesh.networks import network
    >>> told = certify(network("paper/two-castle"))
    >>> told.rdsa.status, told.rca.status, round(told.rate, 3), round(told.h_max, 3)
    ('proved', 'unknown', 0.926, 0.182)
    """
    choice("guarantee", guarantee, GUARANTEES)
    chosen = make_rule(rule, **options)
    placement = None
    if is_whole(f) and f > 0 and len(network.byzantine) == 0:
        placement = worst_placement(network, int(f))
        network = network.with_byzantine(placement.byzantine)
        bounds = np.minimum(int(f), network.layout.degree)
    else:
        bounds = network.bounds(f)
    virtual = matrices.virtual_mixing(network, chosen)
    rate = matrices.mixing_rate(virtual.matrix)
    star = matrices.rho_star(rate, len(virtual.matrix))
    proof = proved_contraction(network, chosen, bounds)
    found = None
    if search:
        found = search_contraction(network, chosen, bounds, budget=search, seed=seed, dimension=dimension, proof=proof)
    bound = None if math.isnan(proof.rho) else proof.rho
    workers = reports(network, chosen, bounds, proof, star, virtual.form == "equal")
    facts = Facts(virtual, star, proof, found, workers)
    return Certificate(
        network,
        chosen,
        f,
        virtual,
        rate,
        star,
        matrices.chi2(virtual.matrix),
        matrices.doubly_stochastic(virtual.matrix),
        matrices.strongly_connected(virtual.matrix),
        network.honest_connected,
        matrices.perron(virtual.matrix),
        proof,
        bound,
        workers,
        decide_rdsa(facts),
        decide_rca(facts),
        gossip_criterion(network),
        found,
        placement,
        _promise(facts, rate, L, delta_in, delta_out, step, rounds, gap),
        guarantee,
    )


def _promise(
    facts: Facts,
    rate: float,
    smoothness: float | None,
    delta_in: float | None,
    delta_out: float | None,
    step: float | None,
    rounds: int | None,
    gap: float | None,
) -> Promise | None:
    given = {"L": smoothness, "delta_in": delta_in, "delta_out": delta_out}
    if smoothness is None or delta_in is None or delta_out is None:
        missing = [name for name, value in given.items() if value is None]
        if len(missing) < 3 or step is not None or rounds is not None or gap is not None:
            raise ConfigError(f"the theorems in numbers need L, delta_in and delta_out; give {', '.join(missing)} too")
        return None
    return promise(
        rate=rate,
        rho=facts.proof.rho,
        chi2=matrices.chi2(facts.mixing.matrix),
        workers=len(facts.mixing.matrix),
        smoothness=smoothness,
        delta_in=delta_in,
        delta_out=delta_out,
        step=step,
        rounds=rounds,
        gap=gap,
    )

"""`certify`: can this network tolerate these liars under this rule?

Two properties of the paper are decided, each "proved", "refuted" or "unknown":

    RDSA   the rule has a contraction constant with a doubly stochastic W: everybody counts the same
    RCA    that constant is below rho* = lambda / (8 sqrt N): the workers reach consensus (Theorem 2)

Proved means by a theorem with constants, never by an order. Refuted means by arithmetic (W, lambda) or by a witness:
an input, which can be saved, on which the rule deviates too much. Everything else is unknown.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byzmesh.checks import choice, is_whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.theory import mixing as matrices
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.gossip import gossip_criterion
from byzmesh.theory.search.climb import default_budget, search_contraction
from byzmesh.theory.theorems import Promise, promise
from byzmesh.theory.verdicts import Facts, decide_rca, decide_rdsa, reports
from byzmesh.theory.worst_placement import worst_placement

GUARANTEES = ("rdsa", "rca", "both", "gossip", "connected")


def certify(
    network: Network,
    rule: str | Rule = "ios",
    f: Any = "exact",
    *,
    guarantee: str = "rdsa",
    search: int | None = None,
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
    search     inputs to try per kind of neighbourhood for a witness; 0: none; None: 10,000 on networks of up to 64
               workers, for rules that look at the received models only
    L, delta_in, delta_out (and step, rounds, gap = f(x^0) - f*)  the problem, for the theorems in numbers

    >>> from byzmesh.networks import network
    >>> told = certify(network("paper/two-castle"))
    >>> told.rdsa.status, told.rca.status, round(told.rate, 3), round(told.h_max, 3)
    ('proved', 'refuted', 0.926, 0.182)
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
    budget = default_budget(network, chosen) if search is None else search
    searched = None
    if budget:
        searched = search_contraction(
            network, chosen, bounds, budget=budget, seed=seed, dimension=dimension, proof=proof
        )
    workers = reports(network, chosen, bounds, proof, star, virtual.form == "equal")
    facts = Facts(mixing=virtual, rho_star=star, proof=proof, search=searched, workers=workers)
    return Certificate(
        network=network,
        rule=chosen,
        f=f,
        mixing=virtual,
        rate=rate,
        rho_star=star,
        chi2=matrices.chi2(virtual.matrix),
        doubly_stochastic=matrices.doubly_stochastic(virtual.matrix),
        strongly_connected=matrices.strongly_connected(virtual.matrix),
        honest_connected=network.honest_connected,
        perron=matrices.perron(virtual.matrix),
        proof=proof,
        rho_bound=None if math.isnan(proof.rho) else proof.rho,
        workers=workers,
        rdsa=decide_rdsa(facts),
        rca=decide_rca(facts),
        gossip=gossip_criterion(network),
        search=searched,
        placement=placement,
        promise=_promise(facts, rate, L, delta_in, delta_out, step, rounds, gap),
        guarantee=guarantee,
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

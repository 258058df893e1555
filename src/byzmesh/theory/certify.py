"""`certify`: can this network tolerate these liars, or any f of them, under this rule?

The guarantee is one of the levels of `verdicts`: "bounded" (the default), "fair" or "agrees", or "connected", or one of
the paper's two properties, "rdsa" and "rca". Each is "proved", "refuted" or "unknown". Proved means by a theorem with
constants, never by an order, and for every placement in question. Refuted means by arithmetic or by a witness: an
input, which can be saved, on which the rule deviates too much. Everything else is unknown.
"""

from __future__ import annotations

import math
from typing import Any

from byzmesh.channels import channel_stages
from byzmesh.checks import choice, positive, whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.theory import mixing as matrices
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.channel_error import statement
from byzmesh.theory.connectivity import connectivity
from byzmesh.theory.consensus import conditions
from byzmesh.theory.gossip import Spectrum, spectrum, weight_of_lies
from byzmesh.theory.question import Question, ask
from byzmesh.theory.search.agreement import Agreement, search_agreement
from byzmesh.theory.search.climb import SMALL_NETWORK, Search, default_budget, search_contraction
from byzmesh.theory.search.every_mixing import best_row
from byzmesh.theory.search.exchange import Exchange, stuck_camps
from byzmesh.theory.search.game import Game, games_anywhere, games_of, playable
from byzmesh.theory.sites import site_reports
from byzmesh.theory.theorems import Promise, promise
from byzmesh.theory.verdicts import (
    Facts,
    decide_agrees,
    decide_bounded,
    decide_fair,
    decide_rca,
    decide_rdsa,
    reports,
)

GUARANTEES = ("bounded", "fair", "agrees", "connected", "rdsa", "rca")
RHO = 1.0
"""The default limit: with rho <= 1 a worker stays within the ball around its virtual average that contains the honest
models it receives, so no lie moves it outside of everything honest."""
ROUND_BUDGET = 6000
"""How many exchanges of the whole network are tried at most for the worst factor of H."""
ROUND_WORK = 6e6
"""The same for large networks, in products of two vectors that the exchanges need."""
KINDS = 2
"""How many distinct neighbourhoods are searched for a W that would do."""


def certify(
    network: Network,
    rule: str | Rule = "ios",
    f: Any = None,
    *,
    total: int | None = None,
    b: Any = None,
    guarantee: str = "bounded",
    rho: float = RHO,
    search: int | None = None,
    seed: int = 0,
    dimension: int = 2,
    L: float | None = None,
    delta_in: float | None = None,
    delta_out: float | None = None,
    step: float | None = None,
    rounds: int | None = None,
    gap: float | None = None,
    channel: Any = None,
    **options: Any,
) -> Certificate:
    """The certificate of a rule on a network.

    f          bound on the lying neighbours. On a network with liars, the question is about these, and f is "exact" by
               default. On one without, f must be given: the question is about all placements of at most f liars per
               neighbourhood, however few
    total      on a network without liars: at most this many in the whole network (and f per neighbourhood, if given)
    b          on a network without liars: those beside a worker weigh at most this (and are at most f, if given); a
               number, one per node or a mapping from nodes
    guarantee  what `holds` answers: "bounded", "fair", "agrees", "connected", "rdsa" or "rca"
    rho        the limit of "bounded" and "fair" on the contraction constant
    search     inputs to try per distinct neighbourhood for a witness; 0: none; None: 10,000 on networks of up to 64
               workers, for rules that use only the received models
    channel    what happens to messages on their way, as in a config: the certificate then says what lies and the
               channel do together
    L, delta_in, delta_out (and step, rounds, gap = f(x^0) - f*)  the problem, for the theorems in numbers

    >>> from byzmesh.networks import network
    >>> told = certify(network("paper/two-castle"))
    >>> told.bounded.status, told.fair.status, told.agrees.status, round(told.proof.rho, 4)
    ('proved', 'proved', 'unknown', 0.9206)
    """
    choice("guarantee", guarantee, GUARANTEES)
    positive("rho", rho)
    if search is not None:
        whole("search", search, 0)
    chosen = make_rule(rule, **options)
    question = ask(network, f, total, b, chosen.largest_f)
    virtual = matrices.virtual_mixing(question.network, chosen)
    proof = question.proved(chosen)
    workers = reports(question, chosen, proof, rho)
    feasible = all(worker.feasible for worker in workers)
    budget = default_budget(network, chosen) if search is None else search
    if question.told is not None:
        if search:
            raise ConfigError("search is for rules that are given f, how many lie, not what lies weigh; leave it out")
        budget = 0
    games = _games(question, virtual) if budget else []
    searched: Search | None = None
    if budget:
        searched = search_contraction(
            network, chosen, budget=budget, seed=seed, dimension=dimension, games=games, proof=proof
        )
    seen = _spectrum(question, virtual)
    asked = guarantee in ("fair", "agrees", "connected")
    facts = Facts(
        question=question,
        rule=chosen,
        limit=rho,
        mixing=virtual,
        proof=proof,
        search=searched,
        workers=workers,
        connected=connectivity(question, seconds=10.0 if asked else 0.0),
        conditions=conditions(question, chosen, virtual, proof, seen),
        stuck=_stuck(question, chosen) if budget and feasible else None,
        best_mixing=max((best_row(chosen, game, seed) for game in games[:KINDS]), default=0.0) if feasible else 0.0,
    )
    rate = _rate(question, virtual, seen)
    star = None if rate is None else max(0.0, matrices.rho_star(rate, virtual.matrix.shape[0]))
    return Certificate(
        question=question,
        rule=chosen,
        limit=rho,
        mixing=virtual,
        rate=rate,
        rho_star=star,
        chi2=matrices.chi2(virtual.matrix, None if network.samples is None else question.network.target),
        sites=site_reports(question.network, chosen),
        doubly_stochastic=matrices.doubly_stochastic(virtual.matrix),
        strongly_connected=matrices.strongly_connected(virtual.matrix),
        connectivity=facts.connected,
        perron=matrices.perron(virtual.matrix),
        proof=proof,
        workers=workers,
        bounded=decide_bounded(facts),
        fair=decide_fair(facts),
        agrees=decide_agrees(facts),
        rdsa=decide_rdsa(facts),
        rca=decide_rca(facts),
        conditions=facts.conditions,
        spectrum=seen,
        search=searched,
        agreement=_agreement(question, chosen, budget, seed) if budget and feasible else None,
        promise=_promise(facts, rate, L, delta_in, delta_out, step, rounds, gap),
        guarantee=guarantee,
        channel=statement(carried, proof.rho, int(network.degree.max()))
        if (carried := channel_stages(channel))
        else None,
    )


def _games(question: Question, virtual: matrices.Mixing) -> list[Game]:
    if question.anywhere:
        return games_anywhere(question, virtual.form)
    return games_of(question.network, virtual.matrix, question.f)


def _spectrum(question: Question, virtual: matrices.Mixing) -> Spectrum | None:
    """The honest Laplacian's eigenvalues, or bounds for all placements; only W to-own follows from them."""
    if virtual.form != "to-own":
        return None
    lies = weight_of_lies(question.network, question.most_weight, True) if question.anywhere else 0.0
    return spectrum(question.network, lies)


def _rate(question: Question, virtual: matrices.Mixing, seen: Spectrum | None) -> float | None:
    if not question.anywhere or not question.most.any():
        return None if math.isnan(virtual.rate) else virtual.rate
    return None if seen is None else seen.rate


def _stuck(question: Question, rule: Rule) -> str | None:
    """Why the workers may disagree forever, in words, or None."""
    network = question.network
    if not playable(rule) or network.n > SMALL_NETWORK or len(network.honest) < 2:
        return None
    camp = stuck_camps(Exchange(network, rule, question.f))
    if camp is None:
        return None
    size = int((camp == camp[0]).sum())
    return f"two camps of {size} and {len(camp) - size} workers stay where they are forever (witness)"


def _agreement(question: Question, rule: Rule, budget: int, seed: int) -> Agreement | None:
    """The worst factor of H found; liars anywhere are put around the worker that they weigh most at."""
    network = question.network
    if not playable(rule) or network.n > SMALL_NETWORK or len(network.honest) < 2:
        return None
    f = question.f
    if question.anywhere:
        liars = question.worst_liars(int(question.most_weight.argmax()))
        network = network.with_byzantine(liars)
        f = f[network.honest]
    affordable = int(ROUND_WORK / ((network.layout.degree + 1.0) ** 2).sum())
    return search_agreement(
        Exchange(network, rule, f), budget=min(budget, ROUND_BUDGET, max(600, affordable)), seed=seed
    )


def _promise(
    facts: Facts,
    rate: float | None,
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
    if facts.question.network.samples is not None:
        raise ConfigError("the theorems in numbers are about the mean over workers; leave out L, ..., or samples")
    return promise(
        rate=0.0 if rate is None else rate,
        rho=math.nan if rate is None else facts.proof.rho,
        chi2=matrices.chi2(facts.mixing.matrix),
        workers=facts.mixing.matrix.shape[0],
        smoothness=smoothness,
        delta_in=delta_in,
        delta_out=delta_out,
        step=step,
        rounds=rounds,
        gap=gap,
    )

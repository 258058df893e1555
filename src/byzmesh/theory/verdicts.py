"""Decides the levels of a guarantee and the paper's two properties: proved, refuted or unknown, each with its reason.

connected  the honest workers reach each other without a liar in between
bounded    whatever the lies are, they move no honest worker farther than `limit` times the honest spread around it:
           rho <= limit, for the W that the rule declares
fair       bounded, connected, and that W is doubly stochastic: everybody counts the same; in a network with `samples`,
           that W leaves the average weighted by samples where it is: every sample counts the same
agrees     the disagreement of the honest workers dies out, whatever the liars send (one of `consensus.conditions`)

RDSA is the paper's Definition 3 (a constant and a doubly stochastic W), RCA its Definition 2. The pair (rho, W) is not
unique (Remark 1), so RCA is refuted only by what refutes it for every W: a rule that cannot run or has no constant at
all, disconnected honest workers, or inputs on which no W does well enough (`search.every_mixing`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byzmesh.rules.base import Rule
from byzmesh.theory import contraction
from byzmesh.theory import mixing as matrices
from byzmesh.theory.connectivity import Connectivity, leading_groups, weights_connect
from byzmesh.theory.consensus import Condition
from byzmesh.theory.contraction import Proof
from byzmesh.theory.question import Question
from byzmesh.theory.search.climb import Search
from byzmesh.theory.verdict import Verdict, all_of

ROUNDING = 1e-6
"""A searched ratio must exceed a limit by this much before it refutes anything."""


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """One worker: h and the bound on its rho (None: none is proved), and how many liars it can tolerate.

    lying     how many of its neighbours lie, or can lie at once
    bears     the largest f for which rho is proved to stay within the limit; None: unknown for this rule
    feasible  whether the rule can run with this f on this neighbourhood
    """

    worker: int
    neighbours: int
    lying: int
    f: int
    h: float
    rho_bound: float | None
    bears: int | None
    feasible: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the verdicts are based on; mixing is W with the given liars, or with nobody lying."""

    question: Question
    rule: Rule
    limit: float
    mixing: matrices.Mixing
    proof: Proof
    search: Search | None
    workers: tuple[WorkerReport, ...]
    connected: Connectivity
    conditions: tuple[Condition, ...]
    stuck: str | None
    """An input that one exchange leaves unchanged although the workers disagree; None: none is known."""
    best_mixing: float
    """No W has a smaller contraction constant than this (0: nothing is known)."""

    @property
    def impossible(self) -> Verdict | None:
        """Why there is no contraction constant at all, whatever W, if that is known."""
        stopped = next((worker for worker in self.workers if not worker.feasible), None)
        if stopped is not None:
            where = f"worker {self.name(stopped.worker)}"
            return Verdict(
                "refuted", f"the rule cannot run at {where}: f = {stopped.f} with {stopped.neighbours} neighbours"
            )
        if np.isinf(self.proof.bound).any():
            return Verdict("refuted", f"there is no contraction constant: {self.proof.reason}")
        if self.search is not None and math.isinf(self.search.rho) and self.search.witness is not None:
            where = self.name(self.search.witness.game.worker)
            return Verdict("refuted", f"all honest models agree and a lie still moves worker {where} (witness)")
        return None

    def name(self, worker: int) -> str:
        """A worker by the user's name for it."""
        return self.question.network.label(worker)


def reports(question: Question, rule: Rule, proof: Proof, limit: float) -> tuple[WorkerReport, ...]:
    """One report per worker."""
    network, f = question.network, question.f
    degree = network.layout.degree
    equal = rule.contraction is not None and rule.contraction.equal
    sums = contraction.heaviest(network, equal)
    h = sums[np.arange(len(f)), np.minimum(f, sums.shape[1] - 1)]
    bears = _bearable(question, rule, limit)
    return tuple(
        WorkerReport(
            worker=int(network.honest[row]),
            neighbours=int(degree[row]),
            lying=int(question.most[row]),
            f=int(f[row]),
            h=float(h[row]),
            rho_bound=None if math.isnan(proof.bound[row]) else float(proof.bound[row]),
            bears=None if bears is None else bears[row],
            feasible=int(f[row]) <= rule.largest_f(int(degree[row])),
        )
        for row in range(len(f))
    )


def _bearable(question: Question, rule: Rule, limit: float) -> list[int] | None:
    """The largest f of each worker for which the rule can run and the bound by h stays within the limit."""
    declared = rule.contraction
    if declared is None or declared.of_h is None:
        return None
    layout = question.network.layout
    rows = contraction.heaviest(question.network, declared.equal)
    fits = declared.of_h(rows) <= limit * (1.0 + 1e-12)
    return [
        min(
            int(fits[row].argmin() if not fits[row].all() else len(fits[row])) - 1,
            max(0, rule.largest_f(int(degree))),
            int(degree),
        )
        for row, degree in enumerate(layout.degree)
    ]


def decide_bounded(facts: Facts) -> Verdict:
    """No lies move a worker farther than the limit times the honest spread around it."""
    if facts.impossible is not None:
        return facts.impossible
    limit = f"{facts.limit:g}"
    proved = facts.proof.rho
    if proved <= facts.limit * (1.0 + 1e-12):
        return Verdict("proved", f"rho <= {proved:.4g} ({facts.proof.reason}), asked for {limit}")
    searched = facts.search
    if searched is not None and searched.witness is not None and searched.rho > facts.limit * (1.0 + ROUNDING):
        where = facts.name(searched.witness.game.worker)
        return Verdict(
            "refuted", f"lies move worker {where} by {searched.rho:.4g} honest spreads (witness), limit {limit}"
        )
    known = _missing(facts) if math.isnan(proved) else f"only rho <= {proved:.4g} is proved"
    return Verdict("unknown", f"{known}, limit {limit}")


def decide_fair(facts: Facts) -> Verdict:
    """Bounded and connected, and W is doubly stochastic."""
    told = [decide_bounded(facts), facts.connected.verdict, just(facts), _listens(facts)]
    how = "is doubly stochastic" if facts.question.network.samples is None else "weighs by samples"
    return all_of(told, f"W {how} and rho <= {facts.proof.rho:.4g} ({facts.proof.reason})")


def _listens(facts: Facts) -> Verdict:
    """Whether W uses the links at all."""
    if facts.mixing.form == "own":
        return Verdict("refuted", "nobody listens to anybody (W = I)")
    if facts.mixing.form == "to-own" and not weights_connect(facts.question):
        return Verdict("unknown", "some links carry no weight, and the others were not looked at alone")
    return Verdict("proved", "every link carries weight")


def just(facts: Facts) -> Verdict:
    """Whether W weighs the honest workers as the network asks, in every placement in question: alike, or by samples."""
    question, mixing = facts.question, facts.mixing
    network = question.network
    if network.samples is None:
        return doubly_stochastic(facts)
    if not matrices.keeps(mixing.matrix, network.target):
        uneven = matrices.chi2(mixing.matrix, network.target)
        reason = f"W does not weigh workers by their samples (chi^2 = {uneven:.4f})"
        return Verdict("unknown" if mixing.source == "convention" else "refuted", reason)
    if not question.anywhere or mixing.form == "own" or not question.most.any():
        if not matrices.even(matrices.flows(mixing.matrix, network.target)):
            return Verdict("unknown", "W weighs by samples up to rounding, but some links weigh no more than that")
        return Verdict("proved", "W weighs workers by their samples")
    links, size = network.links, network.samples / network.samples.mean()
    flow = size[links.receiver] * network.link_weight
    back = flow[links.back]
    if mixing.form == "to-own" and (np.abs(flow - back) <= matrices.ROUNDING * np.maximum(flow, back)).all():
        return Verdict("proved", "W weighs workers by their samples whoever lies, since W' is in detailed balance")
    return Verdict("unknown", "W weighs workers by their samples if nobody lies; liars were not tried")


def doubly_stochastic(facts: Facts) -> Verdict:
    """Whether W is doubly stochastic, in every placement in question."""
    question, mixing = facts.question, facts.mixing
    network = question.network
    if not matrices.doubly_stochastic(mixing.matrix):
        reason = f"columns of W do not sum to 1 (chi^2 = {matrices.chi2(mixing.matrix):.4f})"
        if mixing.source == "convention":
            return Verdict("unknown", f"no theory gives this rule a W; of the conventional one the {reason}")
        return Verdict("refuted", reason)
    if not question.anywhere or mixing.form == "own" or not question.most.any():
        if not matrices.even(mixing.matrix):
            return Verdict("unknown", "columns of W sum to 1 up to rounding, but some links weigh no more than that")
        return Verdict("proved", "W is doubly stochastic")
    if mixing.form == "to-own":
        # Liars b leave column m at 1 + sum_b (w'_mb - w'_bm).
        links = network.links
        back = network.link_weight[links.back]
        apart = np.abs(network.link_weight - back)
        if (apart <= matrices.ROUNDING * np.maximum(network.link_weight, back)).all():
            return Verdict("proved", "W is doubly stochastic whoever lies, since W' is symmetric")
        apart *= np.isin(links.sender, question.alone)
        if not apart.max() > matrices.ROUNDING:
            return Verdict(
                "unknown", "W' is not symmetric; W is doubly stochastic with any one liar, more were not tried"
            )
        liar = int(links.sender[apart.argmax()])
        return Verdict(
            "refuted", f"with a liar at {facts.name(liar)} columns of W do not sum to 1, since W' is not symmetric"
        )
    if (network.degree == network.n - 1).all():
        return Verdict("proved", "W is doubly stochastic whoever lies, since everybody is linked to everybody")
    for node in question.alone.tolist():
        matrix = matrices.MATRICES[mixing.form](network.with_byzantine([node]))
        if not matrices.doubly_stochastic(matrix):
            return Verdict(
                "refuted" if mixing.source == "theory" else "unknown",
                f"with a liar at {facts.name(node)} columns of W do not sum to 1 (chi^2 = {matrices.chi2(matrix):.4f})",
            )
    return Verdict("unknown", "W is doubly stochastic with any one liar; more were not tried")


def decide_agrees(facts: Facts) -> Verdict:
    """The honest workers reach agreement, whatever the liars send."""
    if facts.impossible is not None:
        return facts.impossible
    for condition in facts.conditions:
        if condition.holds:
            return Verdict("proved", str(condition))
    if len(facts.question.network.honest) == 1 and not facts.question.anywhere:
        return Verdict("proved", "there is one honest worker")
    if _apart(facts) and facts.rule.idempotent:
        return facts.connected.verdict
    if facts.stuck is not None:
        return Verdict("refuted", facts.stuck)
    known = "; ".join(str(condition) for condition in facts.conditions) or _missing(facts)
    return Verdict("unknown", known)


def _apart(facts: Facts) -> bool:
    """Whether two groups of honest workers hear nothing of each other, nor of any other honest worker.

    Over links that go one way, workers who do not reach each other may all follow the same group.
    """
    if facts.connected.verdict.status != "refuted":
        return False
    return facts.question.anywhere or leading_groups(facts.question.network.honest_links) > 1


def decide_rdsa(facts: Facts) -> Verdict:
    """Definition 3 of the paper: a contraction constant, however large, and a doubly stochastic W."""
    if facts.impossible is not None:
        return facts.impossible
    known = (
        Verdict("unknown", f"no bound on rho is proved: {_missing(facts)}")
        if np.isnan(facts.proof.bound).any()
        else Verdict("proved", "")
    )
    told = [doubly_stochastic(facts), known]
    return all_of(told, f"W is doubly stochastic and rho <= {facts.proof.rho:.4g} ({facts.proof.reason})")


def decide_rca(facts: Facts) -> Verdict:
    """Definition 2 of the paper: rho < rho* for some W."""
    if facts.impossible is not None:
        return facts.impossible
    told = next((condition for condition in facts.conditions if condition.name == "RCA"), None)
    if told is not None and told.holds:
        return Verdict("proved", f"rho <= {told.value:.4g} < rho* = {told.limit:.4g} ({facts.proof.reason})")
    if _apart(facts):
        return facts.connected.verdict
    if facts.rule.virtual_mixing == "own":
        return Verdict("refuted", "nobody listens to anybody (W = I), so W does not mix")
    fewest = facts.mixing.matrix.shape[0] - (int(facts.question.most.max()) if facts.question.anywhere else 0)
    most = matrices.rho_star(1.0, max(1, fewest))
    if facts.best_mixing > most * (1.0 + ROUNDING):
        return Verdict("refuted", f"whatever W, rho >= {facts.best_mixing:.4g} and rho* <= {most:.4g} (witnesses)")
    if told is None:
        return Verdict("unknown", _missing(facts))
    return Verdict("unknown", f"only rho <= {told.value:.4g} is proved, rho* = {told.limit:.4g} for this W")


def _missing(facts: Facts) -> str:
    """Why no bound on rho is proved."""
    if facts.question.misled.any():
        worker = facts.workers[int(facts.question.misled.argmax())]
        return f"lies weigh more at worker {facts.name(worker.worker)} than the rule is told"
    if facts.rule.contraction is None or facts.rule.contraction.of_h is None:
        return facts.proof.reason
    for worker in facts.workers:
        if worker.rho_bound is None:
            name = facts.name(worker.worker)
            if worker.f < worker.lying:
                return f"worker {name} expects {worker.f} liars and has {worker.lying}"
            return f"lies can weigh h = {worker.h:.3f} at worker {name}, too much for a bound ({facts.proof.reason})"
    return facts.proof.reason

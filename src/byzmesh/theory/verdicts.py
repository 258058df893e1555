"""Verdicts: proved, refuted or unknown, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.rules.contraction import THIRD
from byzmesh.theory import mixing as matrices
from byzmesh.theory.contraction import Proof, cut_weight, largest_f, rca_limit
from byzmesh.theory.search.climb import Search
from byzmesh.types import Integers


@dataclass(frozen=True)
class Verdict:
    """ "proved", "refuted" or "unknown", and why; true only if proved."""

    status: str
    reason: str

    def __bool__(self) -> bool:
        return self.status == "proved"


@dataclass(frozen=True, kw_only=True)
class WorkerReport:
    """One honest worker: h and the bound on its rho (None: none is proved), and how many liars it can bear.

    bears, bears_rca  the largest f with h < 1/3, and with h < rho*/(k + 3 rho*), k the factor of the rule's bound
    feasible          whether the rule can run with this f on this neighbourhood
    """

    worker: int
    neighbours: int
    lying: int
    f: int
    h: float
    rho_bound: float | None
    bears: int
    bears_rca: int
    feasible: bool


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the verdicts are drawn from."""

    mixing: matrices.Mixing
    rho_star: float
    proof: Proof
    search: Search | None
    workers: tuple[WorkerReport, ...]

    @property
    def infeasible(self) -> WorkerReport | None:
        """The first worker at which the rule cannot run."""
        return next((worker for worker in self.workers if not worker.feasible), None)

    @property
    def unproved(self) -> WorkerReport | None:
        """The first worker without a proved bound."""
        return next((worker for worker in self.workers if worker.rho_bound is None), None)

    @property
    def unbounded(self) -> str | None:
        """Why there is no contraction constant at all, if that is known."""
        if np.isinf(self.proof.bound).any():
            return self.proof.reason
        if self.search is not None and math.isinf(self.search.rho) and self.search.witness is not None:
            return f"all honest models agree and a lie still moves worker {self.search.witness.game.worker} (witness)"
        return None


def reports(
    network: Network, rule: Rule, f: Integers, proof: Proof, star: float, equal: bool
) -> tuple[WorkerReport, ...]:
    """One report per honest worker; `equal` counts every neighbour the same instead of by W'."""
    degree = network.layout.degree
    h = cut_weight(network, f, equal)
    bears, bears_rca = largest_f(network, THIRD, equal), largest_f(network, rca_limit(star, proof.factor), equal)
    return tuple(
        WorkerReport(
            worker=int(network.honest[row]),
            neighbours=int(degree[row]),
            lying=int(network.lying_neighbours[row]),
            f=int(f[row]),
            h=float(h[row]),
            rho_bound=None if math.isnan(proof.bound[row]) else float(proof.bound[row]),
            bears=int(bears[row]),
            bears_rca=int(bears_rca[row]),
            feasible=int(f[row]) <= rule.largest_f(int(degree[row])),
        )
        for row in range(len(h))
    )


def _cannot_run(worker: WorkerReport) -> Verdict:
    return Verdict(
        "refuted", f"the rule cannot run at worker {worker.worker}: f = {worker.f} with {worker.neighbours} neighbours"
    )


def decide_rdsa(facts: Facts) -> Verdict:
    """Robust doubly stochastic aggregation."""
    if facts.infeasible is not None:
        return _cannot_run(facts.infeasible)
    if facts.unbounded is not None:
        return Verdict("refuted", f"there is no contraction constant: {facts.unbounded}")
    if not matrices.doubly_stochastic(facts.mixing.matrix):
        reason = f"columns of W do not sum to 1 (chi^2 = {matrices.chi2(facts.mixing.matrix):.4f})"
        if facts.mixing.source == "theory":
            return Verdict("refuted", reason)
        return Verdict("unknown", f"no theory gives this rule a W; of the conventional one the {reason}")
    if facts.unproved is not None:
        return Verdict("unknown", f"W is doubly stochastic, but no bound on rho is proved: {_missing(facts)}")
    return Verdict("proved", f"W is doubly stochastic and rho <= {facts.proof.rho:.4g} ({facts.proof.reason})")


def decide_rca(facts: Facts) -> Verdict:
    """Robust contractive aggregation."""
    if facts.infeasible is not None:
        return _cannot_run(facts.infeasible)
    if facts.unbounded is not None:
        return Verdict("refuted", f"there is no contraction constant: {facts.unbounded}")
    if not matrices.strongly_connected(facts.mixing.matrix) or facts.rho_star <= 0.0:
        return Verdict("refuted", f"the honest workers do not mix (rho* = {facts.rho_star:.4g})")
    if facts.unproved is None and facts.proof.rho < facts.rho_star:
        return Verdict("proved", f"rho <= {facts.proof.rho:.4g} < rho* = {facts.rho_star:.4g} ({facts.proof.reason})")
    if facts.search is not None and facts.search.rho >= facts.rho_star and facts.search.witness is not None:
        where = facts.search.witness.game.worker
        numbers = f"rho >= {facts.search.rho:.4g}, rho* = {facts.rho_star:.4g}"
        return Verdict("refuted", f"witness at worker {where}: {numbers}")
    known = _missing(facts) if facts.unproved is not None else f"only rho <= {facts.proof.rho:.4g} is proved"
    return Verdict("unknown", f"{known}, rho* = {facts.rho_star:.4g}")


def _missing(facts: Facts) -> str:
    worker = facts.unproved
    if worker is None or facts.proof.factor is None:
        return facts.proof.reason
    if worker.f < worker.lying:
        return f"worker {worker.worker} expects {worker.f} liars and has {worker.lying}"
    return f"h = {worker.h:.3f} at worker {worker.worker} is not below 1/3"

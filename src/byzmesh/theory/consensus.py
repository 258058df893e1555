"""Do the honest workers reach agreement, whatever the liars send? Each of these conditions proves it.

Write A_n = xbar_n + E_n with ||E_n|| <= rho_n max_m ||x_m - xbar_n|| (Definition 1), X the honest models.

RCA        rho < lambda / (8 sqrt N): the paper's Theorem 2.
spectral   sqrt(1 - lambda) + e < 1:  H falls by the factor (sqrt(1 - lambda) + e)^2 in every exchange, where
           e^2 = lambda_max(sum_n rho_n^2 Q_n), Q_n = sum_{m in N_n and n} (u_m - w_n)(u_m - w_n)^T, u_m unit vectors,
           bounds ||E||_F^2 by e^2 ||X - mean||_F^2 (the maximum over m is at most the sum). e <= 2 rho sqrt(N), so RCA
           implies it; for all placements e <= 2 rho sqrt(min(n, d_max + 1)).
overlap    u_s < 1 for some s:  the largest distance between two honest models falls by the factor u_s in s exchanges.
           tau(M) = 1 - min_{i,j} sum_m min(M_im, M_jm) bounds what a stochastic M leaves of it (Dobrushin), and
           ||x_m - xbar_n|| <= (1 - w_nm) times it, so with r = max_n rho_n (1 - min_m w_nm)
               u_0 = 1,   u_s = tau(W^s) + 2 r sum_{j < s} tau(W^(s-1-j)) u_j
gossip     see `gossip`, for rules that declare an error of that form.

Liars anywhere: lambda from the Laplacian's eigenvalues (`gossip`), and the overlap of two rows minus what common lying
neighbours can take away. Proofs: docs/theory.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.heaviest import heaviest
from byzmesh.networks.spectrum import DIRECT, SLACK, as_dense, largest_eigenvalue
from byzmesh.rules.base import Rule
from byzmesh.theory import mixing as matrices
from byzmesh.theory.contraction import Proof
from byzmesh.theory.gossip import Spectrum, gossip_factor
from byzmesh.theory.question import Question
from byzmesh.types import Floats

MARGIN = 1e-9
"""A factor must be below 1 by this much: eigenvalues and sums are rounded."""
LARGE = 400
"""With more workers, the overlap of all pairs of rows is not computed."""
ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A sufficient condition for consensus: `value` must be below `limit`.

    factor  largest factor by which `rounds` exchanges multiply H (for "overlap": the square of the largest distance)
    """

    name: str
    value: float
    limit: float
    factor: float = math.inf
    rounds: int = 1

    @property
    def holds(self) -> bool:
        """Whether it proves consensus."""
        return self.value < self.limit - MARGIN * max(1e-3, self.limit)

    def __str__(self) -> str:
        sign = "<" if self.holds else "is not below"
        often = "" if self.rounds == 1 else f" in {self.rounds} rounds"
        return f"{self.name}: {self.value:.4g} {sign} {self.limit:.4g}{often}"


def conditions(
    question: Question, rule: Rule, mixing: matrices.Mixing, proof: Proof, seen: Spectrum | None
) -> tuple[Condition, ...]:
    """All conditions that can be evaluated; `seen` are the eigenvalues for W to-own, if the weights are symmetric."""
    told: list[Condition] = []
    bound = proof.bound
    if np.isfinite(bound).all():
        told += _anywhere(question, mixing, bound, seen) if question.anywhere else _given(question, mixing, bound)
    error = question.gossip_error(rule)
    if error is not None and seen is not None and not np.isnan(error).any():
        factor = gossip_factor(seen, float(error.max()))
        told.append(Condition(name="gossip", value=factor, limit=1.0, factor=factor))
    return tuple(told)


def _given(question: Question, mixing: matrices.Mixing, bound: Floats) -> list[Condition]:
    network, matrix = question.network, mixing.matrix
    workers = matrix.shape[0]
    rate, rho = mixing.rate, float(bound.max())
    if math.isnan(rate):
        return []
    error = min(deviation(question, matrix, bound), 2.0 * rho * math.sqrt(workers))
    root = math.sqrt(max(0.0, 1.0 - rate)) + error
    told = [
        Condition(name="RCA", value=rho, limit=max(0.0, matrices.rho_star(rate, workers))),
        Condition(name="spectral", value=root, limit=1.0, factor=root**2),
    ]
    if 1 < workers <= LARGE:
        near, dense = network.honest_links.dense() | np.eye(workers, dtype=bool), as_dense(matrix)
        least = np.where(near, dense, np.inf).min(axis=1)
        told.append(_overlap(dense, float((bound * (1.0 - least)).max())))
    return told


def deviation(question: Question, matrix: Any, bound: Floats) -> float:
    """e: ||E||_F <= e ||X - mean||_F for bounds (N,) on rho; infinite if Lanczos' method does not converge."""
    links = question.network.honest_links
    near, square = links.matrix(np.ones(len(links.sender)), np.ones(links.n)), bound**2
    if links.n <= DIRECT:
        dense = as_dense(matrix)
        cross = near.T @ (square[:, None] * dense)
        crowd = dense.T @ ((square * (1.0 + links.degree))[:, None] * dense)
        largest = float(np.linalg.eigvalsh(np.diag(near.T @ square) - cross - cross.T + crowd)[-1])
    else:

        def form(x: Floats) -> Floats:
            mean = matrix @ x
            cross = near.T @ (square * mean) + matrix.T @ (square * (near @ x))
            result: Floats = (near.T @ square) * x - cross + matrix.T @ (square * (1.0 + links.degree) * mean)
            return result

        largest = largest_eigenvalue(form, links.n) * (1.0 + SLACK)
    return math.inf if math.isnan(largest) else math.sqrt(max(0.0, largest))


def ergodicity(matrix: Floats) -> float:
    """tau = 1 - min_{i, j} sum_m min(M_im, M_jm): the factor by which a stochastic matrix shrinks the largest distance.

    >>> ergodicity(np.array([[0.5, 0.5], [0.25, 0.75]]))
    0.25
    """
    least = 1.0
    for row in range(len(matrix)):
        least = min(least, float(np.minimum(matrix[row], matrix).sum(axis=1).min()))
    return max(0.0, 1.0 - least)


def _overlap(matrix: Floats, moved: float) -> Condition:
    power, left, grown = np.eye(len(matrix)), [1.0], [1.0]
    best = (math.inf, 1)
    for count in range(1, (ROUNDS if len(matrix) <= 64 else 2) + 1):
        power = power @ matrix
        left.append(ergodicity(power))
        grown.append(left[count] + 2.0 * moved * sum(left[count - 1 - j] * grown[j] for j in range(count)))
        best = min(best, (grown[count], count))
        if best[0] < 1.0 - MARGIN or grown[count] > 1e6:
            break
    return Condition(name="overlap", value=best[0], limit=1.0, factor=best[0] ** 2, rounds=best[1])


def _anywhere(question: Question, mixing: matrices.Mixing, bound: Floats, seen: Spectrum | None) -> list[Condition]:
    network, rho = question.network, float(bound.max())
    told: list[Condition] = []
    if seen is not None and mixing.form == "to-own":
        rate = seen.rate
        most = min(network.n, int(network.degree.max()) + 1)
        root = math.sqrt(max(0.0, 1.0 - rate)) + 2.0 * rho * math.sqrt(most)
        told = [
            Condition(name="RCA", value=rho, limit=max(0.0, matrices.rho_star(rate, network.n))),
            Condition(name="spectral", value=root, limit=1.0, factor=root**2),
        ]
    if network.n <= LARGE and mixing.form in ("to-own", "equal"):
        value = 1.0 - least_overlap(question, mixing.form) + 2.0 * rho
        told.append(Condition(name="overlap", value=value, limit=1.0, factor=value**2))
    return told


def least_overlap(question: Question, form: str) -> float:
    """A lower bound on min_{i, j} sum_m min(w_im, w_jm) over all placements.

    to-own   common lying neighbours take away at most the min(f_i, f_j) largest min(w'_im, w'_jm)
    equal    with C common (themselves included), of which k can lie: (C - k) / (1 + max(d_i, d_j) - k)
    """
    network = question.network
    n, mixing = network.n, network.mixing
    near = network.adjacency | np.eye(n, dtype=bool)
    least = 1.0
    for i in range(n):
        others = np.flatnonzero(np.arange(n) != i)
        if len(others) == 0:
            continue
        between = network.adjacency[i] & network.adjacency[others]  # common neighbours, which may lie
        lies = np.minimum(question.most[i], question.most[others])
        if form == "to-own":
            common = np.minimum(mixing[i], mixing[others])
            taken = heaviest(np.where(between, common, 0.0))[np.arange(len(others)), lies]
            value = common.sum(axis=1) - taken
        else:
            count = (near[i] & near[others]).sum(axis=1)
            lies = np.minimum(lies, between.sum(axis=1))
            largest = 1 + np.maximum(network.degree[i], network.degree[others])
            value = (count - lies) / (largest - lies)
        least = min(least, float(value.min()))
    return max(0.0, least)

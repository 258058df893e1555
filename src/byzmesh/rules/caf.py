"""CAF, the covariance-bound agnostic filter: weigh down what lies along the direction of largest variance.

With weights c_i = 1 on the S vectors, its own included, repeat while C = sum_i c_i > S - 2f:

    mu = (1 / C) sum_i c_i y_i,     Sigma = (1 / C) sum_i c_i (y_i - mu)(y_i - mu)^T,     lambda its largest eigenvalue
    tau_i = squared length of the projection of y_i - mu onto the eigenvectors of lambda
    c_i <- c_i (1 - tau_i / max tau),     the maximum over those with c_i > 0

and return the mu with the smallest lambda (Allouah, Guerraoui and Stephan 2025). Every pass removes a vector, so there
are at most S of them. If lambda is a multiple eigenvalue, all its eigenvectors count: which of them a solver names
changes nothing. In Gram space, diag(sqrt c) G diag(sqrt c) / C, with G the inner products of the y_i - mu, has the
eigenvalues of Sigma: O(S^3) per pass, whatever the dimension.

What is proved, for B <= f liars, h = S - B honest vectors with plain mean xbar and largest distance R from it, c_H and
c_B the weights left of honest vectors and lies. Let v be an eigenvector of lambda.

1. sum_H c_i tau_i <= c_H R^2 + lambda c_B: about the honest weighted mean m it is at most c_H R^2, and the variance
   between honest vectors and lies along v, c_H (m - mu)^2 (1 + c_H / c_B), is at most lambda C.
2. While every pass takes less from honest vectors than from lies, c_H - c_B >= h - B and C > S - 2f, so the loop goes
   on. Hence some pass takes at least as much from honest vectors: there lambda C <= 2 sum_H c_i tau_i, and by 1.
   lambda <= 2 R^2 c_H / (c_H - c_B) <= 2 R^2 h / (h - B). The mu returned has no larger lambda.
3. For that mu, C > S - 2f and so c_H > S - 2f - B: ||mu - m||^2 <= lambda c_B / c_H as in 1., and m, an average of
   honest vectors whose weights lost h - c_H < 2f, has ||m - xbar||^2 <= R^2 (h - c_H) / c_H. Together

       rho <= (sqrt(2 h B / (h - B)) + sqrt(2 f)) / sqrt(S - 2f - B)    for S > 2f + B.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.feasible import BELOW_HALF_OF_ALL
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats, Integers


def filtered(inner: Floats, present: Booleans, f: Integers, tie: float) -> Floats:
    """(R, K) the weights, summing to 1, of the mean with the smallest lambda.

    inner  (R, K, K) inner products of the slots about any point
    tie    relative difference below which two eigenvalues, or two projections, count as equal
    """
    chosen = normalised(present)
    weight = present.astype(np.float64)
    stop = present.sum(axis=1) - 2 * f + tie * present.shape[1]
    least = np.full(len(present), np.inf)
    # squares of squares must stay finite
    scale = np.einsum("rkk->rk", inner).max(axis=1)
    inner = inner / np.where(scale > 0.0, scale, 1.0)[:, None, None]
    rows = np.flatnonzero((f > 0) & (2 * f < present.sum(axis=1)) & (scale > 0.0))
    while rows.size:
        left = weight[rows]
        total = left.sum(axis=1, keepdims=True)
        root = np.sqrt(left)
        centred = about(inner[rows], left / total)
        value, vector = np.linalg.eigh(root[:, :, None] * centred * root[:, None, :] / total[:, :, None])
        largest = value[:, -1:]
        better = largest[:, 0] < least[rows] * (1.0 - tie)
        least[rows[better]] = largest[better, 0]
        chosen[rows[better]] = (left / total)[better]
        along = (centred @ (root[:, :, None] * vector)) ** 2
        tau = np.where(left > 0.0, (along * (value >= largest * (1.0 - tie))[:, None, :]).sum(axis=2), 0.0)
        peak = tau.max(axis=1, keepdims=True)
        factor = 1.0 - tau / np.where(peak > 0.0, peak, 1.0)
        weight[rows] = left * np.where(factor > tie, factor, 0.0)
        rows = rows[(peak[:, 0] > 0.0) & (weight[rows].sum(axis=1) > stop[rows])]
    return chosen


def about(inner: Floats, share: Floats) -> Floats:
    """(R, K, K) the inner products about the points sum_k share[k] y_k.

    >>> about(np.array([[[0.0, 0.0], [0.0, 4.0]]]), np.array([[0.5, 0.5]]))
    array([[[ 1., -1.],
            [-1.,  1.]]])
    """
    lean = np.einsum("rij,rj->ri", inner, share)
    spread = np.einsum("ri,ri->r", share, lean)
    moved: Floats = inner - lean[:, :, None] - lean[:, None, :] + spread[:, None, None]
    return moved


def moved_at_most(near: Neighbourhoods) -> Floats:
    """The bound of the module's docstring; silent liars only lower it."""
    vectors = near.neighbours + 1.0
    honest = vectors - near.lying
    left = vectors - 2.0 * near.f - near.lying
    proved = (near.lying <= near.f) & (left > 0.0)
    lies = np.sqrt(2.0 * honest * near.lying / np.where(proved, honest - near.lying, 1.0))
    return np.where(proved, (lies + np.sqrt(2.0 * near.f)) / np.sqrt(np.where(proved, left, 1.0)), np.nan)


@rules.register("CAF", aliases=("covariance-bound-agnostic-filter",))
def caf() -> Rule:
    """CAF: the weighted mean of the S vectors whose largest variance is smallest, filtered along that direction.

    >>> import byzmesh as bm
    >>> bm.aggregate("caf", [0.0], [[1.0], [2.0], [90.0]], f=1).round(3)
    array([1.007])
    """

    def coefficients(block: Block) -> Floats:
        return filtered(block.inner, block.present, block.f, block.tie)

    return gram_rule(
        "CAF",
        coefficients,
        feasible=BELOW_HALF_OF_ALL,
        symmetric=True,
        virtual_mixing="equal",
        contraction=Contraction(moved_at_most, "the smallest largest variance, equal weights"),
    )

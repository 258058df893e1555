"""Spectra: how fast a mixing matrix mixes and how well the honest workers are connected.

    second eigenvalue        second largest modulus among the eigenvalues of W (n, n); the gap is 1 minus it
    Laplacian of weights     L = diag(sum_m a_nm) - A, A = (W + W^T) / 2 off the diagonal
    algebraic connectivity   mu_2, the second smallest eigenvalue of L; 0 iff the graph is disconnected
    Fiedler vector           a unit eigenvector of mu_2: the direction in which the graph is easiest to split

For the honest workers the weights are the honest block of W' of the *whole* graph: this gives mu_2 = 0.727
(two-castle), 0.478 (ER-12), 0.120 (octopus) on the published graphs.

Every function takes a dense array or a SciPy matrix. Up to `DIRECT` nodes all eigenvalues are computed, O(n^3). Beyond,
Lanczos' method computes the wanted ones: a product with the sparse matrix per step, to a residual of 1e-7 of the
largest. Where it does not converge (a ring or a chain: mu_2 close to 0), it is applied to the inverse, whose sparse
factors are small on just such graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.types import Floats

DIRECT = 1024
"""Up to this many nodes all eigenvalues are computed."""
RESIDUAL = 1e-7
"""Lanczos' method stops at this residual, relative to the largest eigenvalue."""
SLACK = 1e-6
"""What a certificate allows for the residual, relative to the largest eigenvalue."""
STEPS = 100
"""Restarts of Lanczos' method before it is applied to the inverse instead."""


def second_eigenvalue(mixing: Any) -> float:
    """Second largest modulus among the eigenvalues of a stochastic matrix (n, n); 0 for a single node.

    >>> round(second_eigenvalue(np.array([[0.75, 0.25], [0.25, 0.75]])), 6)
    0.5
    """
    n = mixing.shape[0]
    if n < 2:
        return 0.0
    symmetric = abs(mixing - mixing.T).max() <= 1e-12
    if n > DIRECT:
        if symmetric:
            low, high = extreme_eigenvalues(laplacian(mixing))
            return max(1.0 - low, high - 1.0)
        from scipy.sparse.linalg import eigs

        return float(np.sort(np.abs(eigs(mixing, k=2, which="LM", v0=_start(n), return_eigenvectors=False)))[0])
    dense = as_dense(mixing)
    eigenvalues = np.linalg.eigvalsh(dense) if symmetric else np.linalg.eigvals(dense)
    return float(np.sort(np.abs(eigenvalues))[-2])


def spectral_gap(mixing: Any) -> float:
    """1 - second eigenvalue: 0 for a disconnected graph, 1 if one round reaches consensus.

    >>> round(spectral_gap(np.full((3, 3), 1 / 3)), 6)
    1.0
    """
    return 1.0 - second_eigenvalue(mixing)


def laplacian(weights: Any) -> Any:
    """(N, N) Laplacian of link weights, dense up to `DIRECT` nodes.

    The diagonal is ignored, unequal w_nm and w_mn are averaged.

    >>> laplacian(np.array([[0.5, 0.5], [0.5, 0.5]]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    small = weights.shape[0] <= DIRECT
    between = (as_dense(weights) + as_dense(weights).T) / 2.0 if small else (weights + weights.T) / 2.0
    if isinstance(between, np.ndarray):
        np.fill_diagonal(between, 0.0)
        return np.diag(between.sum(axis=1)) - between
    from scipy.sparse import diags_array

    between = between - diags_array(between.diagonal())
    return (diags_array(between.sum(axis=1)) - between).tocsr()


def extreme_eigenvalues(laplacian: Any) -> tuple[float, float]:
    """(mu_2, mu_n): the second smallest and the largest eigenvalue of a Laplacian (n, n), n >= 2.

    >>> extreme_eigenvalues(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    (2.0, 2.0)
    """
    if laplacian.max() == 0.0:  # no links
        return 0.0, 0.0
    if laplacian.shape[0] <= DIRECT:
        eigenvalues = np.linalg.eigvalsh(as_dense(laplacian))
        return max(0.0, float(eigenvalues[1])), float(eigenvalues[-1])
    from scipy.sparse.linalg import eigsh

    top = eigsh(laplacian, k=1, which="LA", v0=_start(laplacian.shape[0]), tol=RESIDUAL, return_eigenvectors=False)
    return _second(laplacian)[0], float(top[0])


def largest_eigenvalue(product: Callable[[Floats], Floats], n: int) -> float:
    """The largest eigenvalue of a symmetric operator (n,) -> (n,), by Lanczos' method; NaN if it does not converge."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator = LinearOperator((n, n), lambda vector: product(vector.ravel()), dtype=np.float64)
    try:
        found = eigsh(operator, k=1, which="LA", v0=_start(n), tol=RESIDUAL, maxiter=STEPS, return_eigenvectors=False)
    except ArpackNoConvergence:
        return float("nan")
    return float(found[0])


def algebraic_connectivity(weights: Any) -> float:
    """mu_2 of the Laplacian of (N, N) link weights.

    >>> round(algebraic_connectivity(np.full((3, 3), 1 / 3)), 6)
    1.0
    """
    _needs_two(weights)
    return extreme_eigenvalues(laplacian(weights))[0]


def fiedler_vector(weights: Any) -> Floats:
    """(N,) unit eigenvector of mu_2 of the Laplacian of (N, N) link weights.

    If mu_2 is multiple (symmetric graphs), any vector of its eigenspace would do, and which one LAPACK returns is
    arbitrary. This is the projection of one node's unit vector onto the eigenspace, for the first node where that is
    longest; its entry at that node is the largest and positive, which also fixes the sign. Beyond `DIRECT` nodes it is
    the vector that Lanczos' method finds, with the same sign.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], float)
    >>> fiedler_vector(path).round(3) + 0.0
    array([ 0.707, 0. , -0.707])
    """
    _needs_two(weights)
    if weights.shape[0] > DIRECT:
        found = _second(laplacian(weights))[1]
        return found if found[np.abs(found).argmax()] > 0.0 else -found
    eigenvalues, vectors = np.linalg.eigh(laplacian(weights))
    # The constant vector is an eigenvector of 0 and never a direction of disagreement, even if mu_2 = 0.
    rest = vectors[:, np.abs(eigenvalues - eigenvalues[1]) <= 1e-9 * max(1.0, eigenvalues[-1])]
    projector = rest @ rest.T
    if eigenvalues[1] <= 1e-9 * max(1.0, eigenvalues[-1]):
        projector = projector - 1.0 / len(projector)
    share = np.diag(projector)
    first = int(np.flatnonzero(share >= share.max() - 1e-9)[0])
    vector: Floats = projector[:, first] / np.linalg.norm(projector[:, first])
    return vector


def as_dense(matrix: Any) -> Floats:
    """A dense or SciPy matrix as a dense array."""
    dense: Floats = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense


def _second(laplacian: Any) -> tuple[float, Floats]:
    """mu_2 of a large Laplacian and a unit eigenvector, orthogonal to the constant vector."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = laplacian.shape[0]
    rows = csr_array(laplacian)
    shift = 2.0 * float(rows.diagonal().max())  # at least mu_n (Gershgorin): mu_2 is farthest from it

    def product(vector: Floats) -> Floats:
        flat = vector.ravel()
        away = flat - flat.mean()
        result: Floats = shift * away - rows @ away
        return result

    try:
        away_from_shift = LinearOperator((n, n), product, dtype=np.float64)
        value, vectors = eigsh(away_from_shift, k=1, which="LA", v0=_start(n), tol=RESIDUAL, maxiter=STEPS)
        mu = shift - float(value[0])
    except ArpackNoConvergence:
        below = -1e-6 * shift  # the Laplacian itself is singular
        value, vectors = eigsh(
            (rows - below * eye_array(n)).tocsc(), k=2, sigma=0.0, which="LM", v0=_start(n), tol=RESIDUAL
        )
        order = np.argsort(value)
        mu, vectors = float(value[order[1]]) + below, vectors[:, order[1:]]
    vector = vectors[:, 0] - vectors[:, 0].mean()
    return max(0.0, mu), vector / np.linalg.norm(vector)


def _start(n: int) -> Floats:
    """Where Lanczos' method starts: the same vector every time, with a part in every direction."""
    from byzmesh import rng

    return rng.generator(0, rng.TOPOLOGY, n).normal(size=n)


def _needs_two(weights: Any) -> None:
    if weights.shape[0] < 2:
        raise ConfigError(f"the graph's connectivity needs at least 2 honest workers, got {weights.shape[0]}")

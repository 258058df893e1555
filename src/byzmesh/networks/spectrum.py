"""Spectra: how fast a mixing matrix mixes and how well the honest workers are connected.

    second eigenvalue        second largest modulus among the eigenvalues of W (n, n); the gap is 1 minus it
    Laplacian of weights     L = diag(sum_m a_nm) - A, A = (W + W^T) / 2 off the diagonal
    algebraic connectivity   mu_2, the second smallest eigenvalue of L; 0 iff the graph is disconnected
    Fiedler vector           a unit eigenvector of mu_2: the direction in which the graph is easiest to split

For the honest workers the weights are `Network.honest_mixing`, the honest block of W' of the *whole* graph: this gives
mu_2 = 0.727 (two-castle), 0.478 (ER-12), 0.120 (octopus) on the published graphs. Dense, O(n^3): fine to n = 2,000.
"""

from __future__ import annotations

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.types import Floats


def second_eigenvalue(mixing: Floats) -> float:
    """Second largest modulus among the eigenvalues of a stochastic matrix (n, n); 0 for a single node.

    >>> round(second_eigenvalue(np.array([[0.75, 0.25], [0.25, 0.75]])), 6)
    0.5
    """
    if len(mixing) < 2:
        return 0.0
    symmetric = np.allclose(mixing, mixing.T, rtol=0.0, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(mixing) if symmetric else np.linalg.eigvals(mixing)
    return float(np.sort(np.abs(eigenvalues))[-2])


def spectral_gap(mixing: Floats) -> float:
    """1 - second eigenvalue: 0 for a disconnected graph, 1 if one round reaches consensus.

    >>> round(spectral_gap(np.full((3, 3), 1 / 3)), 6)
    1.0
    """
    return 1.0 - second_eigenvalue(mixing)


def laplacian(weights: Floats) -> Floats:
    """(N, N) Laplacian of edge weights; the diagonal is ignored, unequal w_nm and w_mn are averaged.

    >>> laplacian(np.array([[0.5, 0.5], [0.5, 0.5]]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    between: Floats = (weights + weights.T) / 2.0
    np.fill_diagonal(between, 0.0)
    result: Floats = np.diag(between.sum(axis=1)) - between
    return result


def algebraic_connectivity(weights: Floats) -> float:
    """mu_2 of the Laplacian of (N, N) edge weights.

    >>> round(algebraic_connectivity(np.full((3, 3), 1 / 3)), 6)
    1.0
    """
    _needs_two(weights)
    return max(0.0, float(np.linalg.eigvalsh(laplacian(weights))[1]))


def fiedler_vector(weights: Floats) -> Floats:
    """(N,) unit eigenvector of mu_2 of the Laplacian of (N, N) edge weights.

    If mu_2 is multiple (symmetric graphs), any vector of its eigenspace would do, and which one LAPACK returns is
    arbitrary. This is the projection of one node's unit vector onto the eigenspace, for the first node where that is
    longest; its entry at that node is the largest and positive, which also fixes the sign.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], float)
    >>> fiedler_vector(path).round(3) + 0.0
    array([ 0.707, 0. , -0.707])
    """
    _needs_two(weights)
    eigenvalues, vectors = np.linalg.eigh(laplacian(weights))
    # The constant vector is an eigenvector of 0 and never a direction of disagreement, even if mu_2 = 0.
    rest = vectors[:, np.abs(eigenvalues - eigenvalues[1]) <= 1e-9 * max(1.0, eigenvalues[-1])]
    projector = rest @ rest.T
    if eigenvalues[1] <= 1e-9 * max(1.0, eigenvalues[-1]):
        projector = projector - 1.0 / len(weights)
    share = np.diag(projector)
    first = int(np.flatnonzero(share >= share.max() - 1e-9)[0])
    vector: Floats = projector[:, first] / np.linalg.norm(projector[:, first])
    return vector


def _needs_two(weights: Floats) -> None:
    if len(weights) < 2:
        raise ConfigError(f"the graph's connectivity needs at least 2 honest workers, got {len(weights)}")

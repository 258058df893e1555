"""Mixing weights: how much a worker counts each message when nobody is dropped.

A scheme turns the graph of all n workers, liars included (a worker cannot tell them apart), into W' (n, n): w'_nm >= 0,
zero where there is no edge, rows sum to 1. d_n is the degree of n, L the graph's Laplacian with eigenvalues
0 = mu_1 <= mu_2 <= ... <= mu_n.

    metropolis-hastings   w_nm = 1 / (1 + max(d_n, d_m)), own the rest                 doubly stochastic
    equal                 w_nm = 1 / (1 + d_n)                                         row stochastic only
    max-degree            w_nm = 1 / (1 + max_l d_l), own the rest                     doubly stochastic
    lazy                  (I + Metropolis-Hastings) / 2                                doubly stochastic
    best-constant         I - alpha L, alpha = min(2 / (mu_2 + mu_n), 1 / max_l d_l)   doubly stochastic

Own weights are "the rest" so that rows sum to 1 up to one rounding. Reference: Xiao and Boyd, Fast linear iterations
for distributed averaging, 2004.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.registry import Registry
from byzmesh.types import Booleans, Floats

EXPLICIT = "explicit"
"""`Network.weights` of a network whose mixing matrix was given as an array."""

schemes: Registry[Floats] = Registry("weight scheme", "byzmesh.weights")


def _own_is_the_rest(between: Floats) -> Floats:
    np.fill_diagonal(between, 0.0)
    np.fill_diagonal(between, 1.0 - between.sum(axis=1))
    return between


@schemes.register("metropolis-hastings", aliases=("mh", "metropolis"))
def metropolis_hastings(adjacency: Booleans) -> Floats:
    """Metropolis-Hastings: w_nm = 1 / (1 + max(d_n, d_m)), own the rest.

    >>> metropolis_hastings(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)).round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    """
    degree = adjacency.sum(axis=1)
    return _own_is_the_rest(adjacency / (1.0 + np.maximum.outer(degree, degree)))


@schemes.register("equal", aliases=("uniform",))
def equal(adjacency: Booleans) -> Floats:
    """Equal weights on own and all neighbours: 1 / (1 + d_n); rows sum to 1, columns need not.

    >>> equal(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool))[0]
    array([0.5, 0.5, 0. ])
    """
    return _own_is_the_rest(adjacency / (1.0 + adjacency.sum(axis=1, keepdims=True)))


@schemes.register("max-degree", aliases=("maximum-degree",))
def max_degree(adjacency: Booleans) -> Floats:
    """The same weight on every edge, 1 / (1 + the largest degree); own the rest.

    >>> max_degree(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool))[0].round(3)
    array([0.667, 0.333, 0.   ])
    """
    return _own_is_the_rest(adjacency / (1.0 + adjacency.sum(axis=1).max()))


@schemes.register("lazy", aliases=("lazy-metropolis",))
def lazy(adjacency: Booleans) -> Floats:
    """(I + Metropolis-Hastings) / 2: at least half on own, no negative eigenvalue.

    >>> lazy(np.array([[0, 1], [1, 0]], bool))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return _own_is_the_rest(metropolis_hastings(adjacency) / 2.0)


@schemes.register("best-constant")
def best_constant(adjacency: Booleans) -> Floats:
    """The constant edge weight that mixes fastest: I - alpha L, alpha = min(2 / (mu_2 + mu_n), 1 / max degree).

    2 / (mu_2 + mu_n) minimises the second largest modulus max(1 - alpha mu_2, alpha mu_n - 1), but on irregular graphs
    (a star, most random graphs) it makes nodes' own weights negative, which is meaningless to a robust rule. The
    modulus falls in alpha up to that optimum, so the best alpha with nonnegative weights is the smaller of the two.

    >>> best_constant(np.ones((4, 4), bool) & ~np.eye(4, dtype=bool))[0]
    array([0.25, 0.25, 0.25, 0.25])
    """
    largest = float(adjacency.sum(axis=1).max())
    if largest == 0.0:
        return np.eye(len(adjacency))
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency.astype(np.float64)
    eigenvalues = np.linalg.eigvalsh(laplacian)
    alpha = min(2.0 / float(eigenvalues[1] + eigenvalues[-1]), 1.0 / largest)
    # At alpha = 1 / max degree a node's own weight is 0 up to rounding, and must not become negative.
    return np.maximum(_own_is_the_rest(alpha * adjacency.astype(np.float64)), 0.0)


def mixing_matrix(adjacency: Booleans, weights: Any) -> tuple[str, Floats]:
    """Name and matrix of a named scheme, or of an explicit (n, n) array after checking it.

    >>> mixing_matrix(np.array([[0, 1], [1, 0]], bool), "mh")
    ('metropolis-hastings', array([[0.5, 0.5],
           [0.5, 0.5]]))
    """
    if isinstance(weights, str):
        scheme = schemes.entry(weights)
        return scheme.name, scheme.factory(adjacency)
    return EXPLICIT, _checked(adjacency, weights)


def _checked(adjacency: Booleans, weights: Any) -> Floats:
    try:
        matrix = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"weights must be a scheme's name or an (n, n) array, got {type(weights).__name__}") from None
    n = len(adjacency)
    if matrix.shape != (n, n):
        raise ConfigError(f"weights must have shape ({n}, {n}), one row per node, got {matrix.shape}")
    bad = np.argwhere(~np.isfinite(matrix) | (matrix < 0.0))
    if len(bad):
        i, j = bad[0].tolist()
        raise ConfigError(f"weights must be finite and not negative, got {matrix[i, j]} at ({i}, {j})")
    bad = np.argwhere((matrix > 0.0) & ~adjacency & ~np.eye(n, dtype=bool))
    if len(bad):
        i, j = bad[0].tolist()
        raise ConfigError(f"weights must be 0 where there is no edge, got {matrix[i, j]} at ({i}, {j}); add the edge")
    total = matrix.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1.0) > 1e-9)
    if len(off):
        raise ConfigError(
            f"every row of weights must sum to 1, row {off[0]} sums to {total[off[0]]:.12g}; normalise it"
        )
    return matrix

"""Weights that a design compares.

    metropolis-hastings, best-constant   see `networks.weights`
    scaled                               Metropolis-Hastings, every link's weight multiplied by the same number below 1
    fastest                              the FDLA semidefinite programme (the extra `design`),

        minimise ||W - 11^T/n||_2   such that   W = W^T, W 1 = 1, W >= 0, w_nm = 0 where there is no link.

Smaller weights make lies weigh less, and mixing as much slower; a link costs more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.networks import Network
from byzmesh.theory.design.wanted import Wanted
from byzmesh.types import Booleans, Floats

SCHEMES = ("metropolis-hastings", "best-constant", "scaled", "fastest")


def weighted(network: Network, scheme: str, wanted: Wanted) -> tuple[str, Network]:
    """The network with the weights of a scheme, and what they are called."""
    if scheme == "fastest":
        return scheme, network.with_weights(fastest_mixing(network.adjacency))
    if scheme != "scaled":
        return scheme, network.with_weights(scheme)
    plain = network.with_weights("metropolis-hastings")
    scale = wanted.least_scale if wanted.guarantee == "agrees" else wanted.scaling(plain)
    return f"metropolis-hastings times {scale:.4g}", scaled(plain, scale)


def scaled(network: Network, scale: float) -> Network:
    """The network with the weight of every link multiplied; the rest stays with each worker.

    >>> from byzmesh.networks import network
    >>> scaled(network("complete", n=4), 0.5).mixing[0]
    array([0.625, 0.125, 0.125, 0.125])
    """
    if scale == 1.0:
        return network
    own = 1.0 - scale * (1.0 - network.own_weight)
    return network.with_weights(network.links.matrix(scale * network.link_weight, own))


def fastest_mixing(adjacency: Booleans) -> Floats:
    """(n, n) the symmetric nonnegative weights that mix fastest, by the FDLA semidefinite programme through cvxpy."""
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra("design", "fastest mixing by FDLA") from None
    n = len(adjacency)
    matrix: Any = cvxpy.Variable((n, n), symmetric=True)
    absent = (~adjacency & ~np.eye(n, dtype=bool)).astype(np.float64)
    rules = [matrix @ np.ones(n) == np.ones(n), matrix >= 0.0, cvxpy.multiply(absent, matrix) == 0.0]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sigma_max(matrix - np.full((n, n), 1.0 / n))), rules).solve()
    if matrix.value is None:
        raise ConfigError(f"the solver found no fastest weights for this graph of {n} nodes; choose another scheme")
    weight = np.where(adjacency, np.maximum((matrix.value + matrix.value.T) / 2.0, 0.0), 0.0)
    # the solver's rounding must not make a worker's own weight negative
    weight /= max(1.0, float(weight.sum(axis=1).max()))
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    return np.asarray(weight, np.float64)

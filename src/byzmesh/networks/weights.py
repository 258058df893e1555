"""Mixing weights: how much a worker counts each message when nobody is dropped.

A scheme turns the links of all n workers, liars included (a worker cannot tell them apart), into W' (n, n): w'_nm >= 0,
zero where there is no link, rows sum to 1. It gives the weight of every link; a worker's own weight is the rest. d_n is
the degree of n, L the graph's Laplacian with eigenvalues 0 = mu_1 <= mu_2 <= ... <= mu_n.

    metropolis-hastings   w_nm = 1 / (1 + max(d_n, d_m))                    doubly stochastic
                          samples s_n: w_nm = min(1 / (1 + d_n), (s_m / s_n) / (1 + d_m))
    equal                 w_nm = 1 / (1 + d_n)                              row stochastic only
    max-degree            w_nm = 1 / (1 + max_l d_l)                        doubly stochastic
    lazy                  half of Metropolis-Hastings                       doubly stochastic
    best-constant         w_nm = alpha = min(2 / (mu_2 + mu_n), 1 / max_l d_l)  doubly stochastic

Doubly stochastic weights leave the mean of all models where it is: everybody counts the same. Where sites have s_n
samples, Metropolis-Hastings and `lazy` leave the mean weighted by s_n where it is instead (detailed balance, s_n w_nm =
s_m w_mn): every sample counts the same. A worker still needs nothing but the degrees and sizes of its neighbours.

A third party's scheme may also be a function of the dense adjacency matrix that returns a dense W'.

Reference: Xiao and Boyd, Fast linear iterations for distributed averaging, 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks.links import Links
from byzmesh.networks.spectrum import extreme_eigenvalues
from byzmesh.registry import Registry
from byzmesh.sparse import frozen, row_sums
from byzmesh.types import Floats

EXPLICIT = "explicit"
"""`Network.weights` of a network whose mixing weights were given as numbers."""

schemes: Registry[Floats] = Registry("weight scheme", "byzmesh.weights")


@dataclass(frozen=True)
class Weights:
    """The name of a scheme (or `explicit`), the weight of each link (E,) and each worker's own weight (n,)."""

    name: str
    link: Floats
    own: Floats


@schemes.register("metropolis-hastings", aliases=("mh", "metropolis"))
def metropolis_hastings(links: Links, samples: Floats | None = None) -> Floats:
    """Metropolis-Hastings: w_nm = 1 / (1 + max(d_n, d_m)), or the same for a target in proportion to `samples` (n,).

    >>> chain = Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3)
    >>> metropolis_hastings(chain).round(3)
    array([0.333, 0.333, 0.333, 0.333])
    >>> metropolis_hastings(chain, np.array([1.0, 3.0, 6.0])).round(3)  # from 1 to 0, 0 to 1, 2 to 1, 1 to 2
    array([0.5  , 0.167, 0.333, 0.167])
    """
    if samples is None:
        larger = np.maximum(links.degree[links.receiver], links.degree[links.sender]).astype(np.float64)
        return 1.0 / (1.0 + larger)
    room = 1.0 / (1.0 + links.degree.astype(np.float64))
    ratio = samples[links.sender] / samples[links.receiver]
    weight: Floats = np.minimum(room[links.receiver], ratio * room[links.sender])
    return weight


@schemes.register("equal", aliases=("uniform",))
def equal(links: Links) -> Floats:
    """Equal weights on own and all neighbours: 1 / (1 + d_n); rows sum to 1, columns need not.

    >>> equal(Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3)).round(3)
    array([0.5  , 0.333, 0.333, 0.5  ])
    """
    return 1.0 / (1.0 + links.degree[links.receiver].astype(np.float64))


@schemes.register("max-degree", aliases=("maximum-degree",))
def max_degree(links: Links) -> Floats:
    """The same weight on every link, 1 / (1 + the largest degree).

    >>> max_degree(Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3)).round(3)
    array([0.333, 0.333, 0.333, 0.333])
    """
    return np.full(len(links.sender), 1.0 / (1.0 + links.degree.max()))


@schemes.register("lazy", aliases=("lazy-metropolis",))
def lazy(links: Links, samples: Floats | None = None) -> Floats:
    """(I + Metropolis-Hastings) / 2: at least half on own, no negative eigenvalue.

    >>> lazy(Links.of_pairs([0, 1], [1, 0], n=2))
    array([0.25, 0.25])
    """
    return metropolis_hastings(links, samples) / 2.0


@schemes.register("best-constant")
def best_constant(links: Links) -> Floats:
    """The constant link weight that mixes fastest: I - alpha L, alpha = min(2 / (mu_2 + mu_n), 1 / max degree).

    2 / (mu_2 + mu_n) minimises the second largest modulus max(1 - alpha mu_2, alpha mu_n - 1), but on irregular graphs
    (a star, most random graphs) it makes nodes' own weights negative, which is meaningless to a robust rule. The
    modulus falls in alpha up to that optimum, so the best alpha with nonnegative weights is the smaller of the two.

    >>> best_constant(Links.of_pairs([0, 1, 1, 2], [1, 0, 2, 1], n=3))
    array([0.5, 0.5, 0.5, 0.5])
    """
    if len(links.sender) == 0:
        return np.zeros(0)
    if links.directed:
        raise ConfigError("weights best-constant are for links that go both ways; use equal or metropolis-hastings")
    laplacian = links.matrix(np.full(len(links.sender), -1.0), links.degree.astype(np.float64))
    low, high = extreme_eigenvalues(laplacian)
    return np.full(len(links.sender), min(2.0 / (low + high), 1.0 / float(links.degree.max())))


def mixing_weights(links: Links, weights: Any, samples: Floats | None = None) -> Weights:
    """The weights of a named scheme, or of an explicit (n, n) matrix (dense or SciPy's) after checking it.

    samples  (n,) how many samples each worker has, for a scheme that weighs them; None: every worker counts the same

    >>> mixing_weights(Links.of_pairs([0, 1], [1, 0], n=2), "mh")
    Weights(name='metropolis-hastings', link=array([0.5, 0.5]), own=array([0.5, 0.5]))
    """
    if not isinstance(weights, str):
        return _explicit(EXPLICIT, links, weights)
    scheme = schemes.entry(weights)
    if samples is not None:
        if "samples" not in scheme.options:
            raise ConfigError(f"weights {scheme.name} do not weigh samples; use metropolis-hastings or lazy")
        if links.directed:
            raise ConfigError("weights by samples need links that go both ways; leave out directed, or samples")
        link = scheme.factory(links, samples)
        own = np.maximum(1.0 - row_sums(links.receiver, links.sender, link, (links.n, links.n)), 0.0)
        return Weights(scheme.name, frozen(link), frozen(own))
    if "links" not in scheme.options:
        return _explicit(scheme.name, links, scheme.factory(links.dense(f"weight scheme {scheme.name}: the adjacency")))
    link = scheme.factory(links)
    # "The rest" makes rows sum to 1 up to one rounding; where it is 0, rounding must not make it negative.
    own = np.maximum(1.0 - row_sums(links.receiver, links.sender, link, (links.n, links.n)), 0.0)
    return Weights(scheme.name, frozen(link), frozen(own))


def _explicit(name: str, links: Links, weights: Any) -> Weights:
    n = links.n
    try:
        matrix = weights.tocoo() if hasattr(weights, "tocoo") else np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"weights must be a scheme's name or an (n, n) array, got {type(weights).__name__}") from None
    if matrix.shape != (n, n):
        raise ConfigError(f"weights must have shape ({n}, {n}), one row per node, got {matrix.shape}")
    row, column = matrix.nonzero() if isinstance(matrix, np.ndarray) else matrix.coords
    value = matrix[row, column] if isinstance(matrix, np.ndarray) else matrix.data.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(value) | (value < 0.0))
    if len(bad):
        first = bad[0]
        raise ConfigError(
            f"weights must be finite and not negative, got {value[first]} at ({row[first]}, {column[first]})"
        )
    spot = links.find(row, column)
    bad = np.flatnonzero((spot < 0) & (row != column) & (value > 0.0))
    if len(bad):
        i, j = int(row[bad[0]]), int(column[bad[0]])
        raise ConfigError(f"weights must be 0 where there is no edge, got {value[bad[0]]} at ({i}, {j}); add the edge")
    link, own = np.zeros(len(links.sender)), np.zeros(n)
    link[spot[spot >= 0]] = value[spot >= 0]
    own[row[row == column]] = value[row == column]
    total = own + row_sums(links.receiver, links.sender, link, (n, n))
    off = np.flatnonzero(np.abs(total - 1.0) > 1e-9)
    if len(off):
        raise ConfigError(
            f"every row of weights must sum to 1, row {off[0]} sums to {total[off[0]]:.12g}; normalise it"
        )
    return Weights(name, frozen(link), frozen(own))

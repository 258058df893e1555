"""The virtual mixing matrix W (Definition 1): the average that a rule would form if it knew the liars.

    xbar_n = sum_m w_nm x_m    over n itself and its honest neighbours; W is (N, N) over the honest workers

A rule declares its own (`Rule.virtual_mixing`; Theorem 3 and Table I name those of the paper's rules):

    to-own   w_nm = w'_nm, w_nn = w'_nn + sum_{lying b} w'_nb          the liars' weight goes to the receiver
    equal    w_nm = 1 / (N_n + 1)                                      equal weights over the receiver and the honest
    own      W = I                                                     nobody listens

and what matters about W:

    chi^2   = ||W^T 1 - 1||^2 / N          0 iff W is doubly stochastic: does everybody count the same?
            = sum_n ((W^T pi)_n - pi_n)^2 / pi_n   for a target pi, the share of each worker's data: 1 / N gives the
                                                   line above; 0 iff every sample counts the same (pi^T W = pi^T)
    lambda  = 1 - ||(I - 11^T/N) W||_2^2   how much of the disagreement one exchange removes
    rho*    = lambda / (8 sqrt N)          the contraction constant below which consensus is proved (Theorem 2)
    p       left Perron vector, p^T W = p^T: the weights of the average that is really minimised

Every function takes a dense array or a SciPy matrix. Up to 1,024 workers eigenvalues are computed directly, beyond by
Lanczos' method (`networks.spectrum`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.checks import choice
from byzmesh.networks import Network, laplacian
from byzmesh.networks.spectrum import DIRECT, SLACK, as_dense, extreme_eigenvalues, largest_eigenvalue
from byzmesh.rules.base import Rule
from byzmesh.types import Floats

ROUNDING = 1e-9
PRODUCTS = 5000
"""Products with W^T before the search for its Perron vector is given up."""
STRICT = 1e-12
"""The largest value that rounding alone can turn 0 into."""


@dataclass(frozen=True)
class Mixing:
    """A virtual mixing matrix and where it comes from.

    matrix  (N, N) SciPy matrix in rows, rows and columns in the order of `network.honest`
    form    "to-own", "equal" or "own" (see the module)
    source  "theory" where the rule declares it; "convention" for other rules, whose W is to-own if they use the mixing
            weights and equal if not
    """

    matrix: Any
    form: str
    source: str

    @cached_property
    def rate(self) -> float:
        """lambda, computed once; NaN if it is not known."""
        return mixing_rate(self.matrix)


def virtual_mixing(network: Network, rule: Rule) -> Mixing:
    """The virtual mixing matrix of a rule on a network.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("complete", n=4, byzantine=[3])
    >>> virtual_mixing(net, rule("ios")).matrix.toarray()[0], virtual_mixing(net, rule("faba")).matrix.toarray()[0]
    (array([0.5 , 0.25, 0.25]), array([0.33333333, 0.33333333, 0.33333333]))
    """
    form = rule.virtual_mixing or ("to-own" if rule.uses_weights else "equal")
    choice(f"rule {rule.name}: virtual_mixing", form, MATRICES)
    return Mixing(MATRICES[form](network), form, "convention" if rule.virtual_mixing is None else "theory")


def to_own(network: Network) -> Any:
    """(N, N) the honest block of W', the liars' weight given to the receiver."""
    links, kept = network.links.among(network.honest)
    return links.matrix(network.link_weight[kept], network.own_weight[network.honest] + network.lying_weight)


def equal_honest(network: Network) -> Any:
    """(N, N) equal weights 1 / (N_n + 1) on the receiver and its honest neighbours."""
    links = network.honest_links
    share = 1.0 / (1.0 + links.degree.astype(np.float64))
    return links.matrix(share[links.receiver], share)


def alone(network: Network) -> Any:
    """(N, N) the identity: nobody listens."""
    links = network.honest_links
    return links.matrix(np.zeros(len(links.sender)), np.ones(links.n))


MATRICES: dict[str, Callable[[Network], Any]] = {"to-own": to_own, "equal": equal_honest, "own": alone}


def row_stochastic(matrix: Any) -> bool:
    """Entries in [0, 1], rows that sum to 1.

    >>> row_stochastic(np.array([[0.5, 0.5], [1.0, 0.0]]))
    True
    """
    return bool(matrix.min() >= -ROUNDING and np.abs(matrix.sum(axis=1) - 1.0).max() <= ROUNDING)


def doubly_stochastic(matrix: Any) -> bool:
    """Rows and columns that sum to 1.

    >>> doubly_stochastic(np.array([[0.5, 0.5], [1.0, 0.0]]))
    False
    """
    return row_stochastic(matrix) and row_stochastic(matrix.T)


def symmetric(matrix: Any) -> bool:
    """Whether links weigh the same in both directions, up to rounding of each weight, however small.

    >>> symmetric(np.array([[1.0, 3e-12], [1e-12, 1.0]]))
    False
    """
    turned = matrix.T
    larger = np.maximum(matrix, turned) if isinstance(matrix, np.ndarray) else matrix.maximum(turned)
    return bool((abs(matrix - turned) - ROUNDING * larger).max() <= 0.0)


def flows(matrix: Any, target: Floats) -> Any:
    """N diag(pi) W: what each worker's data give to the others. It is symmetric if W is in detailed balance with pi.

    >>> flows(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1 / 3, 2 / 3])).round(3)
    array([[0.333, 0.333],
           [0.333, 1.   ]])
    """
    scale = len(target) * target
    if isinstance(matrix, np.ndarray):
        return scale[:, None] * matrix
    from scipy.sparse import dia_array

    return (dia_array((scale[None], [0]), shape=matrix.shape) @ matrix).tocsr()


def keeps(matrix: Any, target: Floats) -> bool:
    """Whether averages weighted by the target stay where they are: rows of W sum to 1, and pi^T W = pi^T.

    >>> keeps(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1 / 3, 2 / 3]))
    True
    """
    flow = flows(matrix, target)
    lost = np.abs(flow.sum(axis=0) - len(target) * target)
    return row_stochastic(matrix) and bool((lost <= ROUNDING * np.minimum(1.0, len(target) * target)).all())


def even(matrix: Any) -> bool:
    """Whether column sums are so close to 1 that the smallest link too carries as much weight in as out.

    Rounding to 1e-9 says nothing about links that weigh less: over them everybody may follow one worker.

    >>> even(np.array([[1.0 - 1e-12, 1e-12], [3e-12, 1.0 - 3e-12]]))
    False
    """
    if symmetric(matrix):
        return True
    from scipy.sparse import coo_array

    entries = coo_array(matrix)
    link = (entries.row != entries.col) & (entries.data > 0.0)
    weight, n = entries.data[link], matrix.shape[0]
    gained = np.bincount(entries.col[link], weight, n) - np.bincount(entries.row[link], weight, n)
    return bool(np.abs(gained).max() <= ROUNDING * weight.min(initial=1.0))


def chi2(matrix: Any, target: Floats | None = None) -> float:
    """||W^T 1 - 1||^2 / N, or for a target pi (N,) the chi-squared distance of W^T pi from it.

    >>> chi2(np.array([[0.5, 0.5], [1.0, 0.0]])), chi2(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.5, 0.5]))
    (0.25, 0.25)
    >>> round(chi2(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1 / 3, 2 / 3])), 12)
    0.0
    """
    if target is None:
        return float(np.mean((matrix.sum(axis=0) - 1.0) ** 2))
    return float((((matrix.T @ target) - target) ** 2 / target).sum())


def mixing_rate(matrix: Any) -> float:
    """lambda = 1 - ||(I - 11^T/N) W||_2^2, from the largest eigenvalue of the product's Gram matrix.

    Up to 1,024 workers all eigenvalues are computed, O(N^3): LAPACK's search for the largest alone fails where it is
    multiple (complete graphs). Beyond, NaN if Lanczos' method does not converge.

    >>> round(mixing_rate(np.array([[0.75, 0.25], [0.25, 0.75]])), 12)
    0.75
    """
    if matrix.shape[0] <= DIRECT:
        dense = as_dense(matrix)
        centred = dense - dense.mean(axis=0)
        largest = float(np.linalg.eigvalsh(centred.T @ centred)[-1])
    elif abs(matrix - matrix.T).max() <= ROUNDING and doubly_stochastic(matrix):
        low, high = extreme_eigenvalues(laplacian(matrix))  # W = I - L
        largest = max(1.0 - low, high - 1.0) ** 2 + SLACK
    else:

        def gram(vector: Floats) -> Floats:
            spread = matrix @ vector
            result: Floats = matrix.T @ (spread - spread.mean())
            return result

        largest = largest_eigenvalue(gram, matrix.shape[0]) + SLACK
    rate = 1.0 - max(0.0, largest)
    return 0.0 if abs(rate) < STRICT else rate


def rho_star(rate: float, workers: int) -> float:
    """lambda / (8 sqrt N).

    >>> rho_star(0.8, 25)
    0.02
    """
    return rate / (8.0 * float(np.sqrt(workers)))


def strongly_connected(matrix: Any) -> bool:
    """Whether every worker reaches every other through positive weights.

    >>> strongly_connected(np.array([[0.5, 0.5], [0.0, 1.0]]))
    False
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(csr_array(matrix > 0.0), directed=True, connection="strong")
    return bool(count == 1)


def perron(matrix: Any) -> Floats | None:
    """(N,) p with p^T W = p^T and sum 1; None where it is not unique (W is not strongly connected) or not found.

    Beyond 1,024 workers p is what W^T leaves of equal weights, by repeated products; found if p is then exact to 1e-12.

    >>> perron(np.array([[0.5, 0.5], [1.0, 0.0]])).round(3)
    array([0.667, 0.333])
    """
    if not strongly_connected(matrix):
        return None
    workers = matrix.shape[0]
    if workers > DIRECT:
        return _by_products(matrix)
    # One equation of (W^T - I) p = 0 follows from the others; the sum replaces it.
    system = as_dense(matrix).T - np.eye(workers)
    system[-1] = 1.0
    right = np.zeros(workers)
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right), np.float64)


def _by_products(matrix: Any) -> Floats | None:
    turned, share = matrix.T.tocsr(), np.full(matrix.shape[0], 1.0 / matrix.shape[0])
    for _ in range(PRODUCTS):
        after = (share + turned @ share) / 2.0  # half a step, so that nothing can swing to and fro
        if np.abs(after - share).sum() <= 1e-12:
            return np.asarray(after / after.sum(), np.float64)
        share = after
    return None

"""Certificates during a simulation: what the rule really mixed, and whether it kept its promise.

The coefficients of a round (how much each slot of the inbox counted) give the empirical mixing matrix; the models
before and after the exchange give the realised contraction:

    W_nm     coefficient that n gave to honest m; what liars (and anchors) got is added to W_nn
    ratio_n  ||x_n after - xbar_n|| / max_m ||x_m before - xbar_n||,    xbar_n from the *virtual* mixing matrix
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.networks import Network
from byzmesh.theory.contraction import Proof
from byzmesh.theory.mixing import chi2
from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True)
class RoundReport:
    """One round compared with the theory.

    ratio       (N,) realised contraction; 0 where the honest models agree to within rounding
    chi2        of the empirical mixing matrix, NaN for rules without coefficients
    lies        (N,) how much the liars' messages counted in total, NaN likewise
    violations  ids of the workers whose ratio is above the proved bound
    """

    ratio: Floats
    chi2: float
    lies: Floats
    violations: Integers


def empirical_mixing(network: Network, coefficients: Floats) -> tuple[Any, Floats]:
    """(W (N, N) in sparse rows, lies (N,)) from coefficients (N, K) in the slots of `network.layout`.

    >>> from byzmesh.networks import network
    >>> net = network("complete", n=3, byzantine=[2])
    >>> matrix, lies = empirical_mixing(net, np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]]))
    >>> matrix.toarray(), lies
    (array([[0.7, 0.3],
           [0.4, 0.6]]), array([0.2, 0. ]))
    """
    sender = network.layout.sender
    row = np.full(network.n, -1, np.int64)
    row[network.honest] = np.arange(len(network.honest))
    column = np.where(sender >= 0, row[sender], -1)
    honest: Booleans = column >= 0
    honest[:, 0] = False
    given = coefficients[honest]  # by receiver, then by sender: the order of the links between honest workers
    lies = np.where((sender >= 0) & (column < 0), coefficients, 0.0).sum(axis=1)
    return network.honest_links.matrix(given, 1.0 - np.where(honest, coefficients, 0.0).sum(axis=1)), lies


def round_contraction(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    mixing: Any,
    allowance: float = 0.0,
    own: npt.ArrayLike | None = None,
) -> Floats:
    """(N,) realised contraction of one exchange: models before and after (N, D), virtual mixing matrix (N, N).

    The maximum runs over the workers with positive weight, the worker itself included. `allowance` is how far a model
    may be off by rounding. With a channel, `before` are the messages as they arrived and `own` (N, D) what the workers
    know of themselves.

    >>> round_contraction([[0.0], [1.0]], [[0.25], [0.5]], np.full((2, 2), 0.5))
    array([0.5, 0. ])
    """
    from scipy.sparse import csr_array

    old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
    mine = old if own is None else np.asarray(own, np.float64)
    middle = old.mean(axis=0)
    old, new, mine = old - middle, new - middle, mine - middle
    centre = mixing @ old
    if own is not None:
        centre = centre + np.asarray(mixing.diagonal())[:, None] * (mine - old)
    ratio = np.zeros(len(old))
    rows = csr_array(mixing)
    for worker in range(len(old)):
        span = slice(rows.indptr[worker], rows.indptr[worker + 1])
        near = rows.indices[span][rows.data[span] > 0.0]
        heard = np.vstack([old[near[near != worker]], mine[worker]])
        spread = np.sqrt(((heard - centre[worker]) ** 2).sum(axis=1).max())
        size = np.sqrt((heard**2).sum(axis=1).max())
        if spread > 1e-9 * size:
            moved = np.sqrt(((new[worker] - centre[worker]) ** 2).sum())
            ratio[worker] = max(0.0, moved - allowance) / spread
    return ratio


def round_report(
    network: Network,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    coefficients: Floats | None,
    mixing: Any,
    proof: Proof,
    own: npt.ArrayLike | None = None,
) -> RoundReport:
    """One round of a simulation compared with what is proved; `own` as in `round_contraction`."""
    ratio = round_contraction(before, after, mixing, own=own)
    uneven, lies = np.nan, np.full(len(ratio), np.nan)
    if coefficients is not None:
        matrix, lies = empirical_mixing(network, coefficients)
        uneven = chi2(matrix, None if network.samples is None else network.target)
    # float32 models round by 1e-7 of their size, so a tiny excess is no violation
    broken = ratio > proof.bound * (1.0 + 1e-3) + 1e-3
    return RoundReport(ratio, uneven, lies, network.honest[broken])

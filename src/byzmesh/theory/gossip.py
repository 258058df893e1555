"""Robust gossip (rules that step towards neighbours and clip or trim): one exchange contracts if 2 e < mu_2.

A gossip rule declares e_n (`Rule.gossip_error`), such that whatever the liars send

    ||A_n - xbar_n||^2 <= e_n sum_m w'_nm ||x_n - x_m||^2      over the honest neighbours m, xbar_n by W to-own

For symmetric weights let L be the Laplacian of the honest block of W', 0 = mu_1 <= mu_2 <= ... <= mu_max its
eigenvalues, X the centred honest models and e = max_n e_n. Then W X = X - L X, the errors E_n = A_n - xbar_n have
||E||_F^2 <= 2 e <X, L X>, and one exchange multiplies the disagreement H by at most

    1 - (mu_2 - 2 e)                                                      if 2 e <= mu_2 and mu_max <= 1          (1)
    max over m in [mu_2, mu_max] of (sqrt(c(m)) + sqrt(2 e m))^2                                                   (2)

c(m) the chord of (1 - m)^2 between mu_2 and mu_max. (1) is the published criterion 2 rho b < mu_2 (e = rho b) with its
condition on the largest eigenvalue: without it a bipartite graph with own weights 0 would pass, although it swaps its
two sides forever. Proofs of both: docs/theory.md.

Liars anywhere: honest blocks of symmetric weights have mu_2 >= mu_2(W') - h and mu_max <= mu_max(W'), h the most that
lies can weigh at a worker, since x^T L x = y^T L' y - sum_n b_n x_n^2 for the vector y that is x and 0 at the liars.

Reference: Gaucher, Dieuleveut and Hendrikx, Unified breakdown analysis for Byzantine robust gossip, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byzmesh.networks import Network, laplacian
from byzmesh.networks.spectrum import DIRECT, SLACK, extreme_eigenvalues
from byzmesh.theory.mixing import ROUNDING, symmetric
from byzmesh.types import Floats


@dataclass(frozen=True)
class Spectrum:
    """The honest Laplacian's second and largest eigenvalue, or bounds that hold for all placements: mu_2 from below."""

    mu_2: float
    mu_max: float

    @property
    def rate(self) -> float:
        """lambda of W = I - L: 1 - max(1 - mu_2, mu_max - 1)^2, from below if the eigenvalues are bounds."""
        return 1.0 - max(0.0, 1.0 - self.mu_2, self.mu_max - 1.0) ** 2


def spectrum(network: Network, lies: float = 0.0) -> Spectrum | None:
    """The honest Laplacian's eigenvalues, mu_2 minus what lies can weigh; None if weights are not symmetric.

    >>> from byzmesh.networks import network
    >>> seen = spectrum(network("paper/two-castle"))
    >>> round(seen.mu_2, 3), round(seen.mu_max, 3)
    (0.727, 0.909)
    """
    block = network.sparse_mixing(network.honest)
    if block.shape[0] < 2 or not symmetric(block):
        return None
    low, high = extreme_eigenvalues(laplacian(block))
    slack = 0.0 if block.shape[0] <= DIRECT else SLACK
    return Spectrum(low - slack - lies, high + slack)


def gossip_factor(seen: Spectrum, error: float) -> float:
    """Largest factor by which one exchange multiplies the disagreement H, by (1) or (2); infinite if e is unknown.

    >>> round(gossip_factor(Spectrum(0.8, 1.0), 0.1), 2), round(gossip_factor(Spectrum(0.8, 1.2), 0.0), 3)
    (0.36, 0.04)
    >>> gossip_factor(Spectrum(1.0, 2.0), 0.0)
    1.0
    """
    if not math.isfinite(error):
        return math.inf
    factor = _by_chord(seen, error)
    if seen.mu_max <= 1.0 + 1e-12 and 2.0 * error <= seen.mu_2:
        factor = min(factor, 1.0 - (seen.mu_2 - 2.0 * error))
    return factor


def _by_chord(seen: Spectrum, error: float) -> float:
    low, high = max(0.0, min(seen.mu_2, seen.mu_max)), seen.mu_max
    points = np.linspace(low, high, 513)
    slope = 0.0 if high <= low else ((1.0 - high) ** 2 - (1.0 - low) ** 2) / (high - low)
    chord = np.maximum(0.0, (1.0 - low) ** 2 + slope * (points - low))
    value = np.sqrt(chord) + np.sqrt(2.0 * error * points)
    # Both roots are concave in m, so between two points the value is below the sum of the roots' largest ends.
    ends = np.maximum(chord[1:], chord[:-1])
    between = np.sqrt(ends) + np.sqrt(2.0 * error * points[1:])
    return float(max(value.max(), between.max() if error > 0.0 else 0.0)) ** 2


def oracle_contracts(network: Network) -> bool:
    """2 b < mu_2, b the largest weight of lies at a worker: what clipping with an oracle's radius would need.

    >>> from byzmesh.networks import network
    >>> [oracle_contracts(network(f"paper/{name}")) for name in ("two-castle", "er-12", "octopus")]
    [True, True, False]
    """
    seen = spectrum(network)
    return seen is not None and 2.0 * float(network.lying_weight.max()) < seen.mu_2 - ROUNDING


def weight_of_lies(network: Network, h: Floats, anywhere: bool) -> float:
    """The most that lies weigh at a worker: the weight of given liars, or for liars anywhere the largest h."""
    return float(h.max()) if anywhere else float(network.lying_weight.max())

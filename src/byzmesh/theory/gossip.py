"""Robust gossip (clipping and trimming rules that step towards neighbours): contraction if 2 rho b < mu_2.

    mu_2   algebraic connectivity of the honest workers under the mixing weights (second smallest eigenvalue of the
           Laplacian of the honest block of W')
    b      the largest total weight of lies that a worker can hold
    rho    4 for GTS (trimming), 2 for CS+ (clipping), 1 for clipping with an oracle's radius

Reference: Gaucher, Dieuleveut and Hendrikx, Unified breakdown analysis for Byzantine robust gossip, 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byzmesh.networks import Network, algebraic_connectivity
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.mixing import STRICT, lying_weight

FACTOR = {"GTS": 4.0, "CS+": 2.0, "oracle": 1.0}


@dataclass(frozen=True)
class Gossip:
    """mu_2, b and for each kind of rule whether 2 rho b < mu_2."""

    mu_2: float
    b: float
    holds: dict[str, bool]


def gossip_criterion(network: Network, f: Any = None) -> Gossip:
    """Whether gossip contracts: with b the lies' true weight, or the f heaviest neighbours' if f is given.

    >>> from byzmesh.networks import network
    >>> found = gossip_criterion(network("paper/two-castle"))
    >>> round(found.mu_2, 3), round(found.b, 3), found.holds
    (0.727, 0.182, {'GTS': False, 'CS+': False, 'oracle': True})
    """
    held = lying_weight(network) if f is None else cut_weight(network, network.bounds(f))
    b = float(held.max())
    mu_2 = algebraic_connectivity(network.honest_mixing) if len(network.honest) > 1 else 0.0
    return Gossip(mu_2, b, {kind: 2.0 * factor * b < mu_2 - STRICT for kind, factor in FACTOR.items()})

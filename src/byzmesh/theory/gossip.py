"""Robust gossip (clipping and trimming rules that step towards neighbours): contraction if 2 rho b < mu_2.

    mu_2   algebraic connectivity of the honest workers under the mixing weights (second smallest eigenvalue of the
           Laplacian of the honest block of W')
    b      the largest total weight of lies that a worker can hold
    rho    what a gossip rule declares (`Rule.gossip_factor`: 4 for GTS, which trims, 2 for CS+, which clips); 1 for
           clipping with an oracle's radius

Reference: Gaucher, Dieuleveut and Hendrikx, Unified breakdown analysis for Byzantine robust gossip, 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byzmesh.networks import Network, algebraic_connectivity
from byzmesh.rules.cs_plus import cs_plus
from byzmesh.rules.gts import gts
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.mixing import STRICT, lying_weight

FACTORS = {rule.name: rule.gossip_factor for rule in (gts(), cs_plus())} | {"oracle": 1.0}
"""rho of the published gossip rules."""


@dataclass(frozen=True)
class Gossip:
    """mu_2, b and for each published gossip rule whether 2 rho b < mu_2."""

    mu_2: float
    b: float
    holds: dict[str, bool]


def contracts(factor: float | None, b: float, mu_2: float) -> bool:
    """Whether 2 rho b < mu_2 for the factor rho that a rule declares; without one nothing is proved.

    >>> contracts(4.0, 0.1, 0.9), contracts(2.0, 0.25, 1.0), contracts(None, 0.1, 0.9)
    (True, False, False)
    """
    return factor is not None and 2.0 * factor * b < mu_2 - STRICT


def gossip_criterion(network: Network, f: Any = None) -> Gossip:
    """Whether gossip contracts: with b the lies' true weight, or the f heaviest neighbours' if f is given.

    >>> from byzmesh.networks import network
    >>> gossip = gossip_criterion(network("paper/two-castle"))
    >>> round(gossip.mu_2, 3), round(gossip.b, 3), gossip.holds
    (0.727, 0.182, {'GTS': False, 'CS+': False, 'oracle': True})
    """
    lies = lying_weight(network) if f is None else cut_weight(network, network.bounds(f))
    b = float(lies.max())
    mu_2 = algebraic_connectivity(network.honest_mixing) if len(network.honest) > 1 else 0.0
    return Gossip(mu_2, b, {name: contracts(factor, b, mu_2) for name, factor in FACTORS.items()})

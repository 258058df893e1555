"""What a design must achieve: the guarantee, and what is missing for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.rules.contraction import Contraction
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.certify import certify
from byzmesh.theory.connectivity import Connectivity, connectivity
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.question import ask
from byzmesh.types import Booleans, Floats, Integers

PROGRAMME = 24
"""On up to this many nodes a programme decides which liars cut; beyond, detours must prove that none do."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The guarantee that the network must have.

    f      (n,) how many neighbours of each worker may lie
    rho    the limit on the contraction constant
    scale  the smallest factor by which link weights may be multiplied to get there
    """

    rule: Rule
    f: Integers
    guarantee: str
    rho: float
    scale: float

    @property
    def declared(self) -> Contraction:
        """The rule's bound in terms of h."""
        if self.rule.contraction is None or self.rule.contraction.of_h is None:
            raise ConfigError(
                f"rule {self.rule.name} declares no bound in terms of the weight of lies; design for ios, for example"
            )
        return self.rule.contraction

    @property
    def least_scale(self) -> float:
        """1 for a rule that counts all neighbours the same, whatever they weigh."""
        return 1.0 if self.declared.equal else self.scale

    def certificate(self, network: Network) -> Certificate:
        """The certificate of a network, without a search."""
        return certify(network, self.rule, self.f, guarantee=self.guarantee, rho=self.rho, search=0)

    def cut_weight(self, network: Network) -> Floats:
        """(n,) h."""
        return cut_weight(network, self.f, self.declared.equal)

    def moved(self, h: Floats) -> Floats:
        """The most that lies of weight h move a worker; infinite where nothing is proved."""
        if self.declared.of_h is None:
            return np.full(len(h), np.inf)
        bound = self.declared.of_h(h)
        return np.where(np.isnan(bound), np.inf, bound)

    def fits(self, h: Floats) -> Booleans:
        """Whether lies of weight h move a worker by at most rho."""
        inside: Booleans = self.moved(h) <= self.rho * (1.0 + 1e-12)
        return inside

    def danger(self, network: Network) -> Floats:
        """(n,) how much each worker needs another link: h, more if the rule cannot run at all, 0 if it needs none."""
        counts, place = np.unique(network.degree, return_inverse=True)
        largest = np.array([self.rule.largest_f(int(count)) for count in counts])[place]
        h = self.cut_weight(network)
        unsafe = np.where(self.fits(self.least_scale * h), 0.0, h)
        return np.where(self.f > largest, 1.0 + self.f - largest, unsafe)

    def scaling(self, network: Network) -> float:
        """The largest factor, from `scale` to 1, with which every h of this network fits; `scale` if there is none."""
        h = self.cut_weight(network)
        low, high = self.least_scale, 1.0
        if self.fits(h).all() or not self.fits(low * h).all():
            return high if self.fits(h).all() else low
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.fits(middle * h).all() else (low, middle)
        return low

    def connected(self, network: Network) -> Connectivity:
        """Whether the honest workers stay connected, whoever lies."""
        return connectivity(ask(network, self.f), seconds=10.0 if network.n <= PROGRAMME else 0.0)

    def impossible(self, n: int) -> str | None:
        """Why even the complete graph, which gives every link its smallest weight, fails; None if it does not."""
        f = int(self.f.max())
        if self._complete(f, n):
            return None
        least = n
        while not self._complete(f, least):
            least += max(1, least // 8) if least > 10 * n else 1
        return f"even the complete graph of {n} nodes fails with {f} liars; about {least:,} nodes are needed"

    def _complete(self, f: int, n: int) -> bool:
        """Whether equal weights on all links suffice: h = s f / n for a scale s, and two rows of W overlap by s - h."""
        scale = self.least_scale
        h = np.array([scale * f / n])
        agrees = self.guarantee != "agrees" or bool(self.moved(h)[0] < (scale - h[0]) / 2.0)
        return agrees and bool(self.fits(h)[0])

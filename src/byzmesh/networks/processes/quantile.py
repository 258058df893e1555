"""`f: quantile`: the smallest bound that, with probability 1 - delta, no honest inbox exceeds in any of T rounds.

The number X_n of liars in the inbox of worker n has an exact distribution (`inbox_counts`): hypergeometric for random
pulls and responders, binomial for lost messages and sleeping liars, or one after the other. Where the inboxes of a
round and the rounds are drawn independently,

    P(some inbox of T rounds holds more than b liars) = 1 - prod_n P(X_n <= b)^T

exactly; where a draw decides about several inboxes (a sleeping liar is silent everywhere), their sum is an upper bound:
T sum_n P(X_n > b). Schedules are not random: b is then the largest number that occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import fraction
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.networks.graph import Network
from byzmesh.networks.processes.base import Meetings, Process, processes
from byzmesh.networks.processes.inbox_counts import InboxCounts
from byzmesh.types import Floats, Integers

WORD = "quantile"


@dataclass(frozen=True)
class Quantile:
    """f chosen by the distribution of liars; `delta` is the probability with which it may be too small."""

    delta: float = 0.05

    def __post_init__(self) -> None:
        fraction("f quantile: delta", self.delta, zero=False, one=False)

    @classmethod
    def of(cls, f: Any) -> Quantile | None:
        """From what a user writes: `quantile` or {name: quantile, delta: 0.01}; None if it is something else.

        >>> Quantile.of({"name": "quantile", "delta": 0.01}), Quantile.of(3)
        (Quantile(delta=0.01), None)
        """
        if f == WORD:
            return cls()
        if not isinstance(f, Mapping) or f.get("name") != WORD:
            return None
        for key in f:
            if key not in ("name", "delta"):
                raise UnknownOption(f"f quantile has no option {key!r}: {nearest(str(key), ['delta'])}")
        return cls(float(f.get("delta", cls.delta)))

    def bounds(
        self, chosen: Sequence[Process], network: Network, rounds: int, resisted: Callable[[int], int], rule: str
    ) -> Integers:
        """(N,) the bound of every honest worker, the same for all; refused if the rule does not resist it.

        resisted  messages of a round -> how many lies among them the rule of that name resists
        """
        found = self.bound(chosen, network, rounds)
        degree = Meetings(chosen, network.links, network.lies).degree
        if degree is not None and found > resisted(least := int(degree[network.honest].min())):
            every = range(1, int(network.degree.max()) + 1)
            works = next((s for s in every if self._works(s, chosen, network, rounds, resisted)), None)
            way_out = (
                f"the smallest s that works is {works}" if works else "no s works: use another rule or fewer liars"
            )
            raise ConfigError(
                f"f quantile: with probability {1 - self.delta:g} inboxes of {rounds} rounds hold up to {found} liars, "
                f"and rule {rule} resists {max(0, resisted(least))} of {least} messages; {way_out}"
            )
        return np.full(len(network.honest), found, np.int64)

    def bound(self, chosen: Sequence[Process], network: Network, rounds: int) -> int:
        """b-hat: the smallest b that holds with probability 1 - delta.

        >>> import byzmesh as bm
        >>> net = bm.network("complete", n=30, byzantine=6)
        >>> [Quantile(0.05).bound(bm.process("random-pull", s=s), net, rounds=1000) for s in (3, 8, 15)]
        [3, 6, 6]
        """
        if chosen and chosen[0].replaces:
            return _largest_seen(chosen, network)
        exceeded = chance_exceeded(chosen, network, rounds)
        return int(np.flatnonzero(exceeded <= self.delta)[0])

    def _works(
        self, s: int, chosen: Sequence[Process], network: Network, rounds: int, resisted: Callable[[int], int]
    ) -> bool:
        changed = [processes.build(one.name, s=s) if "s" in one.options and one.degree else one for one in chosen]
        degree = Meetings(changed, network.links, network.lies).degree
        least = 0 if degree is None else int(degree[network.honest].min())
        return self.bound(changed, network, rounds) <= resisted(least)


def chance_exceeded(chosen: Sequence[Process], network: Network, rounds: int) -> Floats:
    """(most + 2,) probability, or an upper bound, that some honest inbox of some round holds more than b = 0, 1, ...

    >>> import byzmesh as bm
    >>> chance_exceeded(bm.process("random-pull", s=1), bm.network("complete", n=3, byzantine=1), 1)
    array([0.75, 0.  , 0.  ])
    """
    for one in chosen:
        if one.counts is None:
            raise ConfigError(
                f"f quantile: the number of liars in an inbox is not known in closed form under process {one.name}; "
                "give f as a number"
            )
    lying, degree = network.lying_neighbours, network.degree[network.honest]
    kinds, count = np.unique(np.stack([lying, degree - lying], axis=1), axis=0, return_counts=True)
    tails = [_tail(chosen, int(b), int(h)) for b, h in kinds]
    most = max(len(tail) for tail in tails)
    above = np.stack([np.pad(tail[1:], (0, most + 1 - len(tail) + 1)) for tail in tails])  # P(X > b), b = 0 ..
    if any(one.shared for one in chosen):
        total: Floats = np.minimum(rounds * (count @ above), 1.0)
        return total
    # log1p keeps tails far below the rounding of 1
    with np.errstate(divide="ignore"):
        together: Floats = np.abs(np.expm1(rounds * (count @ np.log1p(-np.minimum(above, 1.0)))))
    return together


def _tail(chosen: Sequence[Process], lying: int, honest: int) -> Floats:
    counts = InboxCounts.certain(lying, honest)
    for one in chosen:
        counts = counts if one.counts is None else one.counts(counts)
    return counts.tail()


def _largest_seen(chosen: Sequence[Process], network: Network) -> int:
    """The most liars in an inbox of a schedule; what the other processes lose or put to sleep is not counted off."""
    first = chosen[0]
    if first.period is None:
        raise ConfigError(f"f quantile: process {first.name} has no known distribution of liars; give f as a number")
    rounds = Meetings([first], network.links, network.lies)
    seen = (rounds.at(number).links.count(network.lies)[network.honest] for number in range(first.period(network.n)))
    return int(max(counts.max() for counts in seen))

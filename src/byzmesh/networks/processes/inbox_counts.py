"""How many liars and honest workers are in an inbox: the exact distribution, through each process of a list.

A receiver starts with all its neighbours, b lying and h honest. Then

    thinned   every message stays with probability q: two independent binomials
    drawn     s of those that are there, uniformly without replacement: hypergeometric
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from byzmesh.types import Floats, Integers


@dataclass(frozen=True)
class InboxCounts:
    """A distribution of (lying, honest) messages in one inbox: its support (M,) and the probabilities (M,).

    >>> InboxCounts.certain(2, 2).drawn(1).tail()
    array([1. , 0.5])
    """

    lying: Integers
    honest: Integers
    probability: Floats

    @classmethod
    def certain(cls, lying: int, honest: int) -> InboxCounts:
        """Exactly these."""
        return cls(np.array([lying]), np.array([honest]), np.ones(1))

    def thinned(self, lying: float, honest: float) -> InboxCounts:
        """Every lying message stays with probability `lying`, every honest one with probability `honest`.

        >>> InboxCounts.certain(1, 0).thinned(0.25, 1.0).probability
        array([0.75, 0.25])
        """
        return self._each(lambda b, h: _thinned(int(b), int(h), lying, honest))

    def drawn(self, size: int) -> InboxCounts:
        """`size` of what is there, or all of it, each subset equally likely."""
        return self._each(lambda b, h: _drawn(int(b), int(h), min(size, int(b + h))))

    def less(self, missing: int, *, liars_first: bool = False) -> InboxCounts:
        """All but `missing` of what is there: any subset equally likely, or honest ones as long as there are any."""
        if liars_first:
            honest = np.maximum(self.honest - missing, 0)
            lying = np.maximum(self.lying - np.maximum(missing - self.honest, 0), 0)
            return _joined(lying, honest, self.probability)
        return self._each(lambda b, h: _drawn(int(b), int(h), max(int(b + h) - missing, 0)))

    def one_at_worst(self) -> InboxCounts:
        """One message, from a liar if there is any: a bound, for partners whose distribution is not known."""
        lying = np.minimum(self.lying, 1)
        return _joined(lying, np.minimum(self.honest, 1 - lying), self.probability)

    def _each(self, change: Any) -> InboxCounts:
        parts = [change(b, h) for b, h in zip(self.lying, self.honest)]
        lying, honest = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        scaled = [part[2] * weight for part, weight in zip(parts, self.probability)]
        return _joined(lying, honest, np.concatenate(scaled))

    def tail(self) -> Floats:
        """(most + 1,) probability that at least b liars are in the inbox, for b = 0, 1, ..."""
        weight: Any = np.bincount(self.lying, self.probability)
        above: Floats = np.cumsum(weight[::-1])[::-1]
        return above


def _joined(lying: Integers, honest: Integers, probability: Floats) -> InboxCounts:
    width = int(honest.max()) + 1
    key, place = np.unique(lying * width + honest, return_inverse=True)
    return InboxCounts(key // width, key % width, np.bincount(place, probability).astype(np.float64))


@lru_cache(maxsize=4096)
def _thinned(b: int, h: int, lying: float, honest: float) -> tuple[Integers, Integers, Floats]:
    from scipy.stats import binom

    rows, columns = np.meshgrid(np.arange(b + 1), np.arange(h + 1), indexing="ij")
    weight = binom.pmf(np.arange(b + 1), b, lying)[:, None] * binom.pmf(np.arange(h + 1), h, honest)
    some = weight > 0.0
    return rows[some], columns[some], weight[some]


@lru_cache(maxsize=4096)
def _drawn(b: int, h: int, size: int) -> tuple[Integers, Integers, Floats]:
    from scipy.stats import hypergeom

    if size == 0:  # nothing there is certain; SciPy's distribution has no empty urn
        return np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1)
    lying = np.arange(max(0, size - h), min(b, size) + 1)
    return lying, size - lying, np.asarray(hypergeom.pmf(lying, b + h, b, size))

"""What senders share with each of their neighbours: a number that only the two of them know.

In the simulator the number of a pair is that of its two ids. Peers derive theirs from the keys that they have anyway
(peers/channel_key.py). Of two neighbours the one with the lower id adds what they draw, the other one subtracts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from byzmesh.types import Floats, Integers


class Pairs:
    """The neighbours of some senders and the numbers shared with them.

    shared  sender -> neighbour -> number, below 2^63

    >>> Pairs({0: {2: 77}, 2: {0: 77}}).of((0, 2))
    (array([0, 1]), array([ 1., -1.]), array([77, 77]))
    """

    def __init__(self, shared: Mapping[int, Mapping[int, int]]) -> None:
        self.shared = {int(sender): dict(near) for sender, near in shared.items()}
        self.of = lru_cache(maxsize=4)(self._of)

    @classmethod
    def of_links(cls, receiver: Integers, sender: Integers) -> Pairs:
        """Those of a simulated network, from the two ends (E,) of its links.

        >>> Pairs.of_links(np.array([0, 1]), np.array([1, 0])).shared
        {0: {1: 1}, 1: {0: 1}}
        """
        shared: dict[int, dict[int, int]] = {}
        for one, other in zip(receiver.tolist(), sender.tolist()):
            shared.setdefault(one, {})[other] = (min(one, other) << 31) + max(one, other)
        return cls(shared)

    def _of(self, senders: tuple[int, ...]) -> tuple[Integers, Floats, Integers]:
        """(E,) each for the links of these senders, one after the other: position of the sender, sign, number."""
        found = [
            (place, 1.0 if sender < other else -1.0, number)
            for place, sender in enumerate(senders)
            for other, number in sorted(self.shared.get(sender, {}).items())
        ]
        rows = np.array([place for place, _, _ in found], np.int64)
        signs = np.array([sign for _, sign, _ in found])
        return rows, signs, np.array([number for _, _, number in found], np.int64)

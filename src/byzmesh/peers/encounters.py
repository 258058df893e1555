"""A changing network as one peer sees it: who is due in a round, who reads it, and how much each message counts.

Every peer computes the rounds from the seed of the network file, as the simulator does, so all agree without a word.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.networks.processes import Meetings
from byzmesh.networks.weights import mixing_weights
from byzmesh.types import Floats

_KEPT = 32


@dataclass(frozen=True, kw_only=True)
class Encounter:
    """One round of a peer.

    active   whether it takes part
    senders  whose messages belong to the round
    readers  who expects its message
    weight   of its own vector and of each sender's
    """

    active: bool
    senders: tuple[int, ...]
    readers: tuple[int, ...]
    own: float
    weight: tuple[float, ...]

    def weight_over(self, neighbours: Sequence[int]) -> Floats:
        """(1, 1 + d) its own weight, then those of these neighbours: 0 for whoever does not send in this round."""
        given = dict(zip(self.senders, self.weight, strict=True))
        return np.array([[self.own, *(given.get(neighbour, 0.0) for neighbour in neighbours)]])


class Encounters:
    """Round -> `Encounter` of one peer; the last rounds are kept.

    >>> import byzmesh as bm
    >>> from byzmesh.networks.processes import Meetings, process
    >>> meet = Encounters(Meetings(process("one-peer"), bm.network("complete", n=4).links), "equal", 2)
    >>> meet(1)
    Encounter(active=True, senders=(0,), readers=(0,), own=0.5, weight=(0.5,))
    """

    def __init__(self, meetings: Meetings, weights: Any, me: int) -> None:
        self._meetings, self._weights, self._me = meetings, weights, me
        self._kept: OrderedDict[int, Encounter] = OrderedDict()

    def __call__(self, round: int) -> Encounter:
        if round not in self._kept:
            self._kept[round] = self._of(round)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._kept[round]

    def _of(self, round: int) -> Encounter:
        meeting, me = self._meetings.at(round), self._me
        links = meeting.links
        made = mixing_weights(links, self._weights)
        here = slice(int(links.start[me]), int(links.start[me + 1]))
        return Encounter(
            active=bool(meeting.active[me]),
            senders=tuple(links.sender[here].tolist()),
            readers=tuple(links.receiver[links.sender == me].tolist()),
            own=float(made.own[me]),
            weight=tuple(made.link[here].tolist()),
        )

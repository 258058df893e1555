"""What became of the neighbours' messages, counted per neighbour in the order of ids; and who is suspected for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import exact
from byzmesh.rules.base import Outcome


class Tally:
    """Counts of one peer.

    >>> tally = Tally([3, 5])
    >>> tally.refuse(5, "size"), tally.refuse(5, "size"), tally.suspects({})
    (True, False, [5])
    >>> tally.keep([5, 8], gone={3}), tally.refused[5].total(), tally.used
    (None, 2, array([0, 0]))
    """

    def __init__(self, neighbours: Collection[int]) -> None:
        self.neighbours = sorted(neighbours)
        self.refused: dict[int, Counter[str]] = {neighbour: Counter() for neighbour in self.neighbours}
        """Malformed messages by neighbour and reason."""
        self.ignored = np.zeros(len(self.neighbours), np.int64)
        """Rounds in which the rule gave a neighbour's message no weight."""
        self.used = np.zeros(len(self.neighbours), np.int64)
        """Rounds in which a neighbour's message arrived."""
        self.kept = 0
        """Rounds in which the rule kept the peer's own model."""

    def refuse(self, neighbour: int, reason: str) -> bool:
        """Count a malformed message; whether it is the first of its kind."""
        self.refused[neighbour][reason] += 1
        return self.refused[neighbour][reason] == 1

    def count(self, outcome: Outcome, present: npt.NDArray[np.bool_]) -> None:
        """A round is over: which messages (d,) there were, and what the rule made of them."""
        self.kept += bool(outcome.kept[0])
        _count(present, _UNKNOWN if outcome.coefficients is None else outcome.coefficients[0], self.used, self.ignored)

    def decline(self, neighbours: Collection[int]) -> None:
        """The messages of these neighbours were not fetched: their sketches are far away."""
        far = np.isin(self.neighbours, list(neighbours))
        self.used += far
        self.ignored += far

    def keep(self, neighbours: Collection[int], gone: Collection[int]) -> None:
        """Go on with other neighbours; nothing is known of those who are new, nor of the `gone` ones."""
        fresh = Tally(neighbours)
        for slot, neighbour in enumerate(fresh.neighbours):
            if neighbour in self.refused and neighbour not in gone:
                former = self.neighbours.index(neighbour)
                fresh.ignored[slot], fresh.used[slot] = self.ignored[former], self.used[former]
                fresh.refused[neighbour] = self.refused[neighbour]
        self.neighbours, self.refused = fresh.neighbours, fresh.refused
        self.ignored, self.used = fresh.ignored, fresh.used

    def suspects(self, cut_off: Mapping[int, int]) -> list[int]:
        """Neighbours that flood (times cut off), send malformed messages, or are mostly ignored; the worst first."""
        share = self.ignored / np.maximum(self.used, 1)
        bad = [self.refused[j].total() + cut_off.get(j, 0) for j in self.neighbours]
        worst = sorted(range(len(bad)), key=lambda slot: (-bad[slot], -share[slot]))
        return [self.neighbours[slot] for slot in worst if bad[slot] or share[slot] > 0.5]


_UNKNOWN = np.zeros(0)


@exact
def _count(present: Any, coefficients: Any, used: Any, ignored: Any) -> None:
    """Count messages (d,) that were used, and those whose coefficient, after that of its own model, is zero."""
    for slot in range(present.size):
        used[slot] += present[slot]
        if present[slot] and slot + 1 < coefficients.size and coefficients[slot + 1] == 0.0:
            ignored[slot] += 1

"""Messages that arrive late: with probability p a message is 1 to s rounds old.

The receiver then uses what the sender sent that many rounds ago, or in round 0 if the run is younger. Liars are never
late: they would only send an older lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import fraction, whole
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, processes
from byzmesh.records import made


@processes.register("late", aliases=("delay", "stale"))
def late(p: float = 0.5, s: int = 1) -> Process:
    """Each message is late with probability p, by 1 to s rounds, all equally likely.

    >>> late(s=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process late: s must be a whole number of at least 1, got 0
    """
    fraction("process late: p", p)
    whole("process late: s", s, 1)

    def bind(ground: Ground) -> Step:
        def step(meeting: Meeting, round: int) -> Meeting:
            links = meeting.links
            age = np.empty_like(links.sender)
            _ages(links.start, links.sender, ground.key, round, p, s, age)
            return made(Meeting, links=links, active=meeting.active, age=age)

        return step

    return Process("late", bind, options={"p": p, "s": s}, oldest=s, counts=lambda counts: counts, recurs=True)


@exact
def _ages(start: Any, sender: Any, key: Any, round: Any, p: Any, s: Any, age: Any) -> None:
    for receiver in range(len(start) - 1):
        state = rng.stream(key, receiver, round)
        for entry in range(start[receiver], start[receiver + 1]):
            late = rng.unit(state, 2 * sender[entry]) < p
            age[entry] = min(1 + rng.below(state, 2 * sender[entry] + 1, s), round) if late else 0

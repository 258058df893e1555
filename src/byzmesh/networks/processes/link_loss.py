"""Messages that get lost: each directed message of a round with probability p, independently."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import fraction
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, met, processes


@processes.register("link-loss", aliases=("loss",))
def link_loss(p: float = 0.1) -> Process:
    """Each directed message is lost with probability p, lies included.

    >>> link_loss(p=1.5)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process link-loss: p must be a number in [0, 1], got 1.5
    """
    fraction("process link-loss: p", p)

    def bind(ground: Ground) -> Step:
        def step(meeting: Meeting, round: int) -> Meeting:
            links = meeting.links
            start, sender = np.empty_like(links.start), np.empty_like(links.sender)
            count = _lose(links.start, links.sender, ground.key, round, p, start, sender)
            return met(listed(start, sender, count), meeting.active)

        return step

    return Process("link-loss", bind, options={"p": p}, counts=lambda counts: counts.thinned(1.0 - p, 1.0 - p))


@exact
def _lose(start: Any, sender: Any, key: Any, round: Any, p: Any, new_start: Any, new_sender: Any) -> Any:
    count = 0
    new_start[0] = 0
    for receiver in range(len(start) - 1):
        state = rng.stream(key, receiver, round)
        for entry in range(start[receiver], start[receiver + 1]):
            if rng.unit(state, sender[entry]) >= p:
                new_sender[count] = sender[entry]
                count += 1
        new_start[receiver + 1] = count
    return count

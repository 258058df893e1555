"""First responders: a worker waits for the first d - f of its d neighbours to answer, as in MoNNA.

Who answers first is drawn uniformly in each round. With liars="first" the liars always answer first, which they can:
then the f that a worker does not wait for are honest, as far as it has honest neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import choice, whole
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, met, processes
from byzmesh.networks.processes.random_pull import draw_places


@processes.register("responders", aliases=("first-responders",))
def responders(f: int = 1, liars: str = "random") -> Process:
    """Each worker hears all but f of its neighbours, drawn uniformly; liars="first": none of the liars is left out.

    >>> responders(liars="last")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process responders: liars must be random or first, got 'last'
    """
    whole("process responders: f", f, 0)
    choice("process responders: liars", liars, ("random", "first"))
    first = liars == "first"

    def bind(ground: Ground) -> Step:
        quick = ground.lies if first else np.zeros(ground.n, np.bool_)

        def step(meeting: Meeting, round: int) -> Meeting:
            links = meeting.links
            start, sender = np.empty_like(links.start), np.empty_like(links.sender)
            count = _wait(links.start, links.sender, quick, ground.key, round, f, start, sender)
            return met(listed(start, sender, count), meeting.active)

        return step

    return Process(
        "responders",
        bind,
        options={"f": f, "liars": liars},
        degree=lambda degree: np.maximum(degree - f, 0),
        counts=lambda counts: counts.less(f, liars_first=first),
        knows_liars=first,
    )


@exact
def _wait(start: Any, sender: Any, quick: Any, key: Any, round: Any, f: Any, new_start: Any, new_sender: Any) -> Any:
    count = 0
    new_start[0] = 0
    missing = np.empty(f, np.int64)
    for receiver in range(len(start) - 1):
        slow = 0
        for entry in range(start[receiver], start[receiver + 1]):
            slow += not quick[sender[entry]]
        size = min(slow, f)
        draw_places(rng.stream(key, receiver, round), slow, size, missing)
        fast_left = f - size  # with too few honest neighbours the last of the liars are left out
        fast = start[receiver + 1] - start[receiver] - slow
        place, at, seen = 0, 0, 0
        for entry in range(start[receiver], start[receiver + 1]):
            if quick[sender[entry]]:
                seen += 1
                left_out = seen > fast - fast_left
            else:
                left_out = at < size and missing[at] == place
                at += left_out
                place += 1
            if not left_out:
                new_sender[count] = sender[entry]
                count += 1
        new_start[receiver + 1] = count
    return count

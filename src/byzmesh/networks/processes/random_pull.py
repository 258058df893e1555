"""Random pulls: each worker asks s of its neighbours, drawn anew in every round.

On the complete graph these are s of all others (epidemic learning; the setting of Byzantine robustness by random
pulls). Links are directed: being asked does not mean asking. A round has n s messages.

The s are drawn without replacement by Floyd's algorithm, so a round costs O(n s^2), however many neighbours there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import whole
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, met, processes


@processes.register("random-pull", aliases=("pull",))
def random_pull(s: int = 3) -> Process:
    """Each worker hears s of its neighbours, drawn uniformly in each round; all of them if it has fewer.

    >>> random_pull(s=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process random-pull: s must be a whole number of at least 1, got 0
    """
    whole("process random-pull: s", s, 1)

    def bind(ground: Ground) -> Step:
        def step(meeting: Meeting, round: int) -> Meeting:
            links = meeting.links
            start = np.empty_like(links.start)
            sender = np.empty(min(len(links.sender), ground.n * s), np.int64)
            count = _pull(links.start, links.sender, ground.key, round, s, start, sender)
            return met(listed(start, sender, count), meeting.active)

        return step

    return Process(
        "random-pull",
        bind,
        options={"s": s},
        degree=lambda degree: np.minimum(degree, s),
        counts=lambda counts: counts.drawn(s),
    )


@exact
def draw_places(state: Any, total: Any, size: Any, out: Any) -> None:
    """`size` different numbers below `total`, ascending, into `out`: every subset is equally likely."""
    for done in range(size):
        last = total - size + done
        place = rng.below(state, done, last + 1)
        spot = done
        while spot > 0 and out[spot - 1] >= place:
            spot -= 1
        if spot < done and out[spot] == place:
            out[done] = last  # taken: Floyd's algorithm takes the newcomer, which is larger than all
        else:
            for move in range(done, spot, -1):
                out[move] = out[move - 1]
            out[spot] = place


@exact
def _pull(start: Any, sender: Any, key: Any, round: Any, s: Any, new_start: Any, new_sender: Any) -> Any:
    count = 0
    new_start[0] = 0
    places = np.empty(s, np.int64)
    for receiver in range(len(start) - 1):
        degree = start[receiver + 1] - start[receiver]
        size = min(degree, s)
        draw_places(rng.stream(key, receiver, round), degree, size, places)
        for place in range(size):
            new_sender[count] = sender[start[receiver] + places[place]]
            count += 1
        new_start[receiver + 1] = count
    return count

"""Matchings: in every round each worker exchanges with at most one neighbour, which exchanges with it.

The workers are taken in a random order; each that has no partner yet takes one of its neighbours without a partner,
drawn uniformly. Nobody whose neighbour is also left over stays alone: the matching is maximal. On a complete graph of
even size it is perfect and uniform among all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, met, processes


@processes.register("matching", aliases=("pairs",))
def matching() -> Process:
    """One partner per worker and round, among the neighbours linked in both directions; somebody may be left over.

    >>> matching().options
    {}
    """

    def bind(ground: Ground) -> Step:
        def step(meeting: Meeting, round: int) -> Meeting:
            links = meeting.links
            start, sender = np.empty_like(links.start), np.empty(ground.n, np.int64)
            count = _match(links.start, links.sender, ground.key, round, start, sender)
            return met(listed(start, sender, count), meeting.active)

        return step

    return Process(
        "matching",
        bind,
        degree=lambda degree: np.minimum(degree, 1),
        counts=lambda counts: counts.one_at_worst(),
        shared=True,
    )


@exact
def _hears(start: Any, sender: Any, receiver: Any, wanted: Any) -> Any:
    low, high = start[receiver], start[receiver + 1]
    while low < high:
        middle = (low + high) // 2
        if sender[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < start[receiver + 1] and sender[low] == wanted


@exact
def _match(start: Any, sender: Any, key: Any, round: Any, new_start: Any, new_sender: Any) -> Any:
    n = len(start) - 1
    order, partner = np.arange(n), np.full(n, -1, np.int64)
    state = rng.stream(key, n, round)
    for last in range(n - 1, 0, -1):
        place = rng.below(state, last, last + 1)
        order[last], order[place] = order[place], order[last]
    free = np.empty(n, np.int64)
    for worker in order:
        if partner[worker] >= 0:
            continue
        count = 0
        for entry in range(start[worker], start[worker + 1]):
            other = sender[entry]
            if partner[other] < 0 and _hears(start, sender, other, worker):
                free[count] = other
                count += 1
        if count:
            chosen = free[rng.below(rng.stream(key, worker, round), 0, count)]
            partner[worker], partner[chosen] = chosen, worker
    paired = 0
    new_start[0] = 0
    for node in range(n):
        if partner[node] >= 0:
            new_sender[paired] = partner[node]
            paired += 1
        new_start[node + 1] = paired
    return paired

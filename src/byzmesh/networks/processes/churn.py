"""Workers that come and go: an on-off Markov chain per worker.

    on -> off with probability 1 / up in each round, off -> on with probability 1 / down

so that times on and off are geometric with means `up` and `down` rounds. The chain starts in its stationary
distribution: on with probability up / (up + down), in round 0 and in every other. A round is computed from the one
before; the chain is walked again from round 0 for a round that lies behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import at_least, choice
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, awake, processes
from byzmesh.networks.processes.sleep import LIARS, sleeping


@processes.register("churn")
def churn(up: float = 50.0, down: float = 10.0, liars: str = "asleep") -> Process:
    """Each worker is on for `up` rounds and off for `down` on average; liars="awake": liars are always on.

    >>> churn(up=0.5)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process churn: up must be a number of at least 1, got 0.5
    """
    at_least("process churn: up", up, 1)
    at_least("process churn: down", down, 1)
    choice("process churn: liars", liars, LIARS)

    def bind(ground: Ground) -> Step:
        on, reached = np.empty(ground.n, np.bool_), [-1]

        def step(meeting: Meeting, round: int) -> Meeting:
            _walk(on, reached[0] if reached[0] <= round else -1, round, ground.key, up, down)
            reached[0] = round
            return awake(meeting, on | ground.lies if liars == "awake" else on.copy())

        return step

    options = {"up": up, "down": down, "liars": liars}
    return sleeping("churn", bind, up / (up + down), options, remembers=True)


@exact
def _walk(on: Any, reached: Any, round: Any, key: Any, up: Any, down: Any) -> None:
    for worker in range(len(on)):
        for number in range(reached + 1, round + 1):
            chance = rng.unit(rng.stream(key, worker, number), 0)
            if number == 0:
                on[worker] = chance * (up + down) < up
            elif on[worker]:
                on[worker] = chance * up >= 1.0
            else:
                on[worker] = chance * down < 1.0

"""Workers that sleep: in each round with probability p, independently of the round before."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import choice, fraction
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, awake, processes

LIARS = ("asleep", "awake")


@processes.register("sleep")
def sleep(p: float = 0.1, liars: str = "asleep") -> Process:
    """Each worker sleeps with probability p: no gradient, no message, no aggregation.

    With liars="awake" no liar ever sleeps; it lies in every round.

    >>> sleep(liars="maybe")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process sleep: liars must be asleep or awake, got 'maybe'
    """
    fraction("process sleep: p", p)
    choice("process sleep: liars", liars, LIARS)

    def bind(ground: Ground) -> Step:
        def step(meeting: Meeting, round: int) -> Meeting:
            up = np.empty(ground.n, np.bool_)
            _up(ground.key, round, p, up)
            return awake(meeting, up | ground.lies if liars == "awake" else up)

        return step

    return sleeping("sleep", bind, 1.0 - p, {"p": p, "liars": liars})


def sleeping(name: str, bind: Any, up: float, options: dict[str, Any], *, remembers: bool = False) -> Process:
    """A process in which every worker is awake with this probability; `options` have `liars`."""
    lying = 1.0 if options["liars"] == "awake" else up
    return Process(
        name,
        bind,
        options=options,
        counts=lambda counts: counts.thinned(lying, up),
        shared=True,
        recurs=True,
        remembers=remembers,
        knows_liars=options["liars"] == "awake",
    )


@exact
def _up(key: Any, round: Any, p: Any, up: Any) -> None:
    for worker in range(len(up)):
        up[worker] = rng.unit(rng.stream(key, worker, round), 0) >= p

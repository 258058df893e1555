"""Workers that move: points in the unit square, linked to all within a radius.

Each starts at a random place, moves straight in a random direction by `speed` in each round, and is reflected at the
border. Its place is a function of the round, not of the round before, and uniform in the square in every round: so two
workers are linked with probability pi r^2 - 8 r^3 / 3 + r^4 / 2, for r <= 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import at_least, positive
from byzmesh.compiled import exact
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, listed, met, processes
from byzmesh.types import Floats


@processes.register("mobile")
def mobile(radius: float = 0.4, speed: float = 0.02) -> Process:
    """Points moving in a unit square, linked within `radius`, whatever the network's own links are.

    >>> mobile(radius=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process mobile: radius must be a positive number, got 0
    """
    positive("process mobile: radius", radius)
    at_least("process mobile: speed", speed, 0)

    def where(ground: Ground) -> Callable[[int], Floats]:
        first, direction = paths(ground.key, ground.n, speed)
        return lambda round: places(first, direction, round)

    def bind(ground: Ground) -> Step:
        at = where(ground)

        def step(meeting: Meeting, round: int) -> Meeting:
            start = np.zeros(ground.n + 1, np.int64)
            spots = at(round)
            sender = np.empty(_near(spots, radius, start), np.int64)
            _list_near(spots, radius, sender)
            return met(listed(start, sender, len(sender)), meeting.active)

        return step

    options = {"radius": radius, "speed": speed}
    return Process(
        "mobile", bind, options=options, replaces=True, remembers=True, degree=lambda degree: None, places=where
    )


def paths(key: Any, n: int, speed: float) -> tuple[Floats, Floats]:
    """(n, 2) first places and (n, 2) movement per round of the workers."""
    draws = rng.uniforms(key, np.arange(n), 0, 3)
    angle = 2.0 * np.pi * draws[:, 2]
    return draws[:, :2], speed * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def places(first: Floats, direction: Floats, round: int) -> Floats:
    """(n, 2) where the workers are in a round: straight paths, folded back into the square.

    >>> places(np.array([[0.9, 0.5]]), np.array([[0.2, 0.0]]), 1).round(3)
    array([[0.9, 0.5]])
    """
    unfolded = np.mod(first + round * direction, 2.0)
    folded: Floats = np.where(unfolded > 1.0, 2.0 - unfolded, unfolded)
    return folded


@exact
def _near(spots: Any, radius: Any, start: Any) -> Any:
    n = len(spots)
    for i in range(n):
        for j in range(i):
            if (spots[i, 0] - spots[j, 0]) ** 2 + (spots[i, 1] - spots[j, 1]) ** 2 <= radius * radius:
                start[i + 1] += 1
                start[j + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    return start[n]


@exact
def _list_near(spots: Any, radius: Any, sender: Any) -> None:
    count = 0
    for i in range(len(spots)):
        for j in range(len(spots)):
            apart = (spots[i, 0] - spots[j, 0]) ** 2 + (spots[i, 1] - spots[j, 1]) ** 2
            if i != j and apart <= radius * radius:
                sender[count] = j
                count += 1

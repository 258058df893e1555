"""Where the search for bad inputs begins: arrangements that are known to hurt rules, and random ones.

Honest points:  all equal (a rule that moves then has no contraction at all); two clusters of every size (the two-castle
                example; majorities and medians); equally spaced on a line; Gaussian.
Lies:           equal to an honest point; at the virtual average; on the line of the honest points, inside, at moderate
                distance beyond and far away; half on each side; scattered.
"""

from __future__ import annotations

import numpy as np

from byzmesh.theory.search.game import Game, average
from byzmesh.types import Floats

_SPOTS = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, 1.5, 1e3)
_CLUSTERS = 12
AGREEING = len(_SPOTS)
"""In this many of the first structured starts all honest points are equal, if somebody lies."""


def structured_starts(game: Game, dimension: int) -> Floats:
    """(C, K, D) arrangements on a line; for D >= 2 also on every axis at once, and with the lies off the line."""
    honest, liars = np.flatnonzero(~game.lying), np.flatnonzero(game.lying)
    count = len(honest)
    arrangements = [np.zeros(count), np.linspace(0.0, 1.0, count), np.linspace(1.0, 0.0, count)]
    sizes = np.unique(np.linspace(1, count - 1, min(count - 1, _CLUSTERS)).round()) if count > 1 else np.zeros(0)
    arrangements += [(np.arange(count) >= size).astype(np.float64) for size in sizes]
    patterns = [np.full(len(liars), spot) for spot in _SPOTS] if len(liars) else [np.zeros(0)]
    if len(liars) > 1:
        patterns += [np.where(np.arange(len(liars)) % 2, 1.0 + far, -far) for far in (0.0, 0.5, 1.0)]
    truth = np.repeat(np.stack(arrangements), len(patterns), axis=0)
    lies = np.tile(np.stack(patterns), (len(arrangements), 1))
    points = np.zeros((3, len(truth), len(game.sender), dimension))
    points[0][:, honest, 0] = points[2][:, honest, 0] = truth
    points[0][:, liars, 0] = points[2][:, liars, -1] = lies
    for axis in range(dimension):
        # Shifted by a cluster's size per axis, so that no honest point is at the edge of all axes: medians fail there.
        turned = [np.roll(arrangement, axis * int(np.sum(arrangement < 0.5))) for arrangement in arrangements]
        points[1][:, honest, axis] = np.repeat(np.stack(turned), len(patterns), axis=0)
        points[1][:, liars, axis] = lies
    return points[: 1 if dimension == 1 else 3].reshape(-1, len(game.sender), dimension)


def random_starts(game: Game, dimension: int, count: int, draw: np.random.Generator) -> Floats:
    """(C, K, D) Gaussian or clustered honest points; lies around their mean at distances from 0.1 to 30."""
    points = draw.normal(size=(count, len(game.sender), dimension))
    clustered = draw.random(count) < 0.5
    points[clustered] = np.sign(points[clustered])
    centre = average(game, points)
    distance = 10.0 ** draw.uniform(-1.0, 1.5, (count, 1, 1))
    together = draw.random((count, 1, 1)) < 0.5
    liars = np.flatnonzero(game.lying)
    shift = draw.normal(size=(count, len(liars), dimension))
    shift = np.where(together, shift[:, :1], shift)
    points[:, liars] = centre[:, None] + distance * shift
    copies = np.flatnonzero(draw.random(count) < 0.2)
    victims = draw.choice(np.flatnonzero(~game.lying), len(copies))
    points[np.ix_(copies, liars)] = points[copies, victims][:, None]
    return points

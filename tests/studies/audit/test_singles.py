"""A lie is taken as what a worker alone has is taken (unavoidable.py): asked of every rule it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.round import Round
from byzmesh.rules.base import rules

HONEST, LIES = 8, 2
"""Neighbours of each kind, as on the two-castle graph."""
SINGLES = HONEST + LIES
APART = {"bucketing", "ByRDiE"}
"""Draws groups at random; works on one coordinate per round, and so knows coordinates."""
SEEN = [e.name for e in bm.list_rules() if not rules.build(e.name).needs_loss and e.name not in APART]
BY_DISTANCE = [name for name in SEEN if rules.build(name).coefficients is not None]


def taken(
    rule: Any,
    *,
    far: float,
    lie: float,
    f: int = 2,
    turned: bool = False,
    origin: float = 3.0,
    orders: int = SINGLES,
) -> np.ndarray:
    """(10,) what is taken of each neighbour, the liars last, on average over so many orders: over all, everywhere once.

    Everybody is at a coordinate of its own, `far` from where all began, the liars `lie` times as far; all began at a
    random point, `origin` from zero in each coordinate or so.
    """
    size = 1 + SINGLES
    basis = np.eye(2 * size)
    if turned:
        basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=basis.shape))
    length = far * np.where(np.arange(size) <= HONEST, 1.0, lie)
    centre = origin * np.random.default_rng(2).normal(size=2 * size)
    points = centre + length[:, None] * basis[:size]
    total = np.zeros(size)
    for shift in range(orders):
        order = 1 + np.roll(np.arange(size - 1), shift)
        at = Round(number=50, total=100, step_size=0.1, seed=shift)
        out = bm.aggregate(rule, points[0], points[order], f=f, round=at, previous=centre.copy())
        total += basis[:size] @ (out - centre) / length
    return np.asarray(total[1:] / orders)


@pytest.mark.parametrize(("far", "f", "origin"), [(0.01, 2, 0.0), (0.01, 2, 3.0), (1.0, 0, 3.0), (30.0, 2, 3.0)])
@pytest.mark.parametrize("name", SEEN)
def test_a_lie_is_taken_as_a_single_worker_is(name: str, far: float, f: int, origin: float) -> None:
    assert np.ptp(taken(name, far=far, lie=1.0, f=f, origin=origin)) < 1e-9


def test_without_ties_it_holds_wherever_everybody_sits() -> None:
    """Over all orders a rule by distance takes the same of everybody, whatever it is: not so in a single order."""

    def first(own: Any, received: Any, weights: Any, f: int) -> Any:
        return own + 0.5 * (received[0] - own)

    def alike(rule: Any, orders: int) -> bool:
        return bool(np.ptp(taken(rule, far=3.0, lie=1.0, orders=orders)) < 1e-9)

    holds = {name for name in SEEN if alike(name, 1)}
    assert holds >= {"WeiMean", "Reprieve", "CC", "SCC", "GeoMed", "Leash", "DRSA", "TriMean", "CooMed"}
    assert alike(bm.rule(first), SINGLES) and not alike(bm.rule(first), 1), "the mutant"


@pytest.mark.parametrize("name", BY_DISTANCE)
def test_by_distance_a_lie_may_point_anywhere_and_comes_a_little_nearer(name: str) -> None:
    share = taken(name, far=3.0, lie=0.999, turned=True)
    assert share[HONEST:].mean() >= 0.99 * share[:HONEST].mean()


def test_who_takes_nothing_of_a_single_worker() -> None:
    ignored = {name for name in SEEN if taken(name, far=3.0, lie=1.0).max() < 1e-9}
    assert ignored >= {"TriMean", "CooMed", "MeaMed", "NoComm"}
    assert not ignored & {"WeiMean", "IOS", "FABA", "Reprieve", "Tether", "CC", "SCC", "GeoMed", "Leash", "DRSA"}


def test_a_rule_that_knows_coordinates_is_not_meant() -> None:
    """The mutant: what treats the first coordinates otherwise can tell a lie from a worker."""

    def knows(own: Any, received: Any, weights: Any, f: int) -> Any:
        known = np.where(np.arange(own.size) <= HONEST, 1.0, 0.0)
        return own + known * (received - own).mean(axis=0)

    share = taken(bm.rule(knows), far=1.0, lie=1.0)
    assert share[HONEST:].max() < 1e-9 and share[:HONEST].min() > 0.05


def test_a_rule_that_does_not_commute_with_translations_is_not_meant() -> None:
    """It commutes with exchanging coordinates, and knows them all the same by their values where all began."""

    def knows(own: Any, received: Any, weights: Any, f: int) -> Any:
        inbox = np.vstack([own[None], received])
        return np.where(np.abs(own) > 3.0, np.median(inbox, axis=0), inbox.mean(axis=0))

    alike, apart = (taken(bm.rule(knows), far=1e-3, lie=1.0, origin=origin) for origin in (0.0, 3.0))
    assert np.ptp(alike) < 1e-9 and np.ptp(apart) > 0.05

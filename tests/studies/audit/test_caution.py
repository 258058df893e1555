"""Caution has its price: who resists f liars ignores f workers that might be liars (unavoidable.py)."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.rules.base import rules
from byzmesh.rules.contraction import Neighbourhoods

D, F = 10, 3
"""Neighbours, and how many of them are unlike the others."""


def proved(name: str) -> float:
    """What the rule declares as proved about its contraction constant among so many neighbours."""
    contraction = rules.build(name).contraction
    if contraction is None or rules.build(name).largest_f(D) < F:
        return np.nan
    near = Neighbourhoods(
        neighbours=np.array([D]),
        lying=np.array([F]),
        f=np.array([F]),
        weight=np.full((1, D), 1.0 / (D + 1)),
        lying_weight=np.array([F / (D + 1)]),
    )
    return float(contraction.bound(near)[0])


RESILIENT = [entry.name for entry in bm.list_rules() if np.isfinite(proved(entry.name))]
MOVED = ["WeiMean", "CC", "SCC"]
"""For these it is proved that there is no bound."""


def pulled(name: str, away: float) -> float:
    """How far three of ten neighbours that are `away`, wherever they sit, pull a worker that agrees with the others."""
    like = np.arange(4.0)
    received = np.vstack([np.tile(like, (D - F, 1)), like + away * np.eye(4)[:F]])
    orders = [np.random.default_rng(seed).permutation(D) for seed in range(5)]
    return max(float(np.abs(bm.aggregate(name, like, received[order], f=F) - like).max()) for order in orders)


def test_which_rules_this_is_about() -> None:
    assert set(RESILIENT) >= {"IOS", "FABA", "NNA", "Reprieve", "Tether", "CS+", "CAF", "SMEA", "GTS", "LazyIOS"}
    assert [proved(name) for name in MOVED] == [np.inf] * len(MOVED)


@pytest.mark.parametrize("name", [*RESILIENT, "TriMean", "CooMed", "Krum", "NNM"])
def test_a_resilient_rule_ignores_the_three_whoever_they_are(name: str) -> None:
    assert max(pulled(name, away) for away in (1e-3, 1.0, 1e3)) < 1e-12


@pytest.mark.parametrize("name", MOVED)
def test_a_rule_that_does_not_ignore_them_is_not_resilient(name: str) -> None:
    """The mutant of the theorem: what takes their data in can be led away by them."""
    assert pulled(name, 0.1) > 0.005


@pytest.mark.parametrize(("name", "expected"), [("WeiMean", 3 / 12), ("IOS", 0.0), ("TriMean", 0.0), ("NNA", 0.0)])
def test_nobody_lies_and_a_quarter_of_the_data_is_lost(name: str, expected: float) -> None:
    """Minima of three workers at 1, of nine at 0: the nine end at the mean, 1/4, or as if the three were not."""
    targets = np.repeat([1.0, 0.0], [3, 9])[:, None]
    run = bm.simulate(
        problem={"name": "quadratic", "targets": targets.tolist()},
        network={"name": "paper/two-castle", "byzantine": []},
        rule=name,
        attack="none",
        f="tolerable",
        step={"name": "constant", "a": 0.05},
        local={"decay": 0.0},
        rounds=200,
        dtype="float64",
    )
    assert np.asarray(run.models)[3:] == pytest.approx(expected, abs=0.02)

"""Lies tried on sorted honest values do what the rule itself makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.parts import BLOCK
from byzmesh.attacks.rank_search import MOST, ranked_damage
from byzmesh.errors import InfeasibleBound
from byzmesh.simulation.exchange import Exchange, scene_of
from byzmesh.simulation.trials import ranks_of

RULES: list[Any] = ["TriMean", "CooMed", {"name": "CooMed", "even": "lower"}]


def trials(rule: Any, seed: int, dtype: type, columns: int, ties: bool) -> int:
    """Compare some lies on a random network; how many victims had several liars."""
    random = np.random.default_rng(seed)
    nodes, liars = int(random.integers(5, 14)), int(random.integers(1, 5))
    liars = min(liars, nodes - 2)
    byzantine = random.choice(nodes, liars, replace=False).tolist()
    network = bm.network("erdos-renyi", n=nodes, p=0.7, seed=seed, byzantine=byzantine)
    f: Any = int(random.integers(0, 4)) if random.random() < 0.5 else "exact"
    made, scene = bm.rule(rule), scene_of(network)
    models = random.normal(size=(len(network.honest), columns))
    models = np.round(models).astype(dtype) if ties else models.astype(dtype)
    bound = network.bounds(f, made.largest_f)
    ranks = ranks_of(made, Exchange(network), scene, bound)
    assert ranks is not None
    victims = len(scene.victims)
    centre: Any = random.normal(size=(victims, columns)).astype(dtype)
    messages: Any = (3.0 * random.normal(size=(3, victims, columns))).astype(dtype)
    which, factor = random.integers(0, 3, (4, victims)), random.choice([0.0, 0.3, 1.0, 30.0], (4, victims))
    for goal in (None, 1):
        done = ranked_damage(models, ranks, centre, messages, goal, which, factor)
        for trial in range(4):
            told = messages[which[trial], np.arange(victims)]
            lies = (centre + factor[trial][:, None] * (told - centre)).astype(dtype)
            forged = bm.Forged(scene.liar, scene.victim, scene.place, models, rows=lies)
            try:
                after = np.asarray(bm.aggregate_all(rule, network, models, forged, f=f).models)
            except InfeasibleBound:
                return 0
            moved = (after[scene.victims] - centre).astype(np.float64)
            along = moved if goal is None else (messages[goal] - centre).astype(np.float64)
            expected = (moved * along).sum(axis=1)
            scale = np.linalg.norm(moved, axis=1) * np.linalg.norm(along, axis=1) + 1e-12
            got = done[trial] ** 2 if goal is None else done[trial]
            assert (np.abs(got - expected) <= (2e-5 if dtype is np.float32 else 1e-11) * (1.0 + scale)).all()
    return int((ranks.lies > 1).sum())


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_trial_is_what_the_rule_does(rule: Any, dtype: type) -> None:
    several = sum(trials(rule, seed, dtype, columns=7, ties=seed % 2 == 0) for seed in range(60))
    assert several > 50
    assert trials(rule, 3, dtype, columns=2 * BLOCK + 3, ties=False) >= 0


def test_a_victim_without_enough_neighbours_keeps_its_model() -> None:
    """Among four workers one may lie; if two do, f = 2 of three neighbours is too many for a trimmed mean."""
    network = bm.network("complete", n=4, byzantine=[2, 3])
    rule, scene = bm.rule("TriMean"), scene_of(network)
    ranks = ranks_of(rule, Exchange(network), scene, np.array([2, 2]))
    assert ranks is not None and (ranks.lower == ranks.upper).all()
    models, messages = np.array([[1.0], [5.0]]), np.full((1, 2, 1), 100.0)
    for apart in (True, False):
        kept = replace(ranks, apart=apart)
        trial = (np.zeros((1, 2), np.int64), np.ones((1, 2)))
        done = ranked_damage(models, kept, np.zeros((2, 1)), messages, None, *trial)
        assert done.tolist() == [[1.0, 5.0]]


def test_other_rules_and_large_inboxes_are_left_to_the_rule() -> None:
    small, large = bm.network("paper/two-castle"), bm.network("complete", n=MOST + 4, byzantine=[0])
    for rule, network in (("IOS", small), ("MeaMed", small), ("TriMean", large)):
        f = network.bounds("exact", bm.rule(rule).largest_f)
        assert ranks_of(bm.rule(rule), Exchange(network), scene_of(network), f) is None

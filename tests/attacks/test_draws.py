"""Attacks that draw: what they draw from, how often, and that (seed, round, pair) decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.attacks import Forged, attack
from tests.attacks.oracles import plain_mean, weighted_mean
from tests.attacks.scenes import World, frozen_models, make_world, random_world, star, two_castle
from tests.attacks.test_oracles import forge


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("options", "std"), [({}, 1.0), ({"std": 30.0, "mean": "plain"}, 30.0)])
def test_gaussian_is_noise_around_the_mean(dtype: type, options: dict[str, Any], std: float) -> None:
    world = random_world(2)
    models = frozen_models(world, 20_000, dtype=dtype)
    x = {n: models[row].astype(np.float64) for row, n in enumerate(world.honest)}
    forged = forge(attack("gaussian", **options), world, models)
    assert len(forged.rows) == len(world.pairs()) and forged.rows.dtype == dtype
    average = plain_mean if options else weighted_mean
    noise = np.stack([forged[b, n] - average(world, x, n, False) for b, n in world.pairs()]) / std
    assert np.abs(noise.mean(axis=1)).max() < 0.04
    assert np.abs(noise.std(axis=1) - 1).max() < 0.03
    correlation = np.corrcoef(noise)
    assert np.abs(correlation - np.eye(len(noise))).max() < 0.04, "liars, victims must draw independently"


@pytest.mark.parametrize("name", ["gaussian", "sample-duplicating"])
def test_rounds_and_seeds_differ_and_repeat(name: str) -> None:
    world = random_world(4, nodes=12, liars=4, probability=0.8)
    models = frozen_models(world, 8)
    messages = {
        (round, seed): forge(attack(name), world, models, round, seed).dense().tobytes()
        for round in (0, 1, 70_000)
        for seed in (0, 1, 2**40)
    }
    assert len(set(messages.values())) == 9
    assert forge(attack(name), world, models, 1, 1).dense().tobytes() == messages[1, 1]


@pytest.mark.parametrize("name", ["gaussian", "sample-duplicating"])
def test_another_liar_changes_nobody_elses_draw(name: str) -> None:
    """Node 5, linked to victim 0 only, joins: the other pairs' messages stay, up to the mean's new weights."""
    adjacency = ~np.eye(6, dtype=bool)
    adjacency[5, 1:] = adjacency[1:, 5] = False
    with_it = make_world(adjacency, [4, 5])
    without = make_world(adjacency[:5, :5], [4])
    options = {"mean": "plain"} if name == "gaussian" else {}
    models = frozen_models(without, 6)
    more = forge(attack(name, **options), with_it, models)
    fewer = forge(attack(name, **options), without, models)
    for n in range(4):
        np.testing.assert_allclose(more[4, n], fewer[4, n])


def copied(world: World, forged: Forged, models: np.ndarray, b: int, n: int) -> int:
    """The honest node whose model the liar sends to the victim."""
    found = np.flatnonzero((models == forged[b, n]).all(axis=1))
    assert len(found) == 1
    return world.honest[int(found[0])]


@pytest.mark.parametrize("together", [False, True])
def test_duplicates_are_uniform_over_honest_neighbours(together: bool) -> None:
    world = two_castle()
    models = frozen_models(world, 3)
    made = attack("sample-duplicating", together=together)
    rounds = 600
    agree, doubles = 0, 0
    counts = {n: dict.fromkeys(world.honest_neighbours(n), 0) for n in world.honest}
    for round in range(rounds):
        forged = forge(made, world, models, round)
        chosen = {(b, n): copied(world, forged, models, b, n) for b, n in world.pairs()}
        for (b, n), m in chosen.items():
            counts[n][m] += 1
            if b == 7 and (9, n) in chosen:
                doubles += 1
                agree += m == chosen[9, n]
    for n, count in counts.items():
        draws = rounds * (1 if together else len(world.lying_neighbours(n)))
        share = np.array(list(count.values())) / sum(count.values())
        expected = 1 / len(count)
        assert np.abs(share - expected).max() < 5 * np.sqrt(expected / draws)
    if together:
        assert agree == doubles
    else:
        assert 0.08 < agree / doubles < 0.18, "two independent draws from 7 or 8 neighbours"


def test_together_draws_differ_between_victims() -> None:
    world = make_world(~np.eye(12, dtype=bool), [0])
    models = frozen_models(world, 3)
    forged = forge(attack("sample-duplicating", together=True), world, models)
    assert len({copied(world, forged, models, 0, n) for n in world.honest}) > 3


def test_without_honest_neighbours_the_victims_own_model_is_all_there_is() -> None:
    world = star(4)
    models = frozen_models(world, 5)
    for name, options in [("sample-duplicating", {}), ("sample-duplicating", {"together": True}), ("ALIE", {})]:
        forged = forge(attack(name, **options), world, models)
        for row, n in enumerate(world.honest):
            np.testing.assert_array_equal(forged[0, n], models[row])

"""Every attack without draws equals its definition, pair by pair, in both precisions and both variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.attacks import Attack, Forged, attack, attacks
from tests.attacks.oracles import DETERMINISTIC, Oracle
from tests.attacks.scenes import World, frozen_models, random_world, scene_of, star, two_castle, view_of

WORLDS = [
    *(random_world(seed) for seed in range(6)),
    random_world(6, nodes=14, liars=5, probability=0.3),
    random_world(7, nodes=6, liars=4, probability=0.9),
    two_castle(),
    star(3),
]
IDS = [f"{name}-{'-'.join(map(str, options.values())) or 'text'}" for name, options, _ in DETERMINISTIC]


def forge(made: Attack, world: World, models: np.ndarray, round: int = 0, seed: int = 0) -> Forged:
    view = view_of(world, models, round, seed)
    return made.forge(view, made.init(view.scene))[0]


@pytest.mark.parametrize(("name", "options", "oracle"), DETERMINISTIC, ids=IDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-12)])
def test_equals_definition(name: str, options: dict[str, Any], oracle: Oracle, dtype: type, tolerance: float) -> None:
    for world in WORLDS:
        for dimension in (1, 37, 1100):
            models = frozen_models(world, dimension, seed=dimension, dtype=dtype)
            x = {n: models[row].astype(np.float64) for row, n in enumerate(world.honest)}
            forged = forge(attack(name, **options), world, models)
            dense = forged.dense()
            assert dense.dtype == dtype
            assert [(int(b), int(n)) for b, n in zip(forged.liar, forged.victim)] == world.pairs()
            for row, (b, n) in zip(forged.row, world.pairs()):
                wanted = oracle(world, x, n, b)
                scale = 1.0 + np.abs(wanted).max()
                np.testing.assert_allclose(dense[row], wanted, rtol=0, atol=tolerance * scale)
                np.testing.assert_allclose(forged[b, n], wanted, rtol=0, atol=tolerance * scale)


def test_published_options_are_the_tested_variants() -> None:
    published = {entry.name: dict(entry.published) for entry in attacks.entries() if entry.published}
    assert published == {
        "gaussian": {"std": 30.0, "mean": "plain"},
        "sign-flipping": {"own": True, "mean": "plain"},
        "isolation": {"own": True, "weights": "metropolis"},
        "sample-duplicating": {"together": True},
    }


def weighted_mean_of_inbox(world: World, weights: np.ndarray, models: np.ndarray, forged: Forged, n: int) -> np.ndarray:
    total = weights[n, n] * models[world.honest.index(n)]
    for m in world.honest_neighbours(n):
        total = total + weights[n, m] * models[world.honest.index(m)]
    for b in world.lying_neighbours(n):
        total = total + weights[n, b] * forged[b, n]
    return np.asarray(total)


@pytest.mark.parametrize("world", WORLDS[:9], ids=range(9))
def test_isolation_isolates_as_published_but_not_in_the_text(world: World) -> None:
    models = frozen_models(world, 20)
    published = forge(attack("isolation", own=True, weights="metropolis"), world, models)
    mixing = forge(attack("isolation", own=True), world, models)
    text = forge(attack("isolation"), world, models)
    victims = sorted({n for _, n in world.pairs()})
    assert victims
    for n in victims:
        own = models[world.honest.index(n)]
        np.testing.assert_allclose(weighted_mean_of_inbox(world, world.metropolis, models, published, n), own)
        np.testing.assert_allclose(weighted_mean_of_inbox(world, world.weights, models, mixing, n), own)
        missing = weighted_mean_of_inbox(world, world.weights, models, text, n) - own
        np.testing.assert_allclose(missing, world.weights[n, n] * own)
        assert np.linalg.norm(missing) > 0.1 * world.weights[n, n]


def test_dissensus_of_one_stops_a_weighted_mean() -> None:
    world = random_world(3)
    models = frozen_models(world, 12)
    forged = forge(attack("dissensus", eps=1.0), world, models)
    for n in sorted({n for _, n in world.pairs()}):
        own = models[world.honest.index(n)]
        np.testing.assert_allclose(weighted_mean_of_inbox(world, world.weights, models, forged, n), own)


def test_linear_attacks_are_combinations_made_once() -> None:
    world = two_castle()
    models = frozen_models(world, 5)
    for name in ("sign-flipping", "isolation", "IPM", "dissensus", "zero"):
        made = attack(name)
        view = view_of(world, models)
        state = made.init(view.scene)
        forged, after = made.forge(view, state)
        assert after is state
        assert forged.rows is None and forged.combination is not None
        assert forged.combination.index.shape == forged.combination.coefficient.shape
        assert forged.combination.index.min() >= 0 and forged.combination.index.max() < len(models)
        wide = np.zeros((len(forged.combination.index), 5))
        for q, (rows, coefficients) in enumerate(zip(forged.combination.index, forged.combination.coefficient)):
            for row, coefficient in zip(rows, coefficients):
                wide[q] += coefficient * models[row]
        np.testing.assert_allclose(forged.dense(), wide, atol=1e-12)


def test_mimic_keeps_its_worker() -> None:
    world = two_castle()
    made = attack("mimic")
    scene = scene_of(world)
    first, later = frozen_models(world, 30, seed=1), frozen_models(world, 30, seed=2)
    forged, state = made.forge(view_of(world, first), made.init(scene))
    chosen = int(np.flatnonzero((first == forged.dense()[0]).all(axis=1))[0])
    fresh, _ = made.forge(view_of(world, later), made.init(scene))
    assert not np.array_equal(fresh.dense()[0], later[chosen]), "choose models on which the choice would differ"
    kept, again = made.forge(view_of(world, later, round=1), state)
    np.testing.assert_array_equal(kept.dense()[0], later[chosen])
    assert again == state


def test_mimic_chooses_among_models_whose_squares_overflow() -> None:
    world = two_castle()
    models = frozen_models(world, 30, dtype=np.float32)
    usual, large = (attack("mimic").forge(view_of(world, np.ldexp(models, by)), -1)[1] for by in (0, 65))
    assert usual == large


def test_mimic_breaks_ties_by_the_first() -> None:
    world = two_castle(byzantine=tuple(range(2, 12)))
    models = np.array([[1.0, 2.0], [3.0, 7.0]])
    assert attack("mimic").forge(view_of(world, models), -1)[1] == 0

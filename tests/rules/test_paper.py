"""The paper's worked examples and Theorem 3, on the rules themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.rules.base import Rule, rules
from tests.rules.test_contract import ios_with, nearest_cut, nothing_cut


def rounds(rule: str, count: int, **options: Any) -> np.ndarray:
    """The two castles of Section IV: each starts at its own minimiser, gradients are zero there."""
    network = bm.network("paper/two-castle-3")
    models = np.repeat([[1.0], [-1.0]], 3, axis=0)
    for _ in range(count):
        models = bm.aggregate_all(rule, network, models, f=0, **options).models
    return models[:, 0]


@pytest.mark.parametrize("rule", ["CooMed", "GeoMed", "Krum"])
def test_two_castles_stay_in_disagreement(rule: str) -> None:
    # Weiszfeld stops 1e-5 short of the exact median in each round
    np.testing.assert_allclose(rounds(rule, 50), [1, 1, 1, -1, -1, -1], atol=50 * 2e-5)


@pytest.mark.parametrize("rule", ["IOS", "WeiMean", "FABA", "SCC"])
def test_two_castles_agree(rule: str) -> None:
    options = {"tau": 10.0} if rule == "SCC" else {}
    np.testing.assert_allclose(rounds(rule, 50, **options), np.zeros(6), atol=1e-6)


@pytest.mark.parametrize("name", ["paper/two-castle", "paper/octopus", "paper/er-12", "paper/er-20-b4"])
def test_virtual_mixing_matrix_of_theorem_3(name: str) -> None:
    """With every liar cut, IOS = (x_bar - b x_n) / (1 - b), x_bar by the theorem's doubly stochastic W."""
    network = bm.network(name)
    models = np.random.default_rng(0).normal(size=(len(network.honest), 4))
    virtual = network.honest_mixing + np.diag(1.0 - network.honest_mixing.sum(axis=1))
    np.testing.assert_allclose(virtual.sum(axis=0), 1.0)
    lies = 1.0 - network.honest_mixing.sum(axis=1, keepdims=True)
    forged = bm.forge("huge", network, models)
    out = bm.aggregate_all("ios", network, models, forged)
    np.testing.assert_allclose(out.models, (virtual @ models - lies * models) / (1.0 - lies), rtol=1e-9, atol=1e-12)


def worst_ratio(rule: Rule, seed: int, tries: int) -> tuple[float, float]:
    """(largest ||A - x_bar|| / max ||x_m - x_bar|| found, Theorem 3's bound) for one worker with h < 1/3."""
    random = np.random.default_rng(seed)
    while True:
        neighbours, liars = int(random.integers(4, 12)), int(random.integers(1, 3))
        weights = random.uniform(0.5, 1.0, neighbours + 1)
        weights /= weights.sum()
        h = float(np.sort(weights[1:])[-liars:].sum())
        if h < 1.0 / 3.0:
            break
    worst = 0.0
    for attempt in range(tries):
        dimension = int(random.integers(1, 3))
        spread = random.choice([0.02, 1.0], size=(neighbours + 1, 1))
        vectors = spread * random.normal(size=(neighbours + 1, dimension))
        if attempt % 3 == 0:
            vectors = np.sign(vectors)
        virtual = weights.copy()
        virtual[0] += virtual[-liars:].sum()
        virtual[-liars:] = 0.0
        centre = virtual @ vectors
        honest = vectors[: neighbours + 1 - liars]
        reach = np.linalg.norm(honest - centre, axis=1).max()
        if reach < 1e-9:
            continue
        way = random.normal(size=(1, dimension))
        vectors[-liars:] = centre + random.choice([0.5, 1.0, 1.5, 2.0, 3.0, 8.0, 1e3]) * reach * way / np.linalg.norm(
            way
        )
        out = bm.aggregate(rule, vectors[0], vectors[1:], weights, f=liars)
        worst = max(worst, float(np.linalg.norm(out - centre) / reach))
    return worst, 12.0 * h / (1.0 - 3.0 * h)


@pytest.mark.parametrize("seed", range(12))
def test_theorem_3_is_not_beaten(seed: int) -> None:
    found, bound = worst_ratio(rules.build("IOS"), seed, 150)
    assert found <= bound


@pytest.mark.parametrize("mutant", [nothing_cut, nearest_cut], ids=lambda mutant: mutant.__name__)
def test_mutants_break_theorem_3(mutant: Any) -> None:
    beaten = 0
    for seed in range(12):
        found, bound = worst_ratio(ios_with(mutant), seed, 150)
        beaten += found > bound
    assert beaten >= 6

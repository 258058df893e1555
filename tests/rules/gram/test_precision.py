"""Near consensus: float32 models that differ by 1e-5 of their norm are treated as float64 would treat them."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from tests.rules.oracles import ORACLES

RULES = [
    "IOS",
    "FABA",
    "Krum",
    "MultiKrum",
    "GeoMed",
    "NNA",
    "MDA",
    "WeiMean",
    "TriMean",
    "CooMed",
    "MeaMed",
    "SCC",
    "CC",
]


@pytest.mark.parametrize("liar", [None, 1e6])
@pytest.mark.parametrize("name", RULES)
def test_near_consensus(name: str, liar: float | None) -> None:
    network = bm.network("paper/two-castle")
    random = np.random.default_rng(11)
    common = random.normal(size=7850)
    models = (common * (1.0 + 1e-5 * random.normal(size=(10, 7850)))).astype(np.float32)
    if liar is None:
        forged32 = bm.forge("alie", network, models)
        forged64 = bm.Forged(
            forged32.liar, forged32.victim, forged32.row, models, rows=forged32.rows.astype(np.float64)
        )
    else:
        rows = np.full((18, 7850), liar, np.float32) * random.choice([-1.0, 1.0], size=(18, 1)).astype(np.float32)
        pairs = bm.forge("alie", network, models)
        row = np.arange(len(pairs)) % 18
        forged32 = bm.Forged(pairs.liar, pairs.victim, row, models, rows=rows)
        forged64 = bm.Forged(pairs.liar, pairs.victim, row, models, rows=rows.astype(np.float64))
    single = bm.aggregate_all(name, network, models, forged32)
    double = bm.aggregate_all(name, network, models.astype(np.float64), forged64)
    if single.coefficients is not None:
        assert double.coefficients is not None
        np.testing.assert_array_equal(single.coefficients > 0, double.coefficients > 0)
    if name == "WeiMean" and liar is not None:
        return  # the result itself is at 1e6
    spread = np.linalg.norm(models.astype(np.float64) - common, axis=1).mean()
    error = np.linalg.norm(single.models.astype(np.float64) - double.models, axis=1).max()
    rounding = np.linalg.norm(common) * 2.0**-24  # the result is a float32 near `common`
    assert error <= 1e-3 * spread + 1.5 * rounding


def test_naive_float32_products_would_fail() -> None:
    """The reason for centring: the same numbers without it give other drops."""
    random = np.random.default_rng(11)
    common = random.normal(size=7850)
    models = (common * (1.0 + 1e-5 * random.normal(size=(10, 7850)))).astype(np.float32)
    gram = (models @ models.T).astype(np.float64)
    naive = np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram
    exact = ((models[:, None].astype(np.float64) - models[None]) ** 2).sum(axis=2)
    off = ~np.eye(10, dtype=bool)
    assert np.abs(naive[off] / exact[off] - 1.0).max() > 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_published_geomed_stays_on_a_model_that_the_mean_falls_on(dtype: type, far: float) -> None:
    """Isolation with equal weights: the mean of the inbox is its own model, known to inner products up to rounding."""
    network = bm.network("paper/two-castle")
    models: np.ndarray = (far + np.random.default_rng(1).normal(0.0, 6.0, (10, 7850))).astype(dtype)
    lies = bm.forge(bm.attack("isolation", own=True), network, models)
    for forged in (lies, bm.Forged(lies.liar, lies.victim, lies.row, models, rows=lies.dense())):
        moved = np.linalg.norm(bm.aggregate_all("GeoMed", network, models, forged, steps=80).models - models, axis=1)
        assert moved.max() <= 8 * np.finfo(dtype).eps * np.linalg.norm(models[0])


@pytest.mark.parametrize("steps", [None, 80])
@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e6), (np.float32, 1e12), (np.float64, 1e12)])
def test_geomed_between_opposite_liars(dtype: type, far: float, steps: int | None) -> None:
    """Two at +-L bring the mean near the honest models, whose distances are then below the rounding of L^2."""
    random = np.random.default_rng(2)
    honest = random.normal(size=(10, 50)) / np.sqrt(50)
    direction = random.normal(size=50) / np.sqrt(50)
    liars = np.array([far * direction, -far * direction, 1e-5 * far * random.normal(size=50)])
    received: np.ndarray = np.concatenate([honest[1:], liars]).astype(dtype)
    got = bm.aggregate("GeoMed", honest[0].astype(dtype), received, steps=steps)
    want = ORACLES["GeoMed"](honest[0].astype(dtype), received, None, 0, steps=80)
    assert np.linalg.norm(got - want) <= 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outer", ["NNM", "WeightedNNM"])
@pytest.mark.parametrize("inner", ["ClippedGossip", "RTC"])
def test_models_that_coincide_after_mixing_have_no_negative_distance(inner: str, outer: str, dtype: type) -> None:
    network = bm.network("paper/two-castle")
    for seed in range(5):
        models: np.ndarray = np.random.default_rng(seed).normal(size=(10, 50)).astype(dtype)
        lies = bm.forge(bm.attack("isolation", own=True), network, models)
        out = bm.aggregate_all({"name": outer, "inner": inner}, network, models, lies, f=2)
        assert np.isfinite(out.models).all()


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e4), (np.float32, 1e8), (np.float64, 1e8)])
@pytest.mark.parametrize("name", ["IOS", "NNA", "Krum", "WeiMean", "GeoMed", "ClippedGossip"])
def test_an_honest_worker_far_away_costs_the_others_no_digits(name: str, dtype: type, far: float) -> None:
    network = bm.network("paper/er-12")
    random = np.random.default_rng(3)
    models = (random.normal(size=(10, 200)) / np.sqrt(200)).astype(dtype)
    lost = 8  # worker 10
    models[lost] *= far
    lies = bm.forge("alie", network, models)
    out = bm.aggregate_all(name, network, models, lies, f=1).models
    row_of = {int(worker): row for row, worker in enumerate(network.honest)}
    for row, worker in enumerate(network.honest):
        near = network.neighbours(int(worker))
        inbox = [models[row_of[int(n)]] if int(n) in row_of else lies[int(n), int(worker)] for n in near]
        if row == lost or row_of.get(10) in [row_of.get(int(n)) for n in near]:
            continue
        weights = network.layout.weight[row, : len(inbox) + 1]
        want = ORACLES[name](models[row], np.array(inbox), weights, 1)
        np.testing.assert_allclose(out[row], want, rtol=0, atol=1e-3 if dtype is np.float32 else 1e-9)

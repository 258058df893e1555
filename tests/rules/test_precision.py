"""Near consensus: float32 models that differ by 1e-5 of their norm are treated as float64 would treat them."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm

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
def test_geomed_stays_on_a_model_that_the_mean_falls_on(dtype: type, far: float) -> None:
    """Isolation with equal weights: the mean of the inbox is the own model, known to inner products up to rounding."""
    network = bm.network("paper/two-castle")
    models = (far + np.random.default_rng(1).normal(0.0, 6.0, (10, 7850))).astype(dtype)
    lies = bm.forge(bm.attack("isolation", own=True), network, models)
    for forged in (lies, bm.Forged(lies.liar, lies.victim, lies.row, models, rows=lies.dense())):
        moved = np.linalg.norm(bm.aggregate_all("GeoMed", network, models, forged).models - models, axis=1)
        assert moved.max() <= 8 * np.finfo(dtype).eps * np.linalg.norm(models[0])

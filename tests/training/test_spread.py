"""Consensus error and disagreement against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.training.spread import spread


@settings(max_examples=40, deadline=None)
@given(
    workers=st.integers(1, 12),
    dimension=st.sampled_from([1, 5, 511, 512, 513, 2000]),
    centre=st.sampled_from([0.0, 1.0, 1e4]),
    width=st.sampled_from([1.0, 1e-4]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 99),
)
def test_spread_equals_numpy(workers: int, dimension: int, centre: float, width: float, dtype: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    models = (centre + width * generator.normal(size=(workers, dimension))).astype(dtype)
    variance = models.astype(np.float64).var(axis=0)
    error, gap = spread(models)
    assert error == pytest.approx(np.linalg.norm(variance), rel=1e-9, abs=1e-24 * centre**2)
    assert gap == pytest.approx(variance.sum(), rel=1e-9, abs=1e-24 * centre**2)
    assert error <= gap * (1 + 1e-12)
    assert gap <= math.sqrt(dimension) * error * (1 + 1e-12)


def test_disagreement_is_the_mean_squared_distance_to_the_mean() -> None:
    models = np.random.default_rng(3).normal(size=(7, 40))
    expected = np.mean(np.sum((models - models.mean(axis=0)) ** 2, axis=1))
    assert spread(models)[1] == pytest.approx(expected)
    assert spread(np.repeat(models[:1], 4, axis=0)) == pytest.approx((0.0, 0.0), abs=1e-30)
    models[2, 3] = np.nan
    assert math.isnan(spread(models)[1])

"""Counter-based draws: distribution, independence, and that they depend on their arguments alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from byzmesh import rng
from byzmesh.errors import ConfigError

KEY = rng.key(7, rng.ATTACK)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normals_have_the_moments_and_tails_of_a_normal(dtype: type) -> None:
    draws = np.concatenate([rng.normals(KEY, np.arange(20), k, 7850, dtype).ravel() for k in range(20)])
    assert draws.dtype == dtype
    wide = draws.astype(np.float64)
    count = len(wide)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(wide**power) - moment) < 4.5 * np.sqrt(variance / count), power
    for bound in (1.0, 3.0, 4.0):
        expected = 2 * stats.norm.sf(bound) * count
        assert abs(np.sum(np.abs(wide) > bound) - expected) < 5 * np.sqrt(expected), bound
    assert 4.5 < np.abs(wide).max() < 7
    assert stats.kstest(wide[::10], "norm").pvalue > 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normals_are_uncorrelated_across_rows_rounds_positions_and_keys(dtype: type) -> None:
    count = 20_000
    rows = rng.normals(KEY, np.arange(30), 3, count, dtype).astype(np.float64)
    rounds = np.stack([rng.normals(KEY, [3], k, count, dtype)[0] for k in range(30)]).astype(np.float64)
    keys = np.stack([rng.normals(rng.key(s, rng.ATTACK), [3], 3, count, dtype)[0] for s in range(30)])
    for block in (rows, rounds, keys.astype(np.float64), np.abs(rows), np.abs(rounds)):
        correlation = np.corrcoef(block)[np.triu_indices(30, 1)]
        assert np.abs(correlation).max() < 5 / np.sqrt(count)
    long = rng.normals(KEY, [0], 0, 400_000, dtype)[0].astype(np.float64)
    for series in (long, long**2 - 1):
        for lag in (1, 2, 7, 8, 16, 31, 32, 33, 63, 64, 65, 128):
            z = np.mean(series[lag:] * series[:-lag]) / np.var(series) * np.sqrt(len(series))
            assert abs(z) < 5, lag


def test_float32_and_float64_normals_follow_the_transform() -> None:
    """cos^2 + sin^2 = 1: the two halves of a block give back the radius, whose law is exponential."""
    for dtype in (np.float32, np.float64):
        block = rng.normals(KEY, [1], 0, 64 * 2000, dtype).astype(np.float64).reshape(-1, 2, 32)
        radius2 = (block**2).sum(axis=1).ravel()
        angle = np.arctan2(block[:, 1], block[:, 0]).ravel()
        assert stats.kstest(radius2 / 2, "expon").pvalue > 1e-4
        assert stats.kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-4


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(-(2**70), 2**70),
    ids=st.lists(st.integers(0, 2**62), min_size=1, max_size=6, unique=True),
    round=st.integers(0, 2**40),
    count=st.integers(0, 200),
)
def test_draws_depend_on_their_own_arguments_only(seed: int, ids: list[int], round: int, count: int) -> None:
    key = rng.key(seed, rng.RULE)
    for dtype in (np.float32, np.float64):
        together = rng.normals(key, ids, round, count, dtype)
        longer = rng.normals(key, ids[-1:], round, count + 70, dtype)
        np.testing.assert_array_equal(together[-1], longer[0, :count])
    np.testing.assert_array_equal(
        rng.integers(key, ids, round, count, 9)[-1], rng.integers(key, ids[-1:], round, count, 9)[0]
    )
    np.testing.assert_array_equal(
        rng.uniforms(key, ids, round, count)[-1], rng.uniforms(key, ids[-1:], round, count)[0]
    )


def test_streams_differ() -> None:
    streams = {int(rng.stream(KEY, n, k)) for n in range(300) for k in range(300)}
    assert len(streams) == 90_000
    keys = {int(rng.key(s, p, e)) for s in range(40) for p in range(8) for e in range(40)}
    assert len(keys) == 40 * 8 * 40
    assert rng.key(2**64, 1) != rng.key(0, 1)


@pytest.mark.parametrize("high", [1, 7, 32, 6000, 2**32 - 1])
def test_integers_are_uniform(high: int) -> None:
    draws = rng.integers(KEY, np.arange(200), 0, 500, high)
    assert draws.min() >= 0
    assert draws.max() < high
    cells = min(high, 50)
    counts = np.bincount(draws.ravel() * cells // high, minlength=cells)
    expected = (
        np.bincount(np.arange(high) * cells // high, minlength=cells) / high if high <= 6000 else np.full(50, 0.02)
    )
    if cells > 1:
        assert stats.chisquare(counts, expected * counts.sum()).pvalue > 1e-4


def test_integers_use_the_upper_word_of_the_product() -> None:
    state = rng.stream(KEY, 3, 4)
    for counter in range(20):
        bits = int(rng.mix(np.uint64((int(state) + counter * 0x9E3779B97F4A7C15) % 2**64)))
        assert rng.below(state, counter, 59_999) == bits * 59_999 >> 64


def test_uniforms_are_uniform() -> None:
    draws = rng.uniforms(KEY, np.arange(100), 2, 500).ravel()
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def test_output_array_is_used_and_rows_may_have_gaps() -> None:
    storage = np.zeros((4, 150), np.float32)
    returned = rng.normals(KEY, [1, 2, 3, 4], 0, 100, out=storage[:, :100])
    np.testing.assert_array_equal(storage[:, :100], rng.normals(KEY, [1, 2, 3, 4], 0, 100))
    assert returned.base is storage
    assert not storage[:, 100:].any()


def test_generator_is_a_function_of_its_key() -> None:
    first, second = rng.generator(1, rng.PARTITION, 5), rng.generator(1, rng.PARTITION, 5)
    assert first.random() == second.random()
    assert rng.generator(1, rng.PARTITION, 6).random() != rng.generator(1, rng.PARTITION, 5).random()


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="seed must be a whole number, got"):
        rng.key(1.5, rng.BATCH)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="high must be between 1"):
        rng.integers(KEY, [0], 0, 1, 0)
    with pytest.raises(ConfigError, match="float32 or float64, got float16"):
        rng.normals(KEY, [0], 0, 1, np.float16)

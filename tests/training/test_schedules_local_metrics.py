"""Schedules, local updates and metrics against their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.training.local import local_update
from byzmesh.training.metrics import consensus_error, disagreement, spread, summarise
from byzmesh.training.schedules import schedule, schedules


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (0.3, lambda k: 0.3),
        (2, lambda k: 2.0),
        ({"name": "constant", "a": 0.2}, lambda k: 0.2),
        ("inverse-sqrt", lambda k: 0.9 / math.sqrt(k + 1)),
        ({"name": "inverse-sqrt", "a": 0.5, "b": 4}, lambda k: 0.5 / math.sqrt(k + 4)),
        ({"name": "inverse", "a": 3, "b": 10}, lambda k: 3 / (k + 10)),
        ({"name": "step-decay", "a": 1.0, "factor": 0.5, "every": 10}, lambda k: 0.5 ** (k // 10)),
    ],
)
def test_schedules_follow_their_formulas(spec: Any, formula: Any) -> None:
    rate = schedule(spec)
    for k in (0, 1, 9, 10, 11, 25, 49_999):
        assert rate(k) == pytest.approx(formula(k))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (0, "a of schedule constant must be a positive number, got 0"),
        (float("nan"), "a of schedule constant must be a positive number, got nan"),
        (True, "schedule must be a number, a name or a mapping"),
        ({"a": 1}, "a mapping with a name"),
        ({"name": "inverse-sqrt", "b": -1}, "b of schedule inverse-sqrt must be a positive number, got -1"),
        ({"name": "step", "every": 2.5}, "every of schedule step must be a whole number of rounds, got 2.5"),
        ({"name": "invers"}, "unknown schedule 'invers': did you mean 'inverse'"),
        ({"name": "inverse", "c": 1}, "schedule inverse has no option 'c'"),
    ],
)
def test_schedule_mistakes_are_named(spec: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        schedule(spec)


def test_schedules_are_listed() -> None:
    assert schedules.names() == ["constant", "inverse", "inverse-sqrt", "step"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("momentum", ["none", "heavy-ball", "exponential"])
def test_local_update_follows_its_formula(momentum: str, dtype: type) -> None:
    generator = np.random.default_rng(0)
    update = local_update(decay=0.01, momentum=momentum, beta=0.8)
    models: np.ndarray = generator.normal(size=(3, 50)).astype(dtype)
    state = update.init(models)
    wide, velocity = models.astype(np.float64), np.zeros((3, 50))
    for k in range(5):
        gradients: np.ndarray = generator.normal(size=(3, 50)).astype(dtype)
        before = gradients.copy()
        half = np.empty_like(models)
        state = update.apply(models, gradients, 0.5 / (k + 1), state, half)
        np.testing.assert_array_equal(gradients, before)
        direction = gradients.astype(np.float64)
        if momentum != "none":
            velocity = 0.8 * velocity + (0.2 if momentum == "exponential" else 1.0) * direction
            direction = velocity
        wide = (1 - 0.01 * 0.5 / (k + 1)) * wide - 0.5 / (k + 1) * direction
        np.testing.assert_allclose(half, wide, rtol=0, atol=20 * float(np.finfo(dtype).eps))
        assert half.dtype == dtype
        models = half
    assert (state is None) == (momentum == "none")


@pytest.mark.parametrize("momentum", ["none", "heavy-ball"])
def test_local_update_may_write_over_its_inputs(momentum: str) -> None:
    update = local_update(decay=0.1, momentum=momentum)
    models, gradients = np.ones((2, 70)), np.full((2, 70), 2.0)
    results = []
    for target in ("new", "models", "gradients"):
        x, g = models.copy(), gradients.copy()
        out = {"new": np.empty_like(x), "models": x, "gradients": g}[target]
        update.apply(x, g, 0.1, update.init(x), out)
        results.append(out)
    np.testing.assert_allclose(results[0], 0.79)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_resumed_momentum_continues() -> None:
    """The state is all that the next round needs."""
    generator = np.random.default_rng(1)
    gradients = generator.normal(size=(6, 2, 9))
    update = local_update(momentum="heavy-ball")
    models = np.zeros((2, 9))
    state = update.init(models)
    for k in range(6):
        if k == 3:
            models, state = models.copy(), None if state is None else state.copy()
            update = local_update(momentum="heavy-ball")
        state = update.apply(models, gradients[k], 0.1, state, models)
    straight, held = np.zeros((2, 9)), np.zeros((2, 9))
    for k in range(6):
        held = 0.9 * held + gradients[k]
        straight = straight - 0.1 * held
    np.testing.assert_allclose(models, straight, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decay": -0.1}, "decay must be a number of at least 0, got -0.1"),
        ({"momentum": "nesterov"}, "momentum must be one of none, heavy-ball, exponential, got 'nesterov'"),
        ({"beta": 1.0}, "beta must be at least 0 and below 1, got 1.0"),
        ({"beta": "x"}, "beta must be at least 0 and below 1, got 'x'"),
    ],
)
def test_local_update_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        local_update(**options)


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
    assert (consensus_error(models), disagreement(models)) == (error, gap)
    assert error <= gap * (1 + 1e-12)
    assert gap <= math.sqrt(dimension) * error * (1 + 1e-12)


def test_disagreement_is_the_mean_squared_distance_to_the_mean() -> None:
    models = np.random.default_rng(3).normal(size=(7, 40))
    expected = np.mean(np.sum((models - models.mean(axis=0)) ** 2, axis=1))
    assert disagreement(models) == pytest.approx(expected)
    assert spread(np.repeat(models[:1], 4, axis=0)) == pytest.approx((0.0, 0.0), abs=1e-30)
    models[2, 3] = np.nan
    assert math.isnan(disagreement(models))


def test_summary_of_an_evaluation() -> None:
    models = np.array([[0.0, 0.0], [2.0, 0.0]])
    summary = summarise({"accuracy": np.array([0.2, 0.8]), "loss": np.array([1.0, 3.0])}, models)
    assert summary == {
        "accuracy": 0.5,
        "worst_accuracy": 0.2,
        "loss": 2.0,
        "consensus_error": 1.0,
        "disagreement": 1.0,
    }
    assert set(summarise({"loss": np.array([1.0])}, models)) == {"loss", "consensus_error", "disagreement"}

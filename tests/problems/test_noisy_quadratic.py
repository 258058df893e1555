"""Noisy quadratics: their constants are exactly those asked for, at every model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.problems import problem
from byzmesh.problems.noisy_quadratic import NoisyQuadraticTask
from byzmesh.training.local import VARIANCES
from byzmesh.training.variance import estimator

ASKED: dict[str, Any] = {"delta_in": 2.0, "delta_out": 0.5, "dimension": 3, "samples": 7, "curvature": 4.0}


def bound(workers: int = 5, liars: int = 0, **options: Any) -> NoisyQuadraticTask:
    task = problem("noisy-quadratic", **{**ASKED, **options}).bind(
        workers=workers, liars=liars, seed=3, dtype="float64"
    )
    assert isinstance(task, NoisyQuadraticTask)
    return task


def sample_gradients(task: NoisyQuadraticTask, model: np.ndarray, row: int) -> list[np.ndarray]:
    points = task.points.reshape(task.rows, task.per_row, -1)[row]
    return [task.curvature * (model - point) for point in points]


@pytest.mark.parametrize("at", [0.0, 1.0, -30.0])
def test_the_variations_are_exactly_those_asked_for_at_every_model(at: float) -> None:
    task = bound()
    model = np.full(3, at)
    means = [np.mean(sample_gradients(task, model, row), axis=0) for row in range(5)]
    for row in range(5):
        noise = [np.sum((one - means[row]) ** 2) for one in sample_gradients(task, model, row)]
        assert np.mean(noise) == pytest.approx(2.0**2)
        np.testing.assert_allclose(task.local_gradients(model)[row], means[row])
    whole = np.mean(means, axis=0)
    np.testing.assert_allclose(task.full_gradient(model), whole, atol=1e-12)
    assert max(np.sum((one - whole) ** 2) for one in means) == pytest.approx(0.5**2)
    assert task.variations() == pytest.approx((2.0, 0.5))
    assert task.smoothness() == 4.0


def test_losses_are_means_over_the_samples() -> None:
    task = bound()
    model = np.array([1.0, -2.0, 0.5])
    points = task.points.reshape(5, 7, 3)
    want = [np.mean([2.0 * np.sum((model - point) ** 2) for point in points[row]]) for row in range(5)]
    np.testing.assert_allclose(task.local_losses(model), want)
    np.testing.assert_allclose(task.evaluate(model[None])["loss"], [np.mean(want)])
    assert task.least_loss() == pytest.approx(task.local_losses(np.zeros(3)).mean())
    assert task.least_loss() < task.local_losses(np.full(3, 1e-3)).mean()


def test_a_batch_is_one_sample_drawn_evenly_by_seed_row_and_round() -> None:
    task = bound(liars=2)
    rows = np.arange(7)
    models = np.random.default_rng(0).normal(size=(7, 3))
    seen = np.zeros((7, 7), int)
    for round in range(2000):
        picks, points = task.batches(round, rows)
        gradients = task.gradients(models, round)
        np.testing.assert_allclose(gradients, 4.0 * (models - points[:, 0]))
        np.testing.assert_array_equal(task.gradients(models[[4]], round, rows=np.array([4]))[0], gradients[4])
        np.testing.assert_allclose(
            task.losses(models[:, None], round), 2.0 * ((models - points[:, 0]) ** 2).sum(axis=1)[:, None]
        )
        assert (picks[:, 0] // 7 == rows).all()
        seen[rows, picks[:, 0] % 7] += 1
    assert seen.min() > 200
    assert seen.max() < 380
    np.testing.assert_allclose(task.targets[5:], -task.targets[:2])
    np.testing.assert_allclose(bound().points, task.points[: 5 * 7])


@pytest.mark.parametrize("method", VARIANCES[1:])
def test_variance_reduction_removes_the_noise_where_nothing_moves(method: str) -> None:
    task = bound()
    models = np.random.default_rng(1).normal(size=(5, 3))
    made = estimator(task, np.arange(5), method, seed=3)
    state, out = made.init(models), np.empty_like(models)
    for round in range(300):
        state = made.apply(models, round, state, out)
    want = np.stack([task.local_gradients(models[row])[row] for row in range(5)])
    np.testing.assert_allclose(out, want, atol=1e-9)
    assert np.abs(task.gradients(models, 299) - want).max() > 0.1


def test_without_noise_and_without_differences() -> None:
    task = bound(delta_in=0.0, delta_out=0.0, samples=1)
    assert task.variations() == (0.0, 0.0)
    np.testing.assert_array_equal(task.gradients(np.ones((5, 3)), 9), np.full((5, 3), 4.0))
    assert bound(workers=1, delta_out=0.0).variations() == (2.0, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 1}, "needs samples of at least 2"),
        ({"delta_in": -1.0}, "delta_in must be"),
        ({"curvature": 0.0}, "curvature must be"),
        ({"workers": 1}, "delta_out must be 0 for one honest worker"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bound(**options)

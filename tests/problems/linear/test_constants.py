"""What linear models know of their gradients at every model: bounds on the variations, losses and their minimum."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.problems.linear.task import LinearTask
from tests.problems.linear.reference import reference

WORKERS, FEATURES, SAMPLES = 3, 4, 30


@pytest.fixture
def data(tmp_path: Path) -> Path:
    draw = np.random.default_rng(7)
    features = draw.normal(size=(SAMPLES, FEATURES))
    labels = draw.integers(0, 2, SAMPLES)
    np.savez(tmp_path / "d.npz", features=features, labels=labels, test_features=features, test_labels=labels)
    return tmp_path / "d.npz"


def bound(data: Path, name: str, **options: Any) -> LinearTask:
    task = bm.problem(name, dataset=str(data), **options).bind(workers=WORKERS, seed=1, dtype="float64")
    assert isinstance(task, LinearTask)
    return task


@pytest.mark.parametrize("batching", ["uniform", "consecutive"])
@pytest.mark.parametrize("name", ["softmax", "logistic"])
def test_no_model_varies_more_than_the_bounds_say(data: Path, name: str, batching: str) -> None:
    task = bound(data, name, batch=4, batching=batching)
    inner, outer = task.variations()
    draw = np.random.default_rng(2)
    worst_inner = worst_outer = 0.0
    for size in np.repeat([0.0, 1.0, 30.0], 10):
        model = size * draw.normal(size=task.dimension)
        whole = task.local_gradients(model)
        worst_outer = max(worst_outer, *(((one - whole.mean(axis=0)) ** 2).sum() for one in whole))
        noise = [task.gradients(np.tile(model, (WORKERS, 1)), k) - whole for k in range(200)]
        worst_inner = max(worst_inner, (np.array(noise) ** 2).sum(axis=2).mean(axis=0).max())
    assert 0.05 * inner < math.sqrt(worst_inner) <= inner
    assert 0.05 * outer < math.sqrt(worst_outer) <= outer


def test_least_squares_vary_without_bound(data: Path) -> None:
    assert bound(data, "least-squares").variations() == (math.inf, math.inf)


@pytest.mark.parametrize("name", ["softmax", "logistic", "least-squares"])
def test_local_losses_are_means_over_a_workers_data(data: Path, name: str) -> None:
    task = bound(data, name)
    model = np.random.default_rng(3).normal(size=task.dimension)
    held = np.load(data)
    want = []
    for row in range(WORKERS):
        picks = task.split.share(row)
        x, y = held["features"][picks], held["labels"][picks]
        want.append(reference(name, x, 2.0 * y - 1.0 if name == "least-squares" else y, model)[1])
    np.testing.assert_allclose(task.local_losses(model), want)
    assert task.local_losses(model).min() >= task.least_loss() == 0.0

"""Gradients of samples shortened one by one, and batches in which no sample occurs twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from tests.problems.linear.reference import bound


@pytest.mark.parametrize("name", ["softmax", "logistic", "least-squares"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_clipping_equals_a_loop_over_samples(name: str, dtype: str) -> None:
    task = bound(name, {"batch": 6}, workers=3, seed=1, dtype=dtype)
    models = task.initial("normal") * task.dtype.type(0.05)
    picks, targets = task.batches(2, np.arange(3))
    longest = 0.8
    expected, shortened = np.zeros(models.shape), 0
    for row in range(3):
        for s in range(6):
            one = picks[row : row + 1, s : s + 1]
            gradient = np.empty((1, task.dimension), task.dtype)
            task.join(one, task.slopes(models[row : row + 1], one, targets[row : row + 1, s : s + 1]), gradient)
            length = float(np.linalg.norm(gradient.astype(np.float64)))
            shortened += length > longest
            expected[row] += gradient[0] * min(1.0, longest / length) / 6
    assert shortened > 0
    found = task.clipping_samples(longest).gradients(models, 2)
    assert found == pytest.approx(expected, abs=2e-6 if dtype == "float32" else 1e-13)
    assert task.clipping_samples(1e9).gradients(models, 2) == pytest.approx(task.gradients(models, 2))


def test_a_local_round_clips_and_the_task_stays_as_it_was() -> None:
    network = {"name": "ring", "n": 4}
    run = bm.prepare(
        problem={"name": "softmax", "batch": 4}, network=network, local={"clip_samples": 0.1}, step=1.0, rounds=1
    )
    whole = np.abs(run.task.local_gradients(run.models[0])).max()
    run.step()
    assert (np.linalg.norm(run.half, axis=1) <= 0.1 * (1 + 1e-5)).all() and (run.half != 0).any()
    assert np.abs(run.task.local_gradients(np.zeros(7850, np.float32))).max() == whole
    with pytest.raises(ConfigError, match="local clip_samples needs a problem that knows the gradient of every sample"):
        bm.prepare(problem="quadratic", network={"name": "ring", "n": 4}, local={"clip_samples": 0.1})
    with pytest.raises(ConfigError, match="clip_samples goes with gradients of batches"):
        bm.prepare(network={"name": "ring", "n": 4}, local={"clip_samples": 0.1, "variance": "saga"})


def test_distinct_batches_have_every_sample_once_and_every_sample_equally_often(samples: Any) -> None:
    task: Any = bm.problem("softmax", dataset=str(samples), batch=5, batching="distinct").bind(workers=8)
    size, seen = int(task.sizes()[3]), dict[int, int]()
    for round in range(3000):
        picks = task.batches(round, np.array([3]))[0][0]
        assert len(set(picks.tolist())) == 5
        for pick in picks.tolist():
            seen[pick] = seen.get(pick, 0) + 1
    expected = 3000 * 5 / size
    assert len(seen) == size and max(abs(count - expected) for count in seen.values()) < 6 * np.sqrt(expected)
    with pytest.raises(ConfigError, match=f"batch must be at most {task.sizes().min()}, the samples of the smallest"):
        bm.problem("softmax", dataset=str(samples), batch=500, batching="distinct").bind(workers=8)

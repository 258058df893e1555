"""Variance reduction: no bias, no noise where nothing moves, checkpoints, configs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.problems.linear.task import LinearTask
from byzmesh.training.local import VARIANCES
from byzmesh.training.variance import estimator

SAMPLES, FEATURES, CLASSES, WORKERS = 60, 5, 3, 4


@pytest.fixture
def data(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    path = tmp_path / "small.npz"
    features = generator.normal(size=(SAMPLES + 20, FEATURES))
    labels = np.argmax(features @ generator.normal(size=(FEATURES, CLASSES)), axis=1)
    np.savez(
        path,
        features=features[:SAMPLES],
        labels=labels[:SAMPLES],
        test_features=features[SAMPLES:],
        test_labels=labels[SAMPLES:],
    )
    return path


def task_of(data: Path, *, batch: int = 4, liars: int = 0, dtype: str = "float64", **options: Any) -> LinearTask:
    problem = bm.problem("softmax", dataset=str(data), batch=batch, partition="iid", **options)
    task = problem.bind(workers=WORKERS, seed=3, dtype=dtype, liars=liars)
    assert isinstance(task, LinearTask)
    return task


def whole_gradient(task: LinearTask, model: np.ndarray, row: int) -> np.ndarray:
    """A row's full gradient as the gradient of one batch that holds all its samples once, in order."""
    size = int(np.diff(task.split.start)[row])
    alone = replace(task, batch=size, batching="consecutive")
    return np.asarray(alone.gradients(model[None], 0, None, np.array([row]))[0])


@pytest.mark.parametrize("method", VARIANCES[1:])
@pytest.mark.parametrize("liars", [0, 2])
def test_where_nothing_moves_the_noise_dies_out(data: Path, method: str, liars: int) -> None:
    task = task_of(data, liars=liars)
    rows = np.arange(task.rows)
    models = np.random.default_rng(1).normal(size=(task.rows, task.dimension))
    made = estimator(task, rows, method, seed=3)
    state, out = made.init(models), np.empty_like(models)
    for round in range(400):
        state = made.apply(models, round, state, out)
    want = np.stack([whole_gradient(task, models[row], row) for row in range(task.rows)])
    np.testing.assert_allclose(out, want, atol=1e-10)
    plain = task.gradients(models, 399, None, rows)
    assert np.abs(plain - want).max() > 0.05, "the plain gradient must be noisy, or this test shows nothing"


@pytest.mark.parametrize("method", VARIANCES[1:])
def test_the_mean_over_all_batches_is_the_full_gradient(
    data: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some rounds on moving models, all single-sample batches in turn from the same state."""
    task = task_of(data, batch=1)
    rows = np.arange(WORKERS)
    made = estimator(task, rows, method, refresh=0.05 if method == "lsvrg" else None, seed=3)
    generator = np.random.default_rng(2)
    models = generator.normal(size=(WORKERS, task.dimension))
    state, out = made.init(models), np.empty_like(models)
    for round in range(30):
        models = models + 0.1 * generator.normal(size=models.shape)
        state = made.apply(models, round, state, out)
    want = np.stack([whole_gradient(task, models[row], row) for row in range(task.rows)])
    total = np.zeros_like(models)
    size = SAMPLES // WORKERS
    for place in range(size):

        def one(self: LinearTask, round: int, chosen: np.ndarray, place: int = place) -> Any:
            picks = np.array([[self.split.share(int(row))[place]] for row in chosen], np.int64)
            return picks, self.target[picks]

        monkeypatch.setattr(LinearTask, "batches", one)
        made.apply(models, 1000, {name: values.copy() for name, values in state.items()}, out)
        total += out / size
    np.testing.assert_allclose(total, want, atol=1e-10)


def test_saga_keeps_the_mean_of_what_it_keeps(data: Path) -> None:
    """Also with samples drawn twice in a batch: batches of 12 from 15 samples."""
    task = task_of(data, batch=12)
    rows = np.arange(WORKERS)
    made = estimator(task, rows, "saga")
    models = np.random.default_rng(2).normal(size=(WORKERS, task.dimension))
    state, out = made.init(models), np.empty_like(models)
    for round in range(7):
        models = models * 0.9
        state = made.apply(models, round, state, out)
        picks = task.batches(round, rows)[0]
        assert len(np.unique(picks[0])) < 12
    for row in rows:
        share = task.split.share(int(row)).astype(np.int64)[None]
        mean = np.empty((1, task.dimension))
        task.train.backward(share, state["kept"][share] * 12 / share.size, mean)
        np.testing.assert_allclose(state["mean"][row], mean[0], atol=1e-12)


def config(data: Path, **local: Any) -> dict[str, Any]:
    return {
        "problem": {"name": "softmax", "dataset": str(data), "batch": 2, "partition": "iid"},
        "network": {"name": "complete", "n": 6, "byzantine": [5]},
        "rule": "ios",
        "attack": "sign-flipping",
        "step": 0.3,
        "rounds": 300,
        "evaluate_every": 100,
        "measure": ["gradient"],
        "dtype": "float64",
        "local": {"decay": 0.05, **local},
    }


@pytest.mark.parametrize("method", VARIANCES[1:])
def test_training_settles_with_variance_reduction(data: Path, method: str) -> None:
    """With a constant step plain SGD keeps jumping around the optimum, the reduced estimates settle."""

    def last_move(variance: str) -> float:
        settings = config(data, variance=variance) | {"network": {"name": "ring", "n": 5}, "rule": "weimean"}
        run = bm.prepare(**settings | {"attack": "none", "local": {"decay": 0.2, "variance": variance}, "rounds": 900})
        for _ in range(800):
            run.step()
        before = run.models.copy()
        run.step()
        return float(np.linalg.norm(run.models - before))

    assert last_move(method) < 0.02 * last_move("none")


@pytest.mark.parametrize("method", VARIANCES[1:])
def test_a_resumed_run_equals_an_uninterrupted_one(data: Path, method: str, tmp_path: Path) -> None:
    straight = bm.prepare(**config(data, variance=method)).run()
    first = bm.prepare(**config(data, variance=method))
    for _ in range(141):
        first.advance()
    first.save(tmp_path / "half.byz")
    second = bm.prepare(**config(data, variance=method))
    second.restore(tmp_path / "half.byz")
    assert second.round == first.round > 100
    np.testing.assert_array_equal(second.run().models, straight.models)


def test_label_flipping_liars_reduce_too(data: Path) -> None:
    settings = config(data, variance="saga") | {"attack": "label-flipping", "rounds": 20}
    assert bm.simulate(**settings).status == "finished"


def test_configs_without_variance_reduction_are_unchanged(data: Path) -> None:
    plain = resolve(config(data))
    assert plain["local"] == {"decay": 0.05, "momentum": "none", "beta": 0.9}
    assert resolve(config(data, variance="none")) == plain
    assert resolve(config(data, variance="saga"))["local"]["variance"] == "saga"
    assert resolve(config(data, variance="lsvrg", refresh=0.5))["local"]["refresh"] == 0.5


@pytest.mark.parametrize(
    ("local", "message"),
    [
        ({"variance": "svrg"}, "local variance must be none, saga or lsvrg, got 'svrg'"),
        ({"variance": "saga", "refresh": 0.1}, "local refresh goes with variance lsvrg"),
        ({"variance": "lsvrg", "refresh": 0.0}, "local refresh must be a number in \\(0, 1\\]"),
    ],
)
def test_bad_options(data: Path, local: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(config(data, **local))


def test_a_problem_without_samples_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a problem with samples"):
        bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, local={"variance": "saga"})

"""The local part of a round: all workers at once equal one at a time, and a checkpoint has its whole state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.problems.base import Task
from byzmesh.training.local import LocalOptions
from byzmesh.training.local_round import LocalRound
from byzmesh.training.schedules import schedule
from byzmesh.types import Array

WORKERS, ROUNDS = 4, 7
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heavy-ball": {"momentum": "heavy-ball"},
    "exponential": {"momentum": "exponential", "beta": 0.5},
    "several steps": {"steps": 3},
    "clip": {"clip": 0.1},
    "saga": {"variance": "saga"},
    "lsvrg": {"variance": "lsvrg", "refresh": 0.4},
    "all together": {"momentum": "heavy-ball", "steps": 2, "clip": 0.5, "variance": "saga"},
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    path = tmp_path_factory.mktemp("data") / "mine.npz"
    np.savez(path, features=generator.normal(size=(60, 5)) + labels[:, None], labels=labels)
    return bm.problem("softmax", dataset=str(path), batch=4).bind(workers=WORKERS, seed=3, dtype="float64")


def local_round(task: Task, rows: Array, variant: str) -> LocalRound:
    options = LocalOptions(decay=0.01, **VARIANTS[variant])
    made = LocalRound(task, rows, schedule("inverse-sqrt"), options, seed=3)
    made.start(task.initial()[rows])
    return made


def train(local: LocalRound, models: Array, rounds: range) -> Array:
    for k in rounds:
        models = local.half_steps(models, k).copy()
    return models


@pytest.mark.parametrize("variant", VARIANTS)
def test_workers_at_once_equal_one_worker_at_a_time(task: Task, variant: str) -> None:
    rows = np.arange(WORKERS)
    together = train(local_round(task, rows, variant), task.initial()[rows], range(ROUNDS))
    for row in rows:
        alone = train(local_round(task, rows[[row]], variant), task.initial()[[row]], range(ROUNDS))
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-12, atol=1e-14)
    assert len(np.unique(together, axis=0)) == WORKERS


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_states_are_all_the_memory_there_is(task: Task, variant: str) -> None:
    rows = np.array([2])
    first = local_round(task, rows, variant)
    models = train(first, task.initial()[rows], range(3))
    states = {name: values.copy() for name, values in first.states().items()}
    second = local_round(task, rows, variant)
    second.resume(states)
    np.testing.assert_array_equal(train(second, models, range(3, ROUNDS)), train(first, models, range(3, ROUNDS)))


def test_every_variant_is_another_training(task: Task) -> None:
    rows = np.arange(WORKERS)
    ends = [train(local_round(task, rows, name), task.initial()[rows], range(ROUNDS)).tobytes() for name in VARIANTS]
    assert len(set(ends)) == len(VARIANTS)


@pytest.mark.parametrize("variant", ["plain", "several steps"])
def test_models_that_share_the_buffer_are_copied(task: Task, variant: str) -> None:
    local = local_round(task, np.arange(WORKERS), variant)
    half = local.half_steps(task.initial(), 0)
    assert not np.may_share_memory(local.apart(half), half)
    other = half.copy()
    assert local.apart(other) is other


class WithoutHalfSteps:
    """A task that does not take its own gradient steps."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __getattr__(self, name: str) -> Any:
        if name == "half_steps":
            raise AttributeError(name)
        return getattr(self.task, name)


@pytest.mark.parametrize("variant", ["plain", "several steps"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dataset", ["dense", "nonzero"])
def test_own_steps_equal_gradients_and_steps_bit_for_bit(task: Task, dataset: str, dtype: str, variant: str) -> None:
    if dataset == "nonzero":
        task = bm.problem("softmax", batch=5, init="normal").bind(workers=WORKERS, seed=3, dtype=dtype)
    rows = np.arange(WORKERS)
    slow: Any = WithoutHalfSteps(task)
    fused, apart = local_round(task, rows, variant), local_round(slow, rows, variant)
    assert apart.peak is None
    models = train(fused, task.initial()[rows], range(ROUNDS))
    np.testing.assert_array_equal(models, train(apart, task.initial()[rows], range(ROUNDS)))
    np.testing.assert_array_equal(fused.peak, np.abs(models).max(axis=1))


def test_a_step_that_is_not_finite_has_no_peak(task: Task) -> None:
    rows = np.arange(WORKERS)
    local = local_round(task, rows, "plain")
    models = task.initial()[rows]
    models[1, 3], models[2, 0] = np.nan, np.inf
    local.half_steps(models, 0)
    assert local.peak is not None
    assert np.isfinite(local.peak).tolist() == [True, False, False, True]
    assert np.isinf(local.peak).tolist() == [False, True, True, False]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_round_without_a_step_changes_nothing_and_computes_no_gradient(task: Task, variant: str) -> None:
    rows = np.arange(WORKERS)
    local, models = local_round(task, rows, variant), task.initial()[rows]
    models = train(local, models, range(2))
    before = {name: values.copy() for name, values in local.states().items()}
    local.schedule = lambda k: 0.0
    local.task = local._estimator = None  # type: ignore[assignment]
    still = local.half_steps(models, 2)
    np.testing.assert_array_equal(still, models)
    assert not np.shares_memory(still, models)
    assert {name: values.tolist() for name, values in local.states().items()} == {
        name: values.tolist() for name, values in before.items()
    }
    if local.peak is not None:
        np.testing.assert_array_equal(local.peak, np.abs(models).max(axis=1))

"""Batched gradients against one worker at a time in plain NumPy, and against torch's autograd."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.problems import Dataset, dataset
from byzmesh.problems.data.datasets import nonzero
from byzmesh.problems.descent import descend
from byzmesh.problems.linear.losses import LOGISTIC, SOFTMAX
from byzmesh.problems.linear.products import rows_of
from tests.problems.linear.reference import bound, dense_inputs, reference

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
PROBLEMS: list[tuple[str, dict[str, Any]]] = [
    ("softmax", {}),
    ("softmax", {"partition": "one-class", "batching": "consecutive", "batch": 7}),
    ("logistic", {"partition": {"name": "dirichlet", "alpha": 0.3}}),
    ("logistic", {"classes": [3, 8]}),
    ("least-squares", {}),
    ("least-squares", {"classes": None, "partition": "shards"}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), PROBLEMS)
def test_batched_equals_one_worker_at_a_time(name: str, options: dict[str, Any], dtype: str) -> None:
    task = bound(name, options, workers=5, liars=2, seed=3, dtype=dtype)
    models = task.initial("normal") * task.dtype.type(0.05)
    before = models.copy()
    out = np.full_like(models, np.nan)
    assert task.gradients(models, 11, out) is out
    np.testing.assert_array_equal(models, before)
    candidates = np.stack([models, 2 * models, -models], axis=1)
    losses = task.losses(candidates, 11)
    picks, labels = task.batches(11, np.arange(task.rows))
    for row in range(task.rows):
        x = dense_inputs(dataset("mnist"), picks[row])
        gradient, _ = reference(name, x, labels[row], models[row].astype(np.float64))
        assert np.linalg.norm(out[row] - gradient) <= TOLERANCE[dtype] * np.linalg.norm(gradient)
        for k in range(3):
            loss = reference(name, x, labels[row], candidates[row, k].astype(np.float64))[1]
            assert losses[row, k] == pytest.approx(loss, rel=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_equals_autograd(dtype: str) -> None:
    task = bound("softmax", {"partition": "one-class"}, workers=4, seed=1, dtype=dtype)
    models = task.initial("normal") * task.dtype.type(0.1)
    gradients = task.gradients(models, 2)
    picks, labels = task.batches(2, np.arange(4))
    for row in range(4):
        inputs = torch.tensor(dense_inputs(dataset("mnist"), picks[row]), dtype=getattr(torch, dtype))
        weight = torch.tensor(models[row], requires_grad=True)
        scores = inputs @ weight[:7840].reshape(784, 10) + weight[7840:]
        torch.nn.functional.cross_entropy(scores, torch.tensor(labels[row].astype(np.int64))).backward()
        assert weight.grad is not None
        expected = weight.grad.numpy()
        assert np.linalg.norm(gradients[row] - expected) <= 2 * TOLERANCE[dtype] * np.linalg.norm(expected)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    classes=st.sampled_from([1, 2, 3, 7, 9, 10, 12, 16, 17]),
    features=st.integers(1, 40),
    density=st.sampled_from([0.0, 0.1, 0.5]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_nonzero_storage_equals_dense(seed: int, classes: int, features: int, density: float, dtype: str) -> None:
    generator = np.random.default_rng(seed)
    shape = (30, features)
    x = np.where(generator.random(shape) < density, generator.integers(1, 256, shape), 0).astype(np.uint8)
    y = generator.integers(0, classes, 30).astype(np.uint8)
    data = Dataset(
        name="random",
        train_x=x,
        train_y=y,
        test_x=x[:3],
        test_y=y[:3],
        classes=classes,
        scale=2 / 255,
        offset=-1.0,
        nonzero=nonzero(x, x[:3], full=2.0),
    )
    picks = generator.integers(0, 30, (3, 5))
    models = generator.normal(size=(3, (features + 1) * classes)).astype(dtype)
    delta = generator.normal(size=(3, 5, classes)).astype(dtype)
    results = []
    for storage in ("nonzero", "dense"):
        rows = rows_of(data, "train", classes, dtype, storage)
        assert rows.storage == storage
        scores, gradients = np.full_like(delta, np.nan), np.full_like(models, np.nan)
        rows.forward(picks, models, scores)
        rows.backward(picks, delta, gradients)
        results.append((scores, gradients))
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=0, atol=50 * np.finfo(dtype).eps * (1 + features) ** 0.5 * 4)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    classes=st.sampled_from([1, 2, 3, 7, 10]),
    batch=st.integers(1, 7),
    workers=st.integers(1, 4),
    dtype=st.sampled_from(["float32", "float64"]),
    storage=st.sampled_from(["nonzero", "dense"]),
)
def test_half_steps_are_forward_slopes_backward_and_step(
    seed: int, classes: int, batch: int, workers: int, dtype: str, storage: str
) -> None:
    """One call, row by row, gives the bits of four calls with all rows."""
    generator = np.random.default_rng(seed)
    x = np.where(generator.random((30, 9)) < 0.4, generator.integers(1, 256, (30, 9)), 0).astype(np.uint8)
    y = generator.integers(0, classes, 30).astype(np.uint8)
    held: dict[str, Any] = {"train_x": x, "train_y": y, "test_x": x[:3], "test_y": y[:3]}
    held["nonzero"] = nonzero(x, x[:3], full=2.0)
    rows = rows_of(
        Dataset(name="random", classes=classes, scale=2 / 255, offset=-1.0, **held), "train", classes, dtype, storage
    )
    link, picks = SOFTMAX if classes > 1 else LOGISTIC, generator.integers(0, 30, (workers, batch))
    models = generator.normal(size=(workers, 10 * classes)).astype(dtype)
    keep, step = models.dtype.type(0.9), models.dtype.type(0.3)
    half, peak = np.full_like(models, np.nan), np.full(workers, np.nan)
    targets = y[picks].astype(np.int16)
    rows.half_steps(link, picks, targets, models, keep, step, half, peak)

    scores, gradients = np.empty((workers, batch, classes), dtype), np.empty_like(models)
    rows.forward(picks, models, scores)
    link.delta(scores, targets)
    rows.backward(picks, scores, gradients)
    expected, largest = np.empty_like(models), np.empty(workers)
    descend(models, gradients, keep, step, expected, largest)
    np.testing.assert_array_equal(half, expected)
    np.testing.assert_array_equal(peak, largest)
    np.testing.assert_array_equal(peak, np.abs(half).max(axis=1))


def test_dense_blocks_cover_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into small blocks of rows and samples, the dense products are the same."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(50, 6)), generator.integers(0, 3, 50)
    data = Dataset(name="floats", train_x=x, train_y=y, test_x=x, test_y=y, classes=3)
    picks = generator.integers(0, 50, (4, 11))
    models, delta = generator.normal(size=(4, 21)), generator.normal(size=(4, 11, 3))
    results = []
    for size in (1 << 20, 25, 150):
        monkeypatch.setattr("byzmesh.problems.linear.products._BUFFER", size)
        rows = rows_of(data, "train", 3, "float64")
        scores, gradients = np.empty_like(delta), np.empty_like(models)
        rows.forward(picks, models, scores)
        rows.backward(picks, delta, gradients)
        results.append((scores, gradients))
    for scores, gradients in results[1:]:
        np.testing.assert_allclose(scores, results[0][0], atol=1e-12)
        np.testing.assert_allclose(gradients, results[0][1], atol=1e-12)


def test_users_floats_take_the_dense_path(small_file: Path) -> None:
    task = bound("softmax", {"dataset": str(small_file), "batch": 4}, workers=3, dtype="float64")
    assert task.train.storage == "dense"
    assert bound("softmax", {}, workers=3).train.storage == "nonzero"
    models = task.initial("normal")
    gradients = task.gradients(models, 0)
    data = dataset(str(small_file))
    picks, labels = task.batches(0, np.arange(3))
    for row in range(3):
        expected, _ = reference("softmax", dense_inputs(data, picks[row]), labels[row], models[row])
        np.testing.assert_allclose(gradients[row], expected, atol=1e-12)


def test_rows_and_threads_do_not_change_a_gradient() -> None:
    task = bound("softmax", {}, workers=70, seed=4)
    threaded = replace(task, threads=2)
    models = task.initial("normal")
    whole = task.gradients(models, 5)
    np.testing.assert_array_equal(threaded.gradients(models, 5), whole)
    some = np.array([64, 3])
    np.testing.assert_array_equal(task.gradients(models[some], 5, rows=some), whole[some])
    np.testing.assert_array_equal(task.gradients(models[:10], 5), whole[:10])
    strided = np.asfortranarray(models[:4])
    np.testing.assert_array_equal(task.gradients(strided, 5), whole[:4])
    losses = task.losses(models[some][:, None], 5, rows=some)
    assert losses.shape == (2, 1)
    one, two = task.evaluate(models[:5]), threaded.evaluate(models[:5])
    for name in ("loss", "accuracy"):
        np.testing.assert_array_equal(one[name], two[name])


FORKED = """
import os
from byzmesh.problems import problem
task = problem("softmax").bind(workers=64, threads=2)
models = task.initial()
task.gradients(models, 0)
child = os.fork()
if child == 0:
    task.gradients(models, 1)
    os._exit(0)
raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_threads_work_in_a_forked_child() -> None:
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=120, check=False).returncode == 0


def test_wrong_shapes_are_refused_before_compiled_code_sees_them() -> None:
    task = bound("softmax", {}, workers=3)
    models = task.initial()
    for call, words in (
        (lambda: task.gradients(models[:, :-1], 0), "rows of 7850 numbers"),
        (lambda: task.gradients(np.vstack([models, models]), 0), "up to 3 rows"),
        (lambda: task.gradients(models, 0, rows=np.array([0, 1, 3])), "between 0 and 2, got 0 to 3"),
        (lambda: task.gradients(models, 0, rows=np.array([0])), "up to 3 rows"),
        (lambda: task.gradients(models, 0, np.empty_like(models, np.float64)), "contiguous float32"),
        (lambda: task.gradients(models, 0, np.empty((7850, 3), np.float32).T), "contiguous float32"),
        (lambda: task.evaluate(models[0]), "rows of 7850"),
        (lambda: task.losses(models[:, None, :5], 0), "rows of 7850"),
    ):
        with pytest.raises(ConfigError, match=words):
            call()


@pytest.mark.parametrize(("name", "classes"), [("softmax", 10), ("logistic", 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_derivative_is_denormal(name: str, classes: int, dtype: str) -> None:
    """Scores far apart give derivatives near 0: each is the formula's, or 0 where that could not change a model."""
    task = bound(name, {}, workers=2, dtype=dtype)
    reach = 800.0 if dtype == "float64" else 100.0
    scores = np.linspace(-reach, reach, 2 * 40 * classes).reshape(2, 40, classes).astype(dtype)
    labels = np.zeros((2, 40), np.int16)
    got = scores.copy()
    task.link.delta(got, labels)
    wide = scores.astype(np.float64)
    if name == "softmax":
        power = np.exp(wide - wide.max(axis=2, keepdims=True))
        expected = power / power.sum(axis=2, keepdims=True)
        expected[:, :, 0] -= 1.0
    else:
        expected = np.exp(np.minimum(wide, 0.0) - np.logaddexp(0.0, -np.abs(wide)))
    tiny = np.finfo(dtype).tiny
    assert not ((got != 0.0) & (np.abs(got) < tiny)).any()
    np.testing.assert_allclose(got, expected / 40, rtol=1e-4 if dtype == "float32" else 1e-9, atol=1e-30)

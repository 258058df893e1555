"""What a task measures, draws and starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.problems import dataset, problem, problems
from byzmesh.problems.linear.task import LinearTask
from tests.problems.linear.reference import bound, dense_inputs, reference


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_evaluation_is_that_of_the_test_set(dtype: str) -> None:
    data = dataset("mnist")
    task = bound("softmax", {}, workers=3, dtype=dtype)
    models = task.initial("normal") * task.dtype.type(0.1)
    measures = task.evaluate(models)
    x = dense_inputs(data, np.arange(10_000), "test")
    for k in range(3):
        wide = models[k].astype(np.float64)
        scores = x @ wide[:7840].reshape(784, 10) + wide[7840:]
        assert measures["accuracy"][k] == pytest.approx(np.mean(scores.argmax(axis=1) == data.test_y), abs=2e-4)
        assert measures["loss"][k] == pytest.approx(reference("softmax", x, data.test_y, wide)[1], rel=1e-5)
    zero = task.evaluate(task.initial("zero"))
    np.testing.assert_allclose(zero["accuracy"], np.mean(data.test_y == 0))
    np.testing.assert_allclose(zero["loss"], np.log(10), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "labels"),
    [
        ("logistic", {}, lambda y: y % 2),
        ("logistic", {"classes": [4, 9]}, lambda y: (y[(y == 4) | (y == 9)] == 9).astype(int)),
        ("least-squares", {"classes": [4, 9]}, lambda y: 2 * (y[(y == 4) | (y == 9)] == 9).astype(int) - 1),
        ("least-squares", {"classes": None}, lambda y: y.astype(float)),
    ],
)
def test_evaluation_of_single_scores(name: str, options: dict[str, Any], labels: Any) -> None:
    data = dataset("mnist")
    task = bound(name, options, workers=2, dtype="float64")
    models = task.initial("normal") * 0.05
    measures = task.evaluate(models)
    expected = labels(data.test_y.astype(np.int64))
    kept = np.flatnonzero(np.isin(data.test_y, options.get("classes") or range(10)))
    x = dense_inputs(data, kept, "test")
    for k in range(2):
        scores = x @ models[k][:-1] + models[k][-1]
        assert measures["loss"][k] == pytest.approx(reference(name, x, expected, models[k])[1])
        if options.get("classes", 0) is None:
            assert "accuracy" not in measures
        else:
            assert measures["accuracy"][k] == pytest.approx(np.mean((scores > 0) == (expected > 0)))


@pytest.mark.parametrize("name", ["softmax", "logistic", "least-squares"])
def test_full_gradient_averages_workers_of_different_size(name: str) -> None:
    task = bound(name, {"partition": "one-class"}, workers=10, liars=2, dtype="float64")
    model = task.initial("normal")[0] * 0.05
    sizes = np.diff(task.split.start)
    assert sizes[:10].min() < sizes[:10].max()
    data = dataset("mnist")
    expected = np.mean(
        [reference(name, dense_inputs(data, s), task.target[s], model)[0] for s in map(task.split.share, range(10))],
        axis=0,
    )
    np.testing.assert_allclose(task.full_gradient(model), expected, rtol=1e-9, atol=1e-12)


def test_diverged_models_measure_as_not_right() -> None:
    task = bound("softmax", {}, workers=3)
    models = task.initial("normal")
    models[0] = np.nan
    models[1, 0] = np.inf
    models[2] *= np.float32(1e37)
    measures = task.evaluate(models)
    assert measures["accuracy"][0] == 0.0
    assert np.isnan(measures["loss"][0])
    assert np.isnan(task.gradients(models, 0)[0]).all()


def test_huge_finite_scores_do_not_overflow() -> None:
    for name in ("softmax", "logistic"):
        task = bound(name, {}, workers=2)
        models = task.initial("normal") * np.float32(1e4)
        assert np.isfinite(task.gradients(models, 0)).all()
        assert np.isfinite(task.evaluate(models)["loss"]).all()


def test_initial_models() -> None:
    task = bound("softmax", {"init": "normal", "scale": 6.0}, workers=4, liars=1)
    different = task.initial()
    assert different.shape == (5, 7850)
    assert different.std() == pytest.approx(6.0, rel=0.02)
    assert not np.array_equal(different[0], different[1])
    common = task.initial("common")
    assert (common == common[0]).all()
    assert common[0].std() == pytest.approx(6.0, rel=0.05)
    assert not task.initial("zero").any()
    fewer = bound("softmax", {"init": "normal", "scale": 6.0}, workers=2)
    np.testing.assert_array_equal(fewer.initial(), different[:2])
    with pytest.raises(ConfigError, match="init must be zero, common or normal, got 'ones'"):
        task.initial("ones")


def test_training_learns() -> None:
    for name, least in (("softmax", 0.88), ("logistic", 0.85)):
        task = bound(name, {}, workers=4)
        models = task.initial()
        for k in range(300):
            models -= np.float32(0.1 if name == "softmax" else 0.02) * task.gradients(models, k)
            models[:] = models.mean(axis=0)
        assert task.evaluate(models[:1])["accuracy"][0] > least


def test_same_seed_same_bytes_and_other_seed_other_batches() -> None:
    models = bound("softmax", {}, workers=3).initial("normal")
    first, second = (bound("softmax", {}, workers=3, seed=8).gradients(models, 1) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    other = bound("softmax", {}, workers=3, seed=9).gradients(models, 1)
    assert not np.array_equal(first, other)
    assert not np.array_equal(bound("softmax", {}, workers=3, seed=8).gradients(models, 2), first)


def test_describe_and_draw(tmp_path: Path) -> None:
    task = bound("softmax", {"partition": "one-class"}, workers=10, liars=2)
    held = task.describe()
    assert held.shape == (12, 10)
    np.testing.assert_array_equal(held[:10], np.diag(np.bincount(dataset("mnist").train_y)))
    task.draw(tmp_path / "shares.png")
    assert (tmp_path / "shares.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch must be a whole number of at least 1, got 0"),
        ({"batch": 1.5}, "batch must be a whole number of at least 1, got 1.5"),
        ({"scale": -1}, "scale must be a positive number, got -1"),
        ({"batching": "blocks"}, "batching must be uniform, consecutive or distinct, got 'blocks'"),
        ({"init": "random"}, "init must be zero, common or normal"),
        ({"partition": "non-idd"}, "unknown partition 'non-idd': did you mean 'non-iid'"),
        ({"partition": {"name": "dirichlet", "beta": 1}}, "partition dirichlet has no option 'beta'"),
        ({"partition": {"alpha": 1}}, "a mapping needs the key 'name'"),
    ],
)
def test_options_are_checked_before_data_are_loaded(options: dict[str, Any], words: str) -> None:
    for name in ("softmax", "logistic", "least-squares"):
        with pytest.raises(ConfigError, match=words):
            problem(name, **options)


def test_binding_is_checked() -> None:
    spec = problem("softmax")
    for given, words in (
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"workers": 2, "liars": -1}, "liars must be a whole number of at least 0"),
        ({"workers": 2, "dtype": "float16"}, "dtype must be float32 or float64, got 'float16'"),
        ({"workers": 2, "threads": 0}, "threads must be a whole number of at least 1"),
        ({"workers": 60_001}, "60000 samples cannot be shared among 60001 workers"),
    ):
        with pytest.raises(ConfigError, match=words):
            spec.bind(**given)
    for classes in ("odd", [1], [1, 1], [0, 10]):
        with pytest.raises(ConfigError, match="classes must be parity or a pair"):
            problem("logistic", classes=classes).bind(workers=2)


def test_every_problem_is_listed_with_its_options() -> None:
    assert problems.names() == ["least-squares", "logistic", "noisy-quadratic", "quadratic", "softmax", "torch"]
    entry = problems.entry("softmax")
    assert entry.published_options("iid") == {"batching": "consecutive", "init": "normal", "scale": 6.0}
    spec = problem("softmax", batch=8)
    assert spec.options["batch"] == 8
    assert set(spec.options) == set(entry.options)
    assert isinstance(spec.bind(workers=2), LinearTask)

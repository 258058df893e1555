"""Gradients of modules: both ways against a loop over separate modules, softmax against the native problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from byzmesh.errors import ConfigError
from byzmesh.problems.base import problem
from byzmesh.problems.neural import gradients as ways
from byzmesh.problems.neural.flat import load
from byzmesh.problems.neural.modules import modules
from byzmesh.problems.neural.task import TorchTask


def bound(module: Any = "mlp", **options: Any) -> TorchTask:
    keys = {
        key: options.pop(key) for key in ("workers", "liars", "dtype", "seed", "threads", "poison") if key in options
    }
    task = problem("torch", module=module, **{"batch": 4, "test_samples": 50, **options}).bind(**{"workers": 3, **keys})
    assert isinstance(task, TorchTask)
    return task


SMALL = {
    "linear": "linear",
    "mlp": {"name": "mlp", "hidden": [8, 5]},
    "cnn": {"name": "cnn", "channels": [3, 4], "hidden": 6},
    "resnet8": {"name": "resnet8", "width": 2},
}


def slow_gradients(task: TorchTask, models: Any, round: int) -> Any:
    """Gradients from a fresh module per worker, by `backward()` and parameter name."""
    out = np.zeros_like(models)
    x, y = task.batches(round, np.arange(len(models)))
    for row in range(len(models)):
        module = task.factory().to(x.dtype)
        load(module, models[row])
        torch.nn.functional.cross_entropy(module(x[row]), y[row]).backward()
        pieces = [parameter.grad.reshape(-1).numpy() for parameter in module.parameters()]
        out[row] = np.concatenate(pieces)
    return out


def test_every_built_in_is_tested() -> None:
    assert sorted([*SMALL, "gpt"]) == sorted(modules.names())  # gpt: test_text.py


@pytest.mark.parametrize("way", ["batched", "loop"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_both_ways_equal_a_loop_over_modules(name: str, way: str) -> None:
    task = bound(SMALL[name], gradients=way, init="own")
    models = task.initial()
    before = models.copy()
    found = task.gradients(models, 7)
    expected = slow_gradients(task, models, 7)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(models, before)
    rows = np.array([2, 0])
    np.testing.assert_allclose(task.gradients(models[rows], 7, rows=rows), found[rows], rtol=1e-4, atol=1e-6)


def test_operations_are_recorded_in_one_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode keeps the stack of calls: with one for each operation that took longer than all the rest."""
    made: list[Any] = []
    start = FakeTensorMode.__init__

    def counted(mode: Any, **options: Any) -> None:
        made.append(mode)
        start(mode, **options)

    monkeypatch.setattr(FakeTensorMode, "__init__", counted)
    task = bound(SMALL["mlp"], gradients="batched")
    task.gradients(task.initial(), 0)
    assert all(isinstance(recorded, torch.fx.GraphModule) for recorded in task.net.traced.values())
    assert len(made) == 1


def test_chunks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    task = bound(gradients="batched", init="own", workers=5)
    models = task.initial()
    whole = task.gradients(models, 0)
    monkeypatch.setattr(ways, "MEMORY", 2 * task.net.saved)
    assert task.net.saved > 4 * 784
    np.testing.assert_allclose(task.gradients(models, 0), whole, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_as_a_module_is_the_native_problem(dtype: str) -> None:
    """Same batches, losses and gradients; torch keeps W transposed."""
    native = problem("softmax", partition="one-class", batch=8).bind(workers=4, seed=3, dtype=dtype)
    task = bound("linear", partition="one-class", batch=8, workers=4, seed=3, dtype=dtype, test_samples=None)
    models = np.random.default_rng(0).normal(0, 0.1, (4, 7850)).astype(dtype)

    def turned(vectors: Any) -> Any:
        weights = vectors[:, :7840].reshape(-1, 784, 10).transpose(0, 2, 1).reshape(-1, 7840)
        return np.ascontiguousarray(np.concatenate([weights, vectors[:, 7840:]], axis=1))

    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    for round in range(3):
        gradient = native.gradients(models, round)
        np.testing.assert_allclose(task.gradients(turned(models), round), turned(gradient), **close)
        candidates = np.stack([models, 2 * models], axis=1)
        flat = np.stack([turned(models), turned(2 * models)], axis=1)
        np.testing.assert_allclose(task.losses(flat, round), native.losses(candidates, round), rtol=1e-4)
        models = models - 0.1 * gradient
    for name, values in native.evaluate(models).items():
        np.testing.assert_allclose(task.evaluate(turned(models))[name], values, atol=2e-4)
    full = native.full_gradient(models[0])
    np.testing.assert_allclose(task.full_gradient(turned(models)[0]), turned(full[None])[0], rtol=1e-3, atol=1e-4)


def test_the_choice_is_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYZMESH_CACHE", str(tmp_path))
    measured: list[str] = []
    slow = {"loop": 2.0, "batched": 1.0}

    def timed(way: Any, *arguments: Any) -> float:
        measured.append(way.__name__)
        return slow[way.__name__]

    monkeypatch.setattr(ways, "_timed", timed)
    task = bound()
    models = task.initial()
    task.gradients(models, 0)
    assert task.chosen == {3: "batched"} and set(measured) == {"loop", "batched"}
    measured.clear()
    slow["batched"] = 3.0
    again = bound()
    again.gradients(models, 0)
    assert again.chosen == {3: "batched"} and measured == []
    other = bound({"name": "mlp", "hidden": [7]})
    other.gradients(other.initial(), 0)
    assert other.chosen == {3: "loop"}
    for file in (tmp_path / "ways").iterdir():
        file.write_text("nonsense")
    damaged = bound()
    damaged.gradients(models, 0)
    assert damaged.chosen == {3: "loop"}


def test_the_first_writer_decides(tmp_path: Path) -> None:
    assert ways._agree(tmp_path / "ways" / "x", "loop") == "loop"
    assert ways._agree(tmp_path / "ways" / "x", "batched") == "loop"
    (tmp_path / "file").write_text("")
    assert ways._agree(tmp_path / "file" / "x", "batched") == "batched"


class Odd(torch.nn.Module):
    """An operation that vmap refuses: a Python branch on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(784, 10)

    def forward(self, x: Any) -> Any:
        y = self.layer(x.flatten(1))
        return y if y.sum().item() > 0 else 2 * y


def test_a_module_that_vmap_refuses_goes_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYZMESH_CACHE", str(tmp_path))
    task = bound(Odd)
    task.gradients(task.initial(), 0)
    assert task.chosen == {3: "loop"}


def test_a_choice_made_for_an_older_module_of_that_name_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user has since edited the module: if vmap now refuses it, it goes row by row unless batching is forced."""
    monkeypatch.setenv("BYZMESH_CACHE", str(tmp_path))
    task = bound(Odd)
    task.chosen[3] = "batched"
    task.gradients(task.initial(), 0)
    assert task.chosen == {3: "loop"}
    asked = bound(Odd, gradients="batched")
    with pytest.raises(ConfigError, match="gradients: batched does not work for this module") as caught:
        asked.gradients(asked.initial(), 0)
    assert "\n" not in str(caught.value)


def test_gradients_reach_any_array() -> None:
    task = bound()
    models = task.initial()
    expected = task.gradients(models, 0)
    for out in (np.zeros(models.shape), np.zeros(models.shape[::-1], np.float32).T):
        assert task.gradients(models, 0, out) is out
        np.testing.assert_array_equal(out.astype(np.float32), expected)


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    task = bound(threads=before + 1)
    task.gradients(task.initial(), 0)
    assert torch.get_num_threads() == before


def test_wrong_calls() -> None:
    task = bound()
    with pytest.raises(ConfigError, match="rows of 101770 numbers"):
        task.gradients(np.zeros((2, 3), np.float32), 0)
    with pytest.raises(ConfigError, match="rows must lie between 0 and 2, got 5 to 5"):
        task.gradients(task.initial()[:1], 0, rows=np.array([5]))
    with pytest.raises(ConfigError, match="rows of 101770 numbers"):
        task.evaluate(np.zeros(3, np.float32))
    with pytest.raises(ConfigError, match="smoothness of problem torch is not known"):
        task.smoothness()

"""Stored runs as files for others: a model for PyTorch or NumPy, a folder with everything."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from torch import nn

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, DataError, MissingExtra, StoreError
from byzmesh.store import Store, open_store
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import Checkpoint, checkpoint_folder
from byzmesh.sweeps.export import export_model, export_run
from byzmesh.sweeps.models import models_file
from byzmesh.sweeps.run import compute
from byzmesh.sweeps.sweep import sweep
from tests.simulation.small import config as small_config
from tests.simulation.small import write_data


class Tied(nn.Module):
    """Two layers of one matrix behind a frozen one kept by columns; found by name, as in a YAML file."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(8, 4).requires_grad_(False)
        self.frozen.weight.data = self.frozen.weight.data.T.contiguous().T
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(self.frozen(x))))


MLP = {"name": "torch", "module": {"name": "mlp", "hidden": [5]}, "batch": 8}
TIED = {"name": "torch", "module": f"{__name__}:Tied", "batch": 8}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.db") as opened:
        yield opened


def resolved(data: Path, problem: dict[str, Any], **more: Any) -> dict[str, Any]:
    return resolve(small_config(data, problem=problem | {"dataset": str(data)}, dtype="float32", **more))


def kept_run(store: Store, data: Path, problem: dict[str, Any], **more: Any) -> tuple[str, bm.Simulation]:
    """The key of a run that was computed into the store, and the same run computed here."""
    config = resolved(data, problem, **more)
    (key,) = sweep([config], store.path, workers=0, keep_models="final").statuses
    simulation = build(config)
    simulation.run()
    return key, simulation


def stopped_run(store: Store, data: Path, problem: dict[str, Any], rounds: int) -> tuple[str, bm.Simulation]:
    """The same for a run that was stopped after so many rounds."""
    config = resolved(data, problem)
    key = store.plan(config)
    path = checkpoint_folder(store.path) / key
    compute(config, lambda run: run.round < rounds, Checkpoint(path, 1e6, pytest.fail))
    simulation = build(config)
    simulation.restore(path)
    return key, simulation


def read(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        return dict(safetensors.torch.load_file(path))
    return dict(torch.load(path, weights_only=True))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 4))


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth"])
@pytest.mark.parametrize(("problem", "make"), [(MLP, mlp), (TIED, Tied)], ids=["mlp", "tied"])
def test_a_module_predicts_what_the_run_measured(
    store: Store, data: Path, problem: dict[str, Any], make: Any, ending: str
) -> None:
    key, run = kept_run(store, data, problem)
    done = export_model(store, key[:8], data.parent / f"model{ending}", worker=8)
    assert (done.whose, done.round, done.status) == ("worker 8", 12, "finished")
    module = make()
    module.load_state_dict(read(done.path))
    row = run.network.honest.tolist().index(8)
    held = np.load(data)
    guess = module(torch.from_numpy(held["test_x"])).argmax(1).numpy()
    assert np.mean(guess == held["test_y"]) == run.result().workers["accuracy"][-1][row]
    np.testing.assert_array_equal(bm.torch.flatten(module).numpy(), run.models[row])
    assert done.parameters == run.models.shape[1]


@pytest.mark.parametrize("ending", [".safetensors", ".pt"])
@pytest.mark.parametrize(
    ("problem", "outputs"), [({"name": "softmax"}, 4), ({"name": "logistic"}, 1), ({"name": "least-squares"}, 1)]
)
def test_linear_problems_are_weight_and_bias(
    store: Store, data: Path, problem: dict[str, Any], outputs: int, ending: str
) -> None:
    key, run = kept_run(store, data, problem)
    entries = read(export_model(store, key, data.parent / f"m{ending}", worker=0).path)
    assert sorted(entries) == ["bias", "weight"]
    table = run.models[0].reshape(9, outputs)
    np.testing.assert_array_equal(entries["weight"].numpy(), table[:8].T)
    np.testing.assert_array_equal(entries["bias"].numpy(), table[8])


def test_a_problem_without_layers_is_an_array(store: Store, tmp_path: Path) -> None:
    config = resolve({"problem": "quadratic", "network": "paper/two-castle", "rounds": 3})
    (key,) = sweep([config], store.path, workers=0, keep_models="final").statuses
    last = build(config).run().models[2]
    for ending in (".safetensors", ".pt"):
        entries = read(export_model(store, key, tmp_path / f"m{ending}", worker=2).path)
        assert list(entries) == ["model"]
        np.testing.assert_array_equal(entries["model"].numpy(), last)


def test_a_run_that_has_not_ended_gives_the_model_of_its_checkpoint(store: Store, data: Path) -> None:
    key, run = stopped_run(store, data, {"name": "softmax"}, rounds=5)
    done = export_model(store, key, data.parent / "m.safetensors")
    assert (done.whose, done.round, done.status) == ("mean of 10 workers", 5, "planned")
    mean = run.models.mean(axis=0).reshape(9, 4)
    np.testing.assert_allclose(read(done.path)["weight"].numpy(), mean[:8].T, rtol=1e-5, atol=1e-7)
    with safetensors.safe_open(done.path, "pt") as file:
        facts = file.metadata()
    assert facts["format"] == "pt" and facts["round"] == "5" and facts["whose"] == done.whose
    assert json.loads(facts["config"]) == run.config


def test_the_models_of_an_evaluation(store: Store, data: Path) -> None:
    config = resolved(data, {"name": "softmax"})
    (key,) = sweep([config], store.path, workers=0, keep_models="all").statuses
    done = export_model(store, key, data.parent / "m.pt", worker=3, round=4)
    early = build({**config, "rounds": 4}).run().models[3]
    np.testing.assert_array_equal(read(done.path)["bias"].numpy(), early[-4:])
    assert done.round == 4
    with pytest.raises(ConfigError, match=r"has no models of round 5; choose among 0, 4, 8, 12$"):
        export_model(store, key, data.parent / "m.pt", round=5)


@pytest.mark.parametrize("attack", ["none", "label-flipping", "sign-flipping"])
def test_ids_are_those_of_the_users_network(store: Store, data: Path, attack: str) -> None:
    """7 and 9 lie, so worker 10 is the ninth honest one, whatever rows the simulation has."""
    key, run = kept_run(store, data, {"name": "softmax"}, attack=attack)
    entries = read(export_model(store, key, data.parent / "m.pt", worker=10).path)
    np.testing.assert_array_equal(entries["bias"].numpy(), run.result().models[8][-4:])
    with pytest.raises(ConfigError, match=r"--worker.*got 9.*among 0, 1, 2, 3, 4, 5, 6, 8, 10, 11$"):
        export_model(store, key, data.parent / "m.pt", worker=9)


def test_a_run_on_a_gpu_is_exported_without_one(store: Store, data: Path) -> None:
    key, run = kept_run(store, data, MLP)
    config = resolved(data, MLP | {"device": "cuda"})
    other = store.plan(config)
    store.finish(other, "finished", {})
    models_file(store.path, key).rename(models_file(store.path, other))
    entries = read(export_model(store, other, data.parent / "m.pt", worker=0).path)
    np.testing.assert_array_equal(entries["3.bias"].numpy(), run.models[0][-4:])


def test_a_linear_model_needs_no_pytorch(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, _ = kept_run(store, data, {"name": "softmax"})
    monkeypatch.setitem(sys.modules, "torch", None)
    assert export_model(store, key, data.parent / "m.safetensors").path.exists()
    with pytest.raises(MissingExtra, match=r"export to \.pt .*byzmesh\[torch\]"):
        export_model(store, key, data.parent / "m.pt")


def test_mistakes(store: Store, data: Path, tmp_path: Path) -> None:
    config = resolved(data, {"name": "softmax"})
    (bare,) = sweep([config], store.path, workers=0).statuses
    with pytest.raises(ConfigError, match=rf"run {bare[:12]} kept no models; compute it again with --recompute"):
        export_model(store, bare, tmp_path / "m.pt")
    with pytest.raises(ConfigError, match="--keep-models all keeps those of each evaluation"):
        export_model(store, bare, tmp_path / "m.pt", round=4)
    planned = store.plan({**config, "seed": 1})
    with pytest.raises(ConfigError, match=r"is planned and has no checkpoint yet"):
        export_model(store, planned, tmp_path / "m.pt")
    with pytest.raises(StoreError, match="no run has the key"):
        export_model(store, "0123", tmp_path / "m.pt")
    key, _ = kept_run(store, data, {"name": "softmax"}, seed=2)
    with pytest.raises(ConfigError, match=r"--to must end in \.safetensors.*'m\.onnx'"):
        export_model(store, key, tmp_path / "m.onnx")
    with pytest.raises(ConfigError, match=r"cannot be written.*--to"):
        export_model(store, key, tmp_path / "missing" / "m.pt")
    models_file(store.path, key).write_bytes(bytes(50))
    with pytest.raises(DataError, match="contains no models"):
        export_model(store, key, tmp_path / "m.pt")
    path = checkpoint_folder(store.path) / planned
    path.parent.mkdir()
    path.write_bytes(b"BYZMESH1" + bytes(50))
    with pytest.raises(DataError, match="damaged"):
        export_model(store, planned, tmp_path / "m.pt")
    data.unlink()
    with pytest.raises(DataError, match=r"small\.npz"):
        export_model(store, planned, tmp_path / "m.pt")
    assert not (tmp_path / "m.pt").exists()


def test_a_folder_of_a_run(store: Store, data: Path, tmp_path: Path) -> None:
    key, run = kept_run(store, data, {"name": "softmax"})
    written = export_run(store, key[:8], tmp_path / "out")
    assert [path.name for path in written] == ["config.json", "metrics.json", "metrics.csv", "models.safetensors"]
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == run.config
    told = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (told["key"], told["status"], told["rounds"]) == (key, "finished", 12)
    metrics = run.result().metrics
    assert told["metrics"] == {name: values.tolist() for name, values in metrics.items()}
    with open(tmp_path / "out" / "metrics.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["accuracy"]) for line in lines] == metrics["accuracy"].tolist()
    models = safetensors.numpy.load_file(tmp_path / "out" / "models.safetensors")["models"]
    np.testing.assert_array_equal(models, run.models)
    # another run, which kept no models, into the same folder: nothing of the first is left
    (bare,) = sweep([resolved(data, {"name": "softmax"}, seed=1)], store.path, workers=0).statuses
    export_run(store, bare, tmp_path / "out")
    assert not (tmp_path / "out" / "models.safetensors").exists()
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["key"] == bare

"""The model of a run as a file for PyTorch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from torch import nn

import byzmesh as bm
from byzmesh.errors import ConfigError, DataError, MissingExtra
from byzmesh.sweeps.export import export
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
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


def kept_run(data: Path, problem: dict[str, Any], rounds: int | None = None, **more: Any) -> bm.Simulation:
    """A run whose checkpoint is in the folder of the data, stopped after so many rounds."""
    source = {"dataset" if problem["name"] == "torch" else "data": str(data)}
    run = bm.prepare(**small_config(data, problem=problem | source, dtype="float32", **more))
    while run.status == "running" and run.round != rounds:
        run.advance()
    run.save(data.parent / "checkpoint.byz")
    return run


def read(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        return safetensors.torch.load_file(path)
    return torch.load(path, weights_only=True)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 4))


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth"])
@pytest.mark.parametrize(("problem", "make"), [(MLP, mlp), (TIED, Tied)], ids=["mlp", "tied"])
def test_a_module_predicts_what_the_run_measured(data: Path, problem: dict[str, Any], make: Any, ending: str) -> None:
    run = kept_run(data, problem)
    done = export(data.parent, data.parent / f"model{ending}", worker=8)
    assert (done.whose, done.round, done.status) == ("worker 8", 12, "finished")
    module = make()
    module.load_state_dict(read(done.path))
    row = run.network.honest.tolist().index(8)
    held = np.load(data)
    guess = module(torch.from_numpy(held["test_x"])).argmax(1).numpy()
    assert np.mean(guess == held["test_y"]) == run.result().workers["accuracy"][-1][row]
    np.testing.assert_array_equal(bm.torch.flatten(module).numpy(), run.models[row])
    assert done.parameters == run.models.shape[1]


@pytest.mark.parametrize(
    ("problem", "outputs"), [({"name": "softmax"}, 4), ({"name": "logistic"}, 1), ({"name": "least-squares"}, 1)]
)
def test_linear_problems_are_weight_and_bias(data: Path, problem: dict[str, Any], outputs: int) -> None:
    run = kept_run(data, problem)
    entries = read(export(data.parent, data.parent / "m.safetensors", worker=0).path)
    assert sorted(entries) == ["bias", "weight"]
    table = run.models[0].reshape(9, outputs)
    np.testing.assert_array_equal(entries["weight"].numpy(), table[:8].T)
    np.testing.assert_array_equal(entries["bias"].numpy(), table[8])


def test_without_a_worker_the_mean_and_where_it_comes_from(data: Path) -> None:
    run = kept_run(data, {"name": "softmax"}, rounds=5)
    done = export(data.parent, data.parent / "m.safetensors")
    assert (done.whose, done.round, done.status) == ("mean of 10 workers", 5, "running")
    mean = run.models.mean(axis=0).reshape(9, 4)
    np.testing.assert_allclose(read(done.path)["weight"].numpy(), mean[:8].T, rtol=1e-5, atol=1e-7)
    with safetensors.safe_open(done.path, "pt") as file:
        facts = file.metadata()
    assert facts["format"] == "pt" and facts["round"] == "5" and facts["whose"] == done.whose
    assert json.loads(facts["config"]) == run.config


@pytest.mark.parametrize("attack", ["none", "label-flipping", "sign-flipping"])
def test_ids_are_those_of_the_users_network(data: Path, attack: str) -> None:
    """7 and 9 lie, so worker 10 is the ninth honest one, whatever rows the simulation has."""
    run = kept_run(data, {"name": "softmax"}, attack=attack)
    entries = read(export(data.parent, data.parent / "m.pt", worker=10).path)
    np.testing.assert_array_equal(entries["bias"].numpy(), run.result().models[8][-4:])
    with pytest.raises(ConfigError, match=r"--worker.*got 9.*among 0, 1, 2, 3, 4, 5, 6, 8, 10, 11$"):
        export(data.parent, data.parent / "m.pt", worker=9)


def test_a_run_on_a_gpu_is_exported_without_one(data: Path) -> None:
    run = kept_run(data, MLP, rounds=2)
    arrays, facts = load_checkpoint(data.parent / "checkpoint.byz")
    facts["config"]["problem"]["device"] = "cuda"
    save_checkpoint(data.parent / "checkpoint.byz", arrays, facts)
    entries = read(export(data.parent, data.parent / "m.pt", worker=0).path)
    np.testing.assert_array_equal(entries["3.bias"].numpy(), run.models[0][-4:])


def test_safetensors_are_part_of_the_extra(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_run(data, {"name": "softmax"}, rounds=1)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(MissingExtra, match=r"export to \.safetensors .*byzmesh\[torch\]"):
        export(data.parent, data.parent / "m.safetensors")


def test_mistakes(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no checkpoint\.byz"):
        export(tmp_path / "nowhere", tmp_path / "m.pt")
    kept_run(data, {"name": "softmax"}, rounds=1)
    with pytest.raises(ConfigError, match=r"--to must end in \.safetensors.*'m\.onnx'"):
        export(tmp_path, tmp_path / "m.onnx")
    with pytest.raises(ConfigError, match="cannot be written"):
        export(tmp_path, tmp_path / "missing" / "m.pt")
    data.unlink()
    with pytest.raises(DataError, match=r"small\.npz"):
        export(tmp_path, tmp_path / "m.pt")
    (tmp_path / "checkpoint.byz").write_bytes(b"BYZMESH1" + bytes(50))
    with pytest.raises(DataError, match="damaged"):
        export(tmp_path, tmp_path / "m.pt")
    bm.prepare(problem="quadratic", network="paper/two-castle", rounds=1).save(tmp_path / "checkpoint.byz")
    with pytest.raises(ConfigError, match="no layers"):
        export(tmp_path, tmp_path / "m.pt")
    assert not (tmp_path / "m.pt").exists()

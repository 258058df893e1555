"""`byzmesh export` after `byzmesh run`, and both without PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import yaml
from safetensors.numpy import load_file

from byzmesh.cli import main
from tests.simulation.small import write_data

PROBLEMS = {
    "mlp": {"name": "torch", "module": {"name": "mlp", "hidden": [3]}, "dataset": "small.npz", "batch": 4},
    "softmax": {"name": "softmax", "dataset": "small.npz", "batch": 4},
}


@pytest.fixture
def byzmesh(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Any:
    """Exit code, stdout and stderr of a command, run in this process from the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["byzmesh", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, *capsys.readouterr()

    return run


def write_config(folder: Path, problem: dict[str, Any]) -> None:
    write_data(folder)
    content = {"problem": problem, "network": "paper/two-castle", "attack": "gaussian", "rounds": 3, "step": 0.1}
    (folder / "run.yaml").write_text(yaml.safe_dump(content))


@pytest.mark.parametrize("name", PROBLEMS)
def test_run_then_export(tmp_path: Path, byzmesh: Any, name: str) -> None:
    write_config(tmp_path, PROBLEMS[name])
    code, out, _ = byzmesh("run", "run.yaml", "--json")
    key = json.loads(out)["key"]
    assert code == 0
    models = load_file(f"runs.db.models/{key}.safetensors")["models"]
    told = f"model.safetensors: worker 3, {models.shape[1]} parameters, round 3 (finished)\n"
    assert byzmesh("export", key[:8], "--worker", "3", "--to", "model.safetensors") == (0, told, "")
    assert byzmesh("export", key, "--worker", "3", "--to", "model.pt", "--store", "runs.db")[0] == 0
    one, two = safetensors.torch.load_file("model.safetensors"), torch.load("model.pt", weights_only=True)
    assert sorted(one) == sorted(two) and all(torch.equal(one[key], two[key]) for key in two)
    flat = np.sort(np.concatenate([value.numpy().reshape(-1) for value in one.values()]))
    np.testing.assert_array_equal(flat, np.sort(models[3]))


def test_an_existing_file_is_not_overwritten_without_force(tmp_path: Path, byzmesh: Any) -> None:
    write_config(tmp_path, PROBLEMS["softmax"])
    key = json.loads(byzmesh("run", "run.yaml", "--json")[1])["key"]
    Path("m.safetensors").write_text("dear")
    told = "error: m.safetensors exists; give another --to, or --force\n"
    assert byzmesh("export", key, "--to", "m.safetensors") == (2, "", told)
    assert Path("m.safetensors").read_text() == "dear"
    assert byzmesh("export", key, "--to", "m.safetensors", "--force")[0] == 0
    assert set(load_file("m.safetensors")) == {"weight", "bias"}


def test_mistakes_are_one_line(tmp_path: Path, byzmesh: Any) -> None:
    write_config(tmp_path, PROBLEMS["softmax"])
    key = json.loads(byzmesh("run", "run.yaml", "--json")[1])["key"]
    bare = json.loads(byzmesh("run", "run.yaml", "--json", "--set", "seed=1", "--keep-models", "none")[1])["key"]
    for arguments, words in [
        ([key, "--worker", "7", "--to", "m.pt"], "--worker must be the id of an honest worker, got 7"),
        ([key, "--to", "m.onnx"], "--to must end in .safetensors"),
        ([key, "--round", "1", "--to", "m.pt"], f"run {key[:12]} has no models of round 1"),
        ([bare, "--to", "m.pt"], f"run {bare[:12]} kept no models"),
        (["0123", "--to", "m.pt"], "no run has the key '0123'"),
        ([key, "--to", "m.pt", "--store", "nowhere.db"], "there is no store at"),
    ]:
        code, out, error = byzmesh("export", *arguments)
        assert (code, out) == (2, "") and error.startswith(f"error: {words}") and error.count("\n") == 1


def test_without_pytorch_one_line_names_the_extra(tmp_path: Path, byzmesh: Any) -> None:
    write_config(tmp_path, PROBLEMS["softmax"])
    key = json.loads(byzmesh("run", "run.yaml", "--json")[1])["key"]
    write_config(tmp_path, PROBLEMS["mlp"])
    block = "import sys; sys.modules['torch'] = None; from byzmesh.cli import main; main()"
    for arguments, what in [
        (["run", "run.yaml"], "problem 'torch'"),
        (["export", key, "--to", "m.pt"], "export to .pt"),
    ]:
        command = [sys.executable, "-c", block, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr == f"error: {what} needs an extra that is not installed: pip install 'byzmesh[torch]'\n"

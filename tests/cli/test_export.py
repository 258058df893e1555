"""`byzmesh export` after `byzmesh run`, and both without PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import yaml

from byzmesh.cli import main
from tests.simulation.small import write_data

PROBLEMS = {
    "mlp": {"name": "torch", "module": {"name": "mlp", "hidden": [3]}, "dataset": "small.npz", "batch": 4},
    "softmax": {"name": "softmax", "data": "small.npz", "batch": 4},
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
    assert byzmesh("run", "run.yaml", "--out", "out", "--json")[0] == 0
    models = np.load("out/models.npy")
    told = f"model.safetensors: worker 3, {models.shape[1]} parameters, round 3 (finished)\n"
    assert byzmesh("export", "out", "--worker", "3", "--to", "model.safetensors") == (0, told, "")
    assert byzmesh("export", "out", "--worker", "3", "--to", "model.pt")[0] == 0
    one, two = safetensors.torch.load_file("model.safetensors"), torch.load("model.pt", weights_only=True)
    assert sorted(one) == sorted(two) and all(torch.equal(one[key], two[key]) for key in two)
    flat = np.sort(np.concatenate([value.numpy().reshape(-1) for value in one.values()]))
    np.testing.assert_array_equal(flat, np.sort(models[3]))


def test_mistakes_are_one_line(tmp_path: Path, byzmesh: Any) -> None:
    write_config(tmp_path, PROBLEMS["softmax"])
    assert byzmesh("run", "run.yaml", "--out", "out", "--json")[0] == 0
    for arguments, words in [
        (["out", "--worker", "7", "--to", "m.pt"], "--worker must be the id of an honest worker, got 7"),
        (["out", "--to", "m.onnx"], "--to must end in .safetensors"),
        (["nowhere", "--to", "m.pt"], "nowhere holds no checkpoint.byz"),
    ]:
        code, out, error = byzmesh("export", *arguments)
        assert (code, out) == (2, "") and error.startswith(f"error: {words}") and error.count("\n") == 1


def test_without_pytorch_one_line_names_the_extra(tmp_path: Path) -> None:
    write_config(tmp_path, PROBLEMS["mlp"])
    block = "import sys; sys.modules['torch'] = None; from byzmesh.cli import main; main()"
    for arguments, what in [(["run", "run.yaml"], "problem 'torch'"), (["export", "out", "--to", "m.pt"], "export")]:
        command = [sys.executable, "-c", block, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr == f"error: {what} needs an extra that is not installed: pip install 'byzmesh[torch]'\n"

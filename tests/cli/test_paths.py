"""File names in a config are relative to its folder, those on the command line to the current one: for every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from byzmesh.config.overrides import load_config
from byzmesh.errors import ConfigError, DataError
from byzmesh.peers.identity import keygen
from tests.cli.commands import as_json, run
from tests.simulation.small import write_data

EDGES = "0 1\n1 2\n2 3\n3 0\n0 2\n1 3\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in `lab` beside its files, while the current folder is another one."""
    lab, here = tmp_path / "lab", tmp_path / "here"
    (lab / "data").mkdir(parents=True)
    here.mkdir()
    monkeypatch.chdir(here)
    write_data(lab / "data")
    (lab / "office.edges").write_text(EDGES)
    content: dict[str, Any] = {
        "problem": {"name": "softmax", "dataset": "data/small.npz", "batch": 4},
        "network": {"file": "office.edges", "byzantine": [3]},
        "attack": "gaussian",
        "rounds": 2,
    }
    (lab / "run.yaml").write_text(yaml.safe_dump(content))
    (lab / "grid.yaml").write_text(yaml.safe_dump({"base": content, "axes": {"seed": [0, 1]}}))
    return lab / "run.yaml"


def test_run_and_what_reads_it_later_from_a_third_folder(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = as_json("run", "../lab/run.yaml")["key"]
    assert Path("runs.db").exists()
    monkeypatch.chdir(tmp_path)
    assert run("export", key, "--store", "here/runs.db", "--to", "m.safetensors").exit_code == 0
    assert run("certify", "--run", key, "--store", "here/runs.db").exit_code in (0, 1, 3)
    assert run("suspects", key, "--store", "here/runs.db").exit_code == 0


def test_sweep_and_plan(config: Path) -> None:
    assert [point["seconds"] is not None for point in as_json("sweep", "../lab/grid.yaml", "--plan")] == [True, True]
    assert [one["status"] for one in as_json("sweep", "../lab/grid.yaml", "--workers", "0")] == ["finished"] * 2


def test_show_draw_certify_design(config: Path) -> None:
    shown = as_json("show", "../lab/run.yaml")
    assert shown["problem"]["dataset"] == str(config.parent / "data" / "small.npz")
    assert len(shown["network"]["edges"]) == 6
    assert run("draw", "../lab/run.yaml", "--out", "net.png", "--data", "data.png").exit_code == 0
    assert Path("net.png").exists() and Path("data.png").exists()
    assert run("certify", "../lab/run.yaml", "--search", "0").exit_code in (0, 1, 3)
    assert run("design", "../lab/run.yaml", "--f", "1").exit_code in (0, 1)


def test_peers_plan(config: Path) -> None:
    keygen(Path("keys"), 4)
    done = run("peers", "plan", "../lab/run.yaml", "--host-map", "127.0.0.1:7000", "--keys", "keys")
    assert done.exit_code == 0
    assert Path("network.yaml").exists()


def test_settings_are_relative_to_the_current_folder(config: Path) -> None:
    Path("mine.edges").write_text("0 1\n1 2\n2 0\n")
    found = load_config("../lab/run.yaml", ["network.file=mine.edges", "network.byzantine=[2]"])
    assert found["network"]["n"] == 3
    with pytest.raises((ConfigError, DataError), match=r"here/data/small\.npz"):
        run("run", "../lab/run.yaml", "--set", "problem.dataset=data/small.npz")


def test_a_module_in_a_file_beside_the_config(config: Path) -> None:
    (config.parent / "home_test_models.py").write_text(
        "import torch\ndef make(shape, classes, hidden=3):\n"
        "    return torch.nn.Sequential(torch.nn.Linear(shape[0], hidden), torch.nn.Linear(hidden, classes))\n"
    )
    content = yaml.safe_load(config.read_text())
    file = config.parent / "home_test_models.py"
    for name in ("home_test_models:make", "home_test_models.py:make"):
        problem = {"name": "torch", "dataset": "data/small.npz", "batch": 4, "module": name}
        config.write_text(yaml.safe_dump({**content, "problem": problem}))
        told = load_config("../lab/run.yaml")["problem"]["module"]
        assert told == {"name": f"{file}:make", "hidden": 3}
    key = as_json("run", "../lab/run.yaml")["key"]
    assert run("export", key, "--to", "m.safetensors").exit_code == 0
    problem = {"name": "torch", "dataset": "data/small.npz", "module": "nowhere.py:make"}
    config.write_text(yaml.safe_dump({**content, "problem": problem}))
    with pytest.raises(ConfigError, match=r"there is no file .*lab/nowhere\.py"):
        load_config(config)

"""`byzmesh run` and its neighbours as a user meets them: results, resume after SIGKILL, messages on mistakes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.simulation.small import write_data

BYZMESH = [sys.executable, "-c", "from byzmesh.cli import main; main()"]
EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = [path for path in sorted(EXAMPLES.glob("*.yaml")) if "rule" in yaml.safe_load(path.read_text())]
"""The examples that configure one run; grids and networks of peers are run by their own rooms' tests."""


def byzmesh(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BYZMESH, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    content: dict[str, Any] = {
        "problem": {"name": "softmax", "data": str(write_data(tmp_path)), "batch": 8},
        "network": "paper/two-castle",
        "rule": "ios",
        "attack": "gaussian",
        "rounds": 6000,
        "evaluate_every": 100,
        "step": 0.05,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_run_prints_json_and_writes_its_folder(config: Path, tmp_path: Path) -> None:
    done = byzmesh(
        "run", str(config), "--set", "rounds=20", "--set", "rule.name=cc", "--out", str(tmp_path / "a"), "--json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "finished" and result["rounds"] == 20
    assert result["config"]["rule"]["name"] == "CC"
    assert np.load(tmp_path / "a" / "models.npy").shape[0] == 10
    assert json.loads((tmp_path / "a" / "config.json").read_text()) == result["config"]


def test_a_killed_run_resumes_bit_for_bit(config: Path, tmp_path: Path) -> None:
    whole = byzmesh("run", str(config), "--out", str(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    out, draw = tmp_path / "killed", random.Random(4)
    kills = 0
    for attempt in range(8):
        again = ["--resume"] if attempt else []
        command = [*BYZMESH, "run", str(config), "--out", str(out), "--checkpoint-every", "0.05", *again]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60.0
        before = _stamp(out)
        while process.poll() is None and _stamp(out) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 0.2))
        if process.poll() is None and attempt < 4:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        _, errors = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors
    assert kills >= 1
    assert (out / "models.npy").read_bytes() == (tmp_path / "whole" / "models.npy").read_bytes()
    one, two = (json.loads((folder / "metrics.json").read_text())["metrics"] for folder in (out, tmp_path / "whole"))
    assert one == two


def _stamp(folder: Path) -> int:
    try:
        return (folder / "checkpoint.byz").stat().st_mtime_ns
    except OSError:
        return 0


def test_a_folder_with_a_run_is_not_overwritten(config: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = byzmesh("run", str(config), "--set", "rounds=1", "--out", str(tmp_path / "a"))
    assert done.returncode == 2 and "--resume" in done.stderr


def test_a_diverged_run_exits_with_one(config: Path) -> None:
    done = byzmesh("run", str(config), "--set", "rule=weimean", "--set", "attack=huge", "--set", "rounds=50", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "diverged"


MISTAKES: list[tuple[dict[str, Any], list[str]]] = [
    ({"netwrok": "ring"}, ["'netwrok'", "'network'"]),
    ({"rule": "ois"}, ["unknown rule 'ois'", "'IOS'"]),
    ({"rule": {"name": "cc", "tua": 1}}, ["rule CC", "'tua'", "'tau'"]),
    ({"rule": {"name": "cc", "tau": -1}}, ["tau", "positive", "-1"]),
    ({"rule": {"tau": 1}}, ["rule", "'name'"]),
    ({"rule": ["ios"]}, ["rule", "name"]),
    ({"attack": "sign-fliping"}, ["unknown attack", "'sign-flipping'"]),
    ({"network": "two-castel"}, ["unknown topology", "'two-castle'"]),
    ({"network": {"name": "ring"}}, ["ring", "'n'"]),
    ({"network": {"name": "ring", "n": 6, "k": 2}}, ["ring", "'k'"]),
    ({"network": {"file": "missing.edges"}}, ["missing.edges"]),
    ({"network": {"name": "ring", "n": 6, "byzantine": [9]}}, ["byzantine", "9"]),
    ({"network": {"name": "ring", "n": 6, "weights": "metro"}}, ["metro"]),
    ({"rounds": "many"}, ["rounds", "'many'"]),
    ({"rounds": -1}, ["rounds", "-1"]),
    ({"rounds": True}, ["rounds", "True"]),
    ({"evaluate_every": 0}, ["evaluate_every", "0"]),
    ({"seed": 1.5}, ["seed", "1.5"]),
    ({"dtype": "float16"}, ["dtype", "float16"]),
    ({"f": -1}, ["f", "-1"]),
    ({"f": "exakt"}, ["f", "exakt"]),
    ({"f": 12}, ["f = 12", "IOS", "largest feasible f is 9"]),
    ({"f": [1, 2]}, ["10"]),
    ({"step": {"name": "inverse-sqr"}}, ["inverse-sqrt"]),
    ({"step": -0.1}, ["-0.1"]),
    ({"local": {"deacy": 1}}, ["'deacy'", "'decay'"]),
    ({"local": {"decay": -1}}, ["decay", "-1"]),
    ({"profile": "papper"}, ["profile", "'paper'"]),
    ({"measure": ["gradiant"]}, ["gradiant", "gradient"]),
    ({"problem": {"name": "softmax", "data": "nowhere.npz"}}, ["nowhere.npz"]),
    ({"problem": {"name": "softmax", "data": "cifar10", "data_dir": "nowhere"}}, ["nowhere"]),
    ({"problem": {"name": "softmax", "batch": 0}}, ["batch", "0"]),
    ({"problem": {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 0}}}, ["alpha", "0"]),
]


@pytest.mark.parametrize(("change", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes_in_a_config(
    config: Path, change: dict[str, Any], words: list[str], capsys: Any, monkeypatch: Any
) -> None:
    from byzmesh.cli import main

    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **change}))
    monkeypatch.setattr(sys, "argv", ["byzmesh", "run", str(config)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    message = capsys.readouterr().err.strip()
    assert "\n" not in message and message.startswith("error: ")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rule: [unclosed", ["line 1"]),
        ("rule: ios\nrule: krum\n", ["line 2", "twice"]),
        ("- a\n- b\n", ["mapping", "list"]),
        ("", ["mapping"]),
    ],
)
def test_broken_files(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    done = byzmesh("run", str(path))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    for word in ("broken.yaml", *words):
        assert word in done.stderr


def test_missing_file_and_bad_setting(config: Path, tmp_path: Path) -> None:
    done = byzmesh("run", str(tmp_path / "nothing.yaml"))
    assert done.returncode == 2 and "nothing.yaml" in done.stderr and "Traceback" not in done.stderr
    done = byzmesh("show", str(config), "--set", "rounds")
    assert done.returncode == 2 and "KEY=VALUE" in done.stderr


def test_show_writes_out_every_default(config: Path) -> None:
    shown = yaml.safe_load(byzmesh("show", str(config), "--set", "profile=paper").stdout)
    assert shown["problem"]["batching"] == "consecutive" and shown["dtype"] == "float64"
    assert shown["local"] == {"decay": 0.01, "momentum": "none", "beta": 0.9}
    assert shown["network"]["byzantine"] == [7, 9]


def test_draw(tmp_path: Path) -> None:
    done = byzmesh("draw", "paper/octopus", "--out", str(tmp_path / "octopus.svg"))
    assert done.returncode == 0 and "12 workers, 2 of them lying" in done.stdout
    assert (tmp_path / "octopus.svg").stat().st_size > 5000


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_examples_run(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    rounds = min(int(content.get("rounds", 20)), 20)
    done = byzmesh(
        "run", str(path), "--set", f"rounds={rounds}", "--set", "evaluate_every=10", "--json", cwd=EXAMPLES.parent
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"

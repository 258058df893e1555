"""`byzmesh run` and related verbs as a user meets them: results, resuming after SIGKILL, error messages."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from byzmesh.store import open_store
from byzmesh.sweeps.checkpoints import checkpoint_folder
from tests.processes import PATIENCE, results, start, statuses, wait_for
from tests.processes import command as byzmesh
from tests.simulation.small import write_data

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = [path for path in sorted(EXAMPLES.glob("*.yaml")) if "rule" in yaml.safe_load(path.read_text())]
"""The examples that configure one run; grids and networks of peers are run by their own rooms' tests."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config in the current folder, which is where the store goes."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.yaml"
    content: dict[str, Any] = {
        "problem": {"name": "softmax", "dataset": str(write_data(tmp_path)), "batch": 8},
        "network": "paper/two-castle",
        "rule": "ios",
        "attack": "gaussian",
        "rounds": 60,
        "evaluate_every": 100,
        "step": 0.05,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_run_computes_into_the_store_and_says_where(config: Path) -> None:
    done = byzmesh("run", str(config), "--set", "rounds=20", "--set", "rule.name=cc", "--out", "a", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["status"], told["rounds"], told["computed"]) == ("finished", 20, True)
    assert told["config"]["rule"]["name"] == "CC"
    key = told["key"]
    assert f"Run {key[:12]} is kept in runs.db." in done.stderr
    with open_store("runs.db", readonly=True) as store:
        assert store.get(key).config == told["config"]
        assert {name: values.tolist() for name, values in store.series(key).items()} == told["metrics"]
    assert "4 files in a: config.json, metrics.json, metrics.csv, models.safetensors" in done.stderr
    assert json.loads(Path("a", "config.json").read_text()) == told["config"]
    assert Path("a", "models.safetensors").read_bytes() == Path(f"runs.db.models/{key}.safetensors").read_bytes()


def test_a_finished_run_is_shown_not_computed(config: Path) -> None:
    first = byzmesh("run", str(config), "--set", "rounds=20")
    again = byzmesh("run", str(config), "--set", "rounds=20", "--store", "runs.db")
    assert (first.returncode, again.returncode, again.stdout) == (0, 0, first.stdout)
    assert "honest messages cut" in first.stdout and "20 rounds in" in first.stdout
    assert "already computed" not in first.stderr
    assert "It was already computed; --recompute computes it again." in again.stderr
    once_more = byzmesh("run", str(config), "--set", "rounds=20", "--recompute", "--json")
    assert json.loads(once_more.stdout)["computed"] is True


TOUCHY = """
import os, time
from pathlib import Path
import byzmesh as bm

@bm.register_metric("touchy")
def touchy(at):
    "Notes the round; dies in the one that it is told, or waits for a file."
    with open(Path(__file__).parent / "noted", "a") as noted:
        print(at.round, file=noted)
    if os.environ.get("DIES_IN") == str(at.round):
        os.kill(os.getpid(), 9)
    while "WAITS_FOR" in os.environ and not Path(os.environ["WAITS_FOR"]).exists():
        time.sleep(0.01)
    return 0.0
"""


@pytest.fixture
def touchy(config: Path, tmp_path: Path) -> list[str]:
    """The words of a short run that notes its evaluations and that the environment can kill or hold up."""
    (tmp_path / "touchy.py").write_text(TOUCHY)
    return ["run", str(config), "--set", "rounds=60", "--set", "evaluate_every=10", "--set", "measure=[touchy]"]


def test_a_killed_run_continues_bit_for_bit(touchy: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touchy += ["--plugin", "touchy.py", "--checkpoint-seconds", "1e-9"]
    whole = byzmesh(*touchy, "--store", "whole.db")
    assert whole.returncode == 0, whole.stderr
    Path("noted").unlink()
    store = tmp_path / "killed.db"
    for dies_in in ("20", "40", "50"):
        before = _stamp(store)
        monkeypatch.setenv("DIES_IN", dies_in)
        assert byzmesh(*touchy, "--store", store).returncode == -signal.SIGKILL
        assert _stamp(store) > before
    monkeypatch.delenv("DIES_IN")
    done = byzmesh(*touchy, "--store", store)
    assert done.returncode == 0, done.stderr
    assert Path("noted").read_text().split() == ["0", "10", "20", "20", "30", "40", "40", "50", "50", "60"]
    assert results(store) == results(tmp_path / "whole.db")
    (key,) = results(store)
    one, two = (tmp_path / f"{name}.db.models" / f"{key}.safetensors" for name in ("killed", "whole"))
    assert one.read_bytes() == two.read_bytes()
    assert not (tmp_path / "killed.db.checkpoints").exists()


def _stamp(store: Path) -> int:
    """When the only checkpoint was written."""
    try:
        return max(path.stat().st_mtime_ns for path in checkpoint_folder(store).iterdir() if path.name[0] != ".")
    except (OSError, ValueError):
        return 0


def test_ctrl_c_says_how_to_continue(config: Path, tmp_path: Path) -> None:
    process = start("run", str(config), "--set", "rounds=1000000", "--checkpoint-seconds", "0.05")
    wait_for(lambda: _stamp(tmp_path / "runs.db") > 0, process)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "Stopped after round" in said and "of 1000000" in said and "The same command continues from there." in said
    assert statuses(tmp_path / "runs.db") == ["interrupted"]


def test_two_runs_at_once_compute_it_once(touchy: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not end before the other process has said that it waits for it."""
    monkeypatch.setenv("WAITS_FOR", str(tmp_path / "go"))
    both = [start(*touchy, "--plugin", "touchy.py", "--json") for _ in range(2)]
    told = ["", ""]
    with selectors.DefaultSelector() as said:
        for number, process in enumerate(both):
            assert process.stderr is not None
            said.register(process.stderr, selectors.EVENT_READ, number)
        while not any("waiting for it" in text for text in told):
            ready = said.select(PATIENCE)
            assert ready, told
            for key, _ in ready:
                text = os.read(key.fd, 65536).decode()
                assert text, "it ended"
                told[key.data] += text
    waits = ["is being computed by process" in text for text in told]
    (tmp_path / "go").touch()
    answers = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(waits) == [False, True] and [answer["computed"] for answer in answers] == [not one for one in waits]
    assert answers[0]["metrics"] == answers[1]["metrics"]


def test_a_failed_run_is_one_line_kept_and_tried_again(config: Path, tmp_path: Path) -> None:
    wrong = ["run", str(config), "--set", "rule=krum", "--set", "f=9", "--set", "rounds=3"]
    for _ in range(2):
        done = byzmesh(*wrong)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("error: f = 9 is infeasible for rule Krum") and done.stderr.count("\n") == 1
    assert statuses(tmp_path / "runs.db") == ["failed"]


def test_a_store_or_folder_that_cannot_be_written_is_one_line(config: Path, tmp_path: Path) -> None:
    Path("file").write_text("")
    for arguments, words in [
        (["--store", "none/runs.db"], "is in a directory that does not exist"),
        (["--store", "file/runs.db"], "runs.db"),
        (["--store", str(config)], "is not a byzmesh store"),
        (["--out", "file"], "folder file cannot be created"),
        (["--keep-models", "some"], "keep_models must be none, final or all, got 'some'"),
        (["--checkpoint-seconds", "0"], "checkpoint_seconds must be a positive number, got 0.0"),
    ]:
        done = byzmesh("run", str(config), "--set", "rounds=3", *arguments)
        assert done.returncode == 2, arguments
        assert done.stderr.splitlines()[-1].startswith("error: ") and words in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


def test_a_full_disk_is_one_line(config: Path) -> None:
    words = ["run", config, "--set", "rounds=3", "--set", "problem.dataset=mnist", "--checkpoint-seconds", 1e6]
    done = byzmesh(*words, file_size=250_000)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the models of a run could not be written") and done.stderr.count("\n") == 1
    assert statuses(Path("runs.db")) == ["interrupted"]
    again = byzmesh(*words)
    assert again.returncode == 0, again.stderr


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
    ({"problem": {"name": "softmax", "dataset": "nowhere.npz"}}, ["nowhere.npz"]),
    ({"problem": {"name": "softmax", "dataset": "cifar10", "data_dir": "nowhere"}}, ["nowhere"]),
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
def test_examples_run_from_any_folder(path: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    rounds = max(1, min(int(content.get("rounds", 20)), 20) // content.get("local", {}).get("steps", 1))
    done = byzmesh("run", str(path), "--set", f"rounds={rounds}", "--set", "evaluate_every=10", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"

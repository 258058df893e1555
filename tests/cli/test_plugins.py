"""`--plugin mine.py` and `plugins: [mine.py]` work in every verb that builds parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from byzmesh.store import open_store
from tests.peers.networks import free_ports
from tests.processes import command

SCRIPT = """
import networkx
import numpy as np
import byzmesh as bm

@bm.register_rule("stubborn", aliases=("mule",))
def stubborn(own, received, weights, f, share: float = 0.1):
    "A little of the neighbours."
    return own + share * (received.mean(axis=0) - own)

@bm.register_attack("nothing-new")
def nothing_new(own, received):
    "Nothing at all."
    return 0.0 * own

@bm.register_topology("wheel-of-mine")
def wheel(n: int):
    "A hub joined to a ring."
    return networkx.wheel_graph(n)

@bm.register_metric("model_norm", direction="down")
def model_norm(at):
    "Norm of the average model."
    return float(np.linalg.norm(at.average))
"""
CONFIG = {
    "problem": "quadratic",
    "network": {"name": "wheel-of-mine", "n": 6, "byzantine": [1]},
    "rule": {"name": "mule", "share": 0.3},
    "attack": "nothing-new",
    "rounds": 10,
    "measure": ["model_norm"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "mine.py").write_text(SCRIPT)
    (tmp_path / "lab" / "run.yaml").write_text(json.dumps({**CONFIG, "plugins": ["mine.py"]}))
    (tmp_path / "lab" / "bare.yaml").write_text(json.dumps(CONFIG))
    return tmp_path


def grid(folder: Path, **parts: Any) -> Path:
    path = folder / "lab" / "grid.yaml"
    path.write_text(json.dumps({"base": CONFIG, "axes": {"rule": ["stubborn", "ios"], "seed": [0, 1]}, **parts}))
    return path


def test_a_sweep_in_two_processes_uses_a_scripts_rule(folder: Path) -> None:
    one = command("sweep", grid(folder), "--plugin", "lab/mine.py", "--workers", 2, "--store", "a.db", cwd=folder)
    assert one.returncode == 0, one.stderr
    exclude = [{"rule": "mule", "seed": 1}]
    two = command(
        "sweep", grid(folder, plugins=["mine.py"], exclude=exclude), "--workers", 2, "--store", "b.db", cwd=folder
    )
    assert two.returncode == 0, two.stderr
    with open_store(folder / "a.db", readonly=True) as store:
        runs = store.list(status="finished")
        assert len(runs) == 4 and {run.config["rule"]["name"] for run in runs} == {"stubborn", "IOS"}
        assert runs[0].config["plugins"] == [str(folder / "lab" / "mine.py")]
        assert all("model_norm" in run.final for run in runs)
    with open_store(folder / "b.db", readonly=True) as store:
        assert {run.key for run in store.list()} == {run.key for run in runs[:1] + runs[2:]}
    chosen = ("--metric", "model_norm", "--where", "rule=mule", "--plugin", "lab.mine")
    table = command("table", "--store", "a.db", *chosen, cwd=folder)
    assert table.returncode == 0 and "stubborn" in table.stdout, table.stderr


def test_a_run_says_in_its_file_what_it_needs(folder: Path) -> None:
    shown = command("show", "lab/run.yaml", "--json", cwd=folder)
    config = json.loads(shown.stdout)
    assert config["rule"] == {"name": "stubborn", "share": 0.3} and config["network"]["name"] == "wheel-of-mine"
    assert config["plugins"] == [str(folder / "lab" / "mine.py")]
    (folder / "again.yaml").write_text(shown.stdout)
    for words in (["lab/run.yaml"], ["again.yaml"], ["lab/bare.yaml", "--plugin", "lab/mine.py"]):
        done = command("run", *words, "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["metrics"]["model_norm"]
    bare = command("run", "lab/bare.yaml", cwd=folder)
    assert (bare.returncode, bare.stderr.count("\n")) == (2, 1) and "unknown" in bare.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("list", "rules"), "mule"),
        (("list", "topologies", "--json"), "wheel-of-mine"),
        (("draw", "wheel-of-mine", "--set", "network.n=6", "--out", "w.png"), "6 workers"),
        (("design", "wheel-of-mine", "--param", "n=6", "--f", "1"), "wheel-of-mine"),
        (("certify", "wheel-of-mine", "--param", "n=6", "--rule", "stubborn", "--f", "1", "--search", "0"), "stubborn"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_other_verbs_load_plugins_too(folder: Path, words: tuple[str, ...], expected: str) -> None:
    done = command(*words, "--plugin", "lab/mine.py", cwd=folder)
    assert done.returncode in (0, 1, 3) and "Traceback" not in done.stderr, done.stderr
    assert expected in done.stdout


def test_the_arena(folder: Path) -> None:
    words = (
        "--rules",
        "mule",
        "--attacks",
        "nothing-new",
        "--rounds",
        "2",
        "--workers",
        "1",
        "--plugin",
        "lab/mine.py",
    )
    done = command("arena", *words, cwd=folder)
    assert done.returncode == 0 and "stubborn" in done.stdout, done.stderr


def test_peers(folder: Path) -> None:
    assert command("keygen", "keys", "--peers", 6, cwd=folder).returncode == 0
    ports = {str(peer): f"127.0.0.1:{port}" for peer, port in enumerate(free_ports(6))}
    (folder / "hosts.yaml").write_text("".join(f"{peer}: '{address}'\n" for peer, address in ports.items()))
    words = ("lab/bare.yaml", "--set", "measure=[]", "--host-map", "hosts.yaml", "--keys", "keys")
    planned = command("peers", "plan", *words, "--plugin", "lab/mine.py", "--out", "network.yaml", cwd=folder)
    assert planned.returncode == 0, planned.stderr
    assert "plugins: [lab/mine.py]" in (folder / "network.yaml").read_text()
    drill = ("--local", "--byzantine", "1", "--attack", "nothing-new", "--plugin", "lab/mine.py", "--store", "runs.db")
    done = command("peers", "launch", "network.yaml", "--keys", "keys", *drill, cwd=folder)
    assert done.returncode == 0 and "stubborn" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "lab/run.yaml", "--plugin", "none.py"), "none.py: No such file or directory"),
        (("sweep", "lab/grid.yaml", "--plugin", "bad.py"), "bad.py, line 2: ZeroDivisionError: division by zero"),
        (("list", "rules", "--plugin", "no.such.module"), "plugin no.such.module: there is no module 'no'"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_mistakes_are_one_line(folder: Path, words: tuple[str, ...], message: str) -> None:
    (folder / "bad.py").write_text("x = 0\n1 / x\n")
    done = command(*words, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and message in done.stderr


@pytest.mark.parametrize("name", ["IOS", "ios", "scissor-of-mine", "zeros"])
def test_a_name_that_is_built_in_is_refused_where_it_is_given(folder: Path, name: str) -> None:
    kind = "attack" if name == "zeros" else "rule"
    aliases = ', aliases=("iterative-outlier-scissor",)' if name == "scissor-of-mine" else ""
    arguments = "own, received" + (", weights, f" if kind == "rule" else "")
    (folder / "taken.py").write_text(
        f'import byzmesh as bm\n\n@bm.register_{kind}("{name}"{aliases})\ndef taken({arguments}):\n    return own\n'
    )
    done = command("list", f"{kind}s", "--plugin", "taken.py", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "taken.py, line 3: ConfigError: " in done.stderr and "is taken by" in done.stderr

"""`byzmesh keygen`, `peers` and `peer`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml

from byzmesh.cli.peers import rows, series_of
from byzmesh.errors import ConfigError, NoLiars
from byzmesh.peers.drill.drill import Drill
from byzmesh.peers.drill.launch import store_result
from byzmesh.peers.identity import new_keys
from byzmesh.peers.network_file import load_network, network_file
from byzmesh.store import open_store
from byzmesh.sweeps.forensics import suspects
from tests.cli.commands import run
from tests.peers.networks import free_ports, make_network
from tests.processes import command


def test_plan_and_launch_from_the_command_line(tmp_path: Path) -> None:
    run("keygen", tmp_path / "keys", "--peers", 5)
    config = {"network": {"name": "ring", "n": 5}, "rule": "weimean", "problem": "quadratic", "rounds": 20}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "hosts.yaml").write_text(
        yaml.safe_dump({peer: f"127.0.0.1:{port}" for peer, port in enumerate(free_ports(5))})
    )
    path = tmp_path / "network.yaml"
    words = ["plan", tmp_path / "run.yaml", "--host-map", tmp_path / "hosts.yaml"]
    done = run("peers", *words, "--keys", tmp_path / "keys", "--out", path)
    assert done.exit_code == 0, done.output
    assert load_network(path).rounds == 20
    planned = path.read_bytes()
    with pytest.raises(ConfigError, match="exists; its peers would no longer understand each other"):
        run("peers", *words, "--keys", tmp_path / "keys", "--out", path)
    assert path.read_bytes() == planned
    assert run("peers", *words, "--keys", tmp_path / "keys", "--out", path, "--force").exit_code == 0
    assert path.read_bytes() != planned  # another nonce
    done = run("peers", *words, "--keys", tmp_path / "keys", "--set", "b=0.4", "--out", tmp_path / "weighed.yaml")
    assert "peers count" in done.stdout and load_network(tmp_path / "weighed.yaml").bound(0) == 1
    with pytest.raises(ConfigError, match="--local"):
        run("peers", "launch", path)
    with pytest.raises(NoLiars, match="attack gaussian: nobody lies here"):
        run("peers", "launch", path, "--local", "--out", tmp_path / "out", "--attack", "gaussian")
    with pytest.raises(NoLiars, match="attack gaussian: nobody lies here"):
        run("peers", *words, "--keys", tmp_path / "keys", "--set", "attack=gaussian", "--out", tmp_path / "other.yaml")
    done = run("peers", "launch", path, "--local", "--out", tmp_path / "out", "--store", tmp_path / "s.db")
    assert done.exit_code == 0, done.output
    assert "moved up" in done.output
    stored = re.search(r"stored as (\w+)", done.output)
    assert stored is not None
    key, where = stored[1], ("--store", tmp_path / "s.db")
    for reader, said in (
        (["suspects", key], "Nobody stands out"),
        (["report", "--metric", "loss", "--out", tmp_path / "report.html"], "report.html"),
        (["plot", "--metric", "loss", "--out", tmp_path / "plot.png"], "plot.png written"),
        (["table", "--metric", "loss"], "WeiMean"),
        (["runs", "list"], key),
        (["runs", "show", key], "kind: drill"),
        (["runs", "compare", key, key], "consensus_error"),
        (["runs", "export", tmp_path / "runs.csv"], "runs.csv written"),
    ):
        done = run(*reader, *where)
        assert done.exit_code == 0 and said in done.output, (reader, done.output)
    assert "The theorems along this run" in run("certify", "--run", key, *where).output
    with pytest.raises(ConfigError, match="is a drill: export its models from its --out"):
        run("export", key, "--to", tmp_path / "model.safetensors", *where)
    assert "peer 3" in run("export", tmp_path / "out", "--worker", 3, "--to", tmp_path / "model.safetensors").output


def test_a_plan_says_how_to_drill_the_attack_that_it_leaves_out(tmp_path: Path) -> None:
    run("keygen", tmp_path / "keys", "--peers", 5)
    config = {"network": {"name": "ring", "n": 5, "byzantine": [2]}, "rule": "weimean", "problem": "quadratic"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**config, "attack": {"name": "gaussian", "std": 30}}))
    words = ["--host-map", "127.0.0.1:7000", "--keys", tmp_path / "keys", "--out", tmp_path / "network.yaml"]
    done = run("peers", "plan", tmp_path / "run.yaml", *words)
    assert done.exit_code == 0, done.output
    assert "--byzantine 2 --attack gaussian:std=30.0 to byzmesh peers launch" in done.output
    assert "gaussian" not in (tmp_path / "network.yaml").read_text()


def test_one_peer_by_its_command_ends_on_sigterm(tmp_path: Path) -> None:
    make_network(
        tmp_path,
        2,
        real=True,
        edges=[[0, 1]],
        rule="weimean",
        problem="quadratic",
        timeouts={"round": 0.05, "start": 0.05},
    )
    code = (
        "import sys; from pathlib import Path; from byzmesh.cli.peer import command; "
        "command(Path(sys.argv[1]), 0, Path(sys.argv[2]), out=Path(sys.argv[3]))"
    )
    words = [str(tmp_path / "network.yaml"), str(tmp_path / "peer0.key"), str(tmp_path / "out")]
    with subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert '"evaluated"' in process.stderr.readline()
        process.terminate()
        rest = process.stderr.read()
    assert process.returncode == 0 and '"left"' in rest
    assert (tmp_path / "out" / "peer0.ckpt").exists()


def test_warnings_are_lines_of_the_log(tmp_path: Path) -> None:
    """f = 1 is too large for TriMean when one of three messages is missing. Nobody else is there: exit code 4."""
    options: dict[str, Any] = {"rule": "trimean", "problem": "quadratic", "rounds": 3}
    waits = {"round": 0.01, "start": 0.01, "linger": 0.01}
    make_network(tmp_path, 4, real=True, topology={"name": "complete", "n": 4}, timeouts=waits, **options)
    words = ["peer", tmp_path / "network.yaml", "--id", 0, "--key", tmp_path / "peer0.key", "--out", tmp_path / "out"]
    done = command(*words)
    *lines, last = done.stderr.splitlines()
    logged = [json.loads(line) for line in lines]
    told = [line["text"] for line in logged if line["event"] == "warning"]
    assert len(told) == 1 and told[0].startswith("rule TriMean with f = 1 at worker 0: it resists 0 of the d - f = 2")
    assert done.returncode == 4 and last.startswith("error: peer 0 heard none")


def test_a_disk_without_room_for_anything(tmp_path: Path) -> None:
    """One line on stderr at the end, its own exit code, no traceback."""
    alone: dict[str, Any] = {"edges": [], "rule": "nocomm", "problem": {"name": "quadratic", "dimension": 5000}}
    make_network(tmp_path, 1, real=True, rounds=5, checkpoint_seconds=1e-9, **alone)
    words = ["peer", tmp_path / "network.yaml", "--id", 0, "--key", tmp_path / "peer0.key"]
    done = command(*words, "--out", tmp_path / "out", file_size=8000)
    assert done.returncode == 5 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: peer 0 trained to round 5")


def test_the_table_has_a_column_per_metric_that_was_asked_for() -> None:
    said = {
        "round": 5,
        "accuracy": 0.5,
        "loss": 1.0,
        "class_accuracy_0": 0.25,
        "silent": 1,
        "suspects": [7],
        "edges": [],
    }
    status: dict[int, dict[str, Any]] = {0: said, 3: {"round": 0}}
    assert series_of(status) == ["accuracy", "class_accuracy_0"]
    assert list(rows(status)) == [
        ("0", "5", "50.00", "25.00", "1", "0", "0", "0", "7"),
        ("3", "0", "-", "-", "0", "0", "0", "0", ""),
    ]


def test_an_operator_changes_members_from_the_command_line(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    run("keygen", keys, "--peers", 5)
    assert "operator.key" in run("keygen", keys, "--operator").output
    config = {"network": {"name": "complete", "n": 5}, "rule": "ios", "problem": "quadratic", "rounds": 100, "f": 1}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    first, second, third = (tmp_path / name for name in ("network.yaml", "next.yaml", "third.yaml"))
    run("peers", "plan", tmp_path / "run.yaml", "--host-map", "127.0.0.1:7000", "--keys", keys, "--out", first)
    assert "epoch 0, 5 peers, signed by operator" in run("peers", "sign", first, "--key", keys / "operator.key").output
    assert "peer5.key" in run("keygen", keys, "--id", 5).output
    added = ["--add", "5=127.0.0.1:7005", "--links", "0,1,2", "--share", 2, "--keys", keys]
    done = run("peers", "change", first, "--out", second, "--from-round", 50, *added)
    assert "epoch 1 from round 50 on, 6 peers; sign it next" in done.output, done.output
    run("peers", "sign", second, "--key", keys / "operator.key", "--after", first)
    file = load_network(second)
    assert (file.epoch, file.from_round, sorted(file.remotes(5)), file.share(5)) == (1, 50, [0, 1, 2], 2)
    assert "peer3.2.key" in run("keygen", keys, "--id", 3).output
    more = ["--new-key", 3, "--keys", keys, "--remove", "1", "--move", "2=127.0.0.1:7100", "--f", 0]
    run("peers", "change", second, "--out", third, "--from-round", 60, *more)
    run("peers", "sign", third, "--key", keys / "operator.key", "--after", second)
    later = load_network(third)
    assert later.ids == [0, 2, 3, 4, 5] and later.entry(2).address == "127.0.0.1:7100" and later.bound(5) == 0
    assert later.entry(3).public_key != file.entry(3).public_key and later.run == file.run
    assert sorted(later.remotes(5)) == [0, 2]
    for words, message in (
        (["keygen", keys], "one of --peers, --id and --operator"),
        (["peers", "change", first, "--out", third, "--from-round", 5], "exists"),
        (["peers", "change", first, "--out", tmp_path / "x", "--from-round", 5, "--remove", "9"], "no peer 9"),
        (["peers", "change", first, "--out", tmp_path / "x", "--from-round", 5, "--new-key", "3"], "no key of peer 3"),
        (["peers", "change", first, "--out", tmp_path / "x", "--from-round", 5, "--move", "3"], "ID=HOST:PORT"),
        (["peers", "sign", third, "--key", keys / "operator.key"], "--after"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(*words)


def test_a_stored_drill_has_nodes_where_the_peers_have_ids(tmp_path: Path) -> None:
    entries = [
        {"id": 10 * peer, "address": f"a:{peer}", "public_key": new_keys().public, "share": 0} for peer in range(1, 5)
    ]
    spec = {"topology": {"name": "complete", "n": 4}, "rule": "ios", "f": {10: 1, 20: 1, 30: 0, 40: 1}, "shares": 1}
    file = network_file({"peers": entries, "problem": {"name": "quadratic", "dimension": 2}, **spec})
    drill = SimpleNamespace(file=file, byzantine=[40], attack={"name": "isolation"})
    edges = [[40, 10, 9, 10], [20, 10, 1, 10], [99, 10, 9, 10]]  # 99 joined while they trained
    result = {"workers": {10: {"edges": edges}}, "metrics": {"round": np.array([0.0])}, "seconds": 1.0}
    key = store_result(tmp_path / "runs.db", cast(Drill, drill), result, [], 0.0)
    with open_store(tmp_path / "runs.db") as store:
        network = store.get(key).config["network"]
        assert network["byzantine"] == [3] and network["names"] == ["10", "20", "30", "40"]
        assert store.get(key).config["f"] == [1, 1, 0, 1]
        assert store.edges(key).tolist() == [[1, 0, 1, 10], [3, 0, 9, 10]]
        assert suspects(store, key).recall is not None

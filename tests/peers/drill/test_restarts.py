"""kill -9, restarts, SIGTERM: training goes on, and nothing is lost beyond the last checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from byzmesh.errors import ConfigError, DataError, PeerError
from byzmesh.peers.drill import chaos as chaos_module
from byzmesh.peers.drill import launch as launch_module
from byzmesh.peers.drill.chaos import KINDS, Chaos
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.drill.launch import launch
from byzmesh.peers.identity import load_keys, new_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.store import open_store
from byzmesh.sweeps.forensics import honest_cut, suspects
from byzmesh.training.checkpoint import load_checkpoint
from tests.peers.members import next_file, signed_network
from tests.peers.networks import LONG, make_network, real_six
from tests.peers.worlds import PATIENT
from tests.processes import alive, output, wait_for


def records(drill: Drill) -> dict[int, dict[str, Any]]:
    """What each honest peer evaluated last."""
    found = {}
    for peer in drill.honest:
        path = drill.out / f"peer{peer}.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        found[peer] = json.loads(lines[-1]) if lines else {"round": -1}
    return found


def rounds_of(drill: Drill) -> dict[int, int]:
    return {peer: record["round"] for peer, record in records(drill).items()}


def used(drill: Drill) -> dict[tuple[int, int], int]:
    """How many messages of each honest peer each other one has used."""
    edges = [edge for said in drill.status().values() for edge in said.get("edges", [])]
    return {(sender, reader): count for sender, reader, _, count in edges if sender in drill.honest}


def events(out: Path, peer: int, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (out / f"{peer}.log").read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def small(folder: Path, **more: Any) -> NetworkFile:
    usual: dict[str, Any] = {
        "edges": [[0, 1], [1, 2], [2, 0]],
        "rule": "weimean",
        "problem": {"name": "quadratic", "dimension": 50},
        "evaluate_every": 10,
    }
    return make_network(folder, 3, real=True, **{**usual, "checkpoint_seconds": 1e6, "rounds": 1_000_000, **more})


@pytest.mark.real
def test_a_signal_to_a_process_that_has_just_ended_harms_nobody(nursery: Nursery) -> None:
    """Its end may not be known yet, and its number may be another program's by then."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    try:
        for pid in (ended.pid, other.pid):
            nursery.pids["late"] = pid
            nursery.send("late", signal.SIGKILL)
        assert other.poll() is None
    finally:
        del nursery.pids["late"]
        other.communicate(b"\n")
    assert other.returncode == 0


@pytest.mark.real
def test_sigterm_finishes_the_round_checkpoints_and_leaves(tmp_path: Path, nursery: Nursery) -> None:
    small(tmp_path, timeouts={"round": 0.5})  # who is last waits in vain for those who have left
    with Drill(tmp_path / "network.yaml", tmp_path / "out", nursery=nursery) as drill:
        drill.start()
        assert drill.wait(LONG, lambda: min(rounds_of(drill).values()) > 5)
        # Ctrl-C is the launcher's, Ctrl-Z everybody's: all are in one group
        assert {os.getpgid(pid) for pid in (nursery.process.pid, *nursery.pids.values())} == {os.getpgrp()}
        for peer in range(3):
            drill.signal(peer, signal.SIGINT)
        reached = max(rounds_of(drill).values())
        assert drill.wait(LONG, lambda: min(rounds_of(drill).values()) > reached)
        for peer in range(3):
            drill.signal(peer, signal.SIGTERM)
        assert drill.wait(LONG)
        assert [nursery.codes[str(peer)] for peer in range(3)] == [0, 0, 0]
    for peer in range(3):
        left = events(tmp_path / "out", peer, "left")[-1]
        assert left["stopped"] and left["round"] == load_checkpoint(tmp_path / "out" / f"peer{peer}.ckpt")[1]["round"]


@pytest.mark.real
def test_a_checkpoint_of_another_run_or_peer_is_refused(tmp_path: Path) -> None:
    alone = {"edges": [], "rule": "nocomm", "problem": {"name": "quadratic", "dimension": 5}}
    file = make_network(tmp_path, 1, real=True, rounds=1, **alone, timeouts={"linger": 0.1})
    node = Node(file, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out")
    node.run()
    other = file.model_copy(update={"seed": 5})
    other.__dict__.pop("run", None)
    with pytest.raises(DataError, match="another run"):
        Node(other, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out")
    with pytest.raises(PeerError, match="not peer 0's"):
        Node(file, 0, new_keys(), out=tmp_path / "out")


@pytest.mark.real
def test_every_kind_of_chaos_is_survived(
    tmp_path: Path, nursery: Nursery, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second of chaos goes by when some peer has ended another four rounds."""
    clock = SimpleNamespace(now=0.0, round=0)
    monkeypatch.setattr(chaos_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    real_six(
        tmp_path,
        samples,
        rounds=1_000_000,
        evaluate_every=4,
        checkpoint_seconds=0.05,
        timeouts={"start_grace": 0.5, "round": 1.0},
    )
    with Drill(
        tmp_path / "network.yaml", tmp_path / "out", byzantine=[5], attack={"name": "isolation"}, nursery=nursery
    ) as drill:
        drill.start()
        assert drill.wait(LONG, lambda: min(rounds_of(drill).values()) > 0)
        chaos = Chaos(drill, KINDS)

        def done() -> bool:
            newest = max(rounds_of(drill).values())
            if newest >= clock.round + 4:
                clock.now, clock.round = clock.now + 1.0, newest
            chaos.tick()
            return len(chaos.events) == len(KINDS) and not chaos.pending

        assert drill.wait(LONG, done)
        assert [kind for kind, _ in chaos.events] == list(KINDS)
        assert drill.running() == drill.honest
        goal = max(rounds_of(drill).values()) + 4
        assert drill.wait(LONG, lambda: min(rounds_of(drill).values()) > goal)
        before = used(drill)
        assert drill.wait(LONG, lambda: all(used(drill)[link] > count + 5 for link, count in before.items()))
        assert drill.wait(LONG, lambda: min(record["accuracy"] for record in records(drill).values()) > 0.8)


@pytest.mark.real
def test_launch_stores_its_results_like_a_simulation(
    tmp_path: Path, nursery: Nursery, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "Drill", partial(Drill, nursery=nursery))
    real_six(tmp_path, samples, rounds=20, evaluate_every=10, timeouts=PATIENT, labels={"case": "drilled"})
    seen = []
    result = launch(
        tmp_path / "network.yaml",
        tmp_path / "out",
        byzantine=[5],
        attack={"name": "isolation"},
        store=tmp_path / "runs.db",
        watch=lambda drill: seen.append(drill.status()),
    )
    assert seen and all(said["round"] == 20 for said in result["workers"].values())
    assert result["metrics"]["round"].tolist() == [0, 10, 20]
    with open_store(tmp_path / "runs.db") as store:
        stored = store.get(result["key"])
        assert stored.status == "finished" and stored.config["attack"]["name"] == "isolation"
        assert stored.config["labels"] == {"case": "drilled"}
        assert stored.final["accuracy"] == result["metrics"]["accuracy"][-1]
        assert stored.final["consensus_error"] > 0
        edges = store.edges(result["key"])
        cut = honest_cut(store, result["key"])
        assert cut is not None and cut < 0.3
        assert suspects(store, result["key"]).recall is not None
    lying = edges[:, 0] == 5
    assert edges[lying, 2].sum() > 0.8 * edges[lying, 3].sum()
    assert edges[~lying, 2].sum() < 0.3 * edges[~lying, 3].sum()


def test_unknown_chaos_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chaos must be kill, pause, slow or partition, got 'kil'"):
        launch(tmp_path / "none.yaml", tmp_path / "out", chaos=["kil"])


def test_a_drill_does_not_begin_with_a_later_epoch(tmp_path: Path) -> None:
    next_file(tmp_path, signed_network(tmp_path, 4), 0, "network.yaml", remove=[3])
    with pytest.raises(PeerError, match=r"network\.yaml is of epoch 1: .* launch the file of epoch 0"):
        launch(tmp_path / "network.yaml", tmp_path / "out")


@pytest.mark.real
def test_nothing_survives_a_launcher_that_was_killed(tmp_path: Path) -> None:
    small(tmp_path)
    code = (
        "import sys, time; from byzmesh.peers.drill.drill import Drill\n"
        "drill = Drill(sys.argv[1], sys.argv[2]); drill.start()\n"
        "print(*drill.nursery.pids.values(), flush=True); time.sleep(60)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "network.yaml"), str(tmp_path / "out")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as launcher:
        pids = [int(word) for word in output(launcher).readline().split()]
        launcher.kill()
    assert len(pids) == 3
    wait_for(lambda: not any(alive(pid) for pid in pids))

"""kill -9, restarts, SIGTERM: training goes on, and nothing is lost beyond the last checkpoint."""

from __future__ import annotations

import json
import signal

import pytest

from byzmesh.errors import DataError, PeerError
from byzmesh.peers.drill import Drill
from byzmesh.peers.identity import load_keys
from byzmesh.peers.launch import launch
from byzmesh.peers.node import Node
from byzmesh.store import open_store
from byzmesh.training import load_checkpoint
from tests.peers.networks import make_network, two_castle


def rounds_of(drill):
    return {peer: said["round"] for peer, said in drill.status().items()}


def events(out, peer, name):
    lines = [json.loads(line) for line in (out / f"{peer}.log").read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def test_three_honest_peers_killed_in_turn_rejoin(tmp_path, nursery):
    two_castle(
        tmp_path, rounds=300, evaluate_every=100, checkpoint_every=10, timeouts={"start_grace": 0.5, "round": 2.0}
    )
    out = tmp_path / "out"
    with Drill(
        tmp_path / "network.yaml", out, byzantine=[7, 9], attack={"name": "sign-flipping"}, nursery=nursery
    ) as drill:
        drill.start()
        for place, victim in enumerate((0, 4, 11)):
            others = [peer for peer in drill.honest if peer != victim]
            start = 40 + 60 * place
            assert drill.wait(60, lambda: min(rounds_of(drill).values()) >= start)
            drill.signal(victim, signal.SIGKILL)
            assert drill.wait(10, lambda: victim not in drill.running())
            saved = load_checkpoint(out / f"peer{victim}.ckpt")[1]["round"]
            before = max(rounds_of(drill).values())
            assert drill.wait(30, lambda: min(rounds_of(drill)[peer] for peer in others) >= before + 15)
            drill.start_peer(victim)
            assert drill.wait(10, lambda: events(out, victim, "resumed") != [])
            assert events(out, victim, "resumed")[-1]["round"] == saved
        assert drill.wait(60)
        status = drill.status()
    assert all(said["round"] == 300 for said in status.values())
    assert min(said["accuracy"] for said in status.values()) > 0.8
    for victim in (0, 4, 11):
        assert events(out, victim, "moved up"), victim


def test_all_killed_and_restarted_resume(tmp_path, nursery):
    file = two_castle(tmp_path, rounds=80, evaluate_every=80, checkpoint_every=10, timeouts={"start_grace": 0.5})
    out = tmp_path / "out"
    with Drill(tmp_path / "network.yaml", out, nursery=nursery) as drill:
        drill.start()
        assert drill.wait(60, lambda: all((out / f"peer{peer}.ckpt").exists() for peer in range(12)))
    saved = {peer: load_checkpoint(out / f"peer{peer}.ckpt")[1]["round"] for peer in range(12)}
    assert min(saved.values()) >= 10
    with Drill(tmp_path / "network.yaml", out, nursery=nursery) as drill:
        drill.start()
        assert drill.wait(60)
        assert all(said["round"] == file.rounds for said in drill.status().values())
    for peer in range(12):
        assert events(out, peer, "resumed")[-1]["round"] == saved[peer]


def small(folder, **more):
    usual = {"edges": [[0, 1], [1, 2], [2, 0]], "rule": "weimean", "problem": {"name": "quadratic", "dimension": 50}}
    return make_network(folder, 3, **{**usual, "checkpoint_every": 1_000_000, "rounds": 1_000_000, **more})


def test_sigterm_finishes_the_round_checkpoints_and_leaves(tmp_path, nursery):
    small(tmp_path)
    with Drill(tmp_path / "network.yaml", tmp_path / "out", nursery=nursery) as drill:
        drill.start()
        assert drill.wait(20, lambda: min(rounds_of(drill).values()) > 5)
        for peer in range(3):
            drill.signal(peer, signal.SIGTERM)
        assert drill.wait(20)
        assert [nursery.codes[str(peer)] for peer in range(3)] == [0, 0, 0]
    for peer in range(3):
        left = events(tmp_path / "out", peer, "left")[-1]
        assert left["stopped"] and left["round"] == load_checkpoint(tmp_path / "out" / f"peer{peer}.ckpt")[1]["round"]


def test_a_checkpoint_of_another_run_or_peer_is_refused(tmp_path):
    file = small(tmp_path, rounds=1, edges=[[1, 2]], timeouts={"linger": 0.1})
    node = Node(file, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out")
    node.run()
    other = file.model_copy(update={"seed": 5})
    other.__dict__.pop("run", None)
    with pytest.raises(DataError, match="another run"):
        Node(other, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out")
    with pytest.raises(PeerError, match="not peer 0's"):
        Node(file, 0, load_keys(tmp_path / "peer1.key"), out=tmp_path / "out")


@pytest.mark.parametrize("chaos", [["kill", "pause"], ["slow", "partition"]])
def test_chaos_ends_with_everybody_trained_and_stored(tmp_path, chaos):
    two_castle(
        tmp_path, rounds=250, evaluate_every=50, checkpoint_every=10, timeouts={"start_grace": 0.5, "round": 1.0}
    )
    result = launch(
        tmp_path / "network.yaml",
        tmp_path / "out",
        byzantine=[7, 9],
        attack={"name": "isolation"},
        chaos=chaos,
        store=tmp_path / "runs.db",
    )
    assert [kind for kind, _ in result["events"]][:2] == chaos
    assert all(said["round"] == 250 for said in result["workers"].values())
    assert result["metrics"]["worst_accuracy"][-1] > 0.8
    with open_store(tmp_path / "runs.db") as store:
        run = store.get(result["key"])
        assert run.status == "finished" and run.config["attack"]["name"] == "isolation"
        assert run.final["accuracy"] == result["metrics"]["accuracy"][-1]
        edges = store.edges(result["key"])
        lying = edges[(edges[:, 0] == 7) | (edges[:, 0] == 9)]
        assert lying[:, 2].sum() > 0.8 * lying[:, 3].sum()

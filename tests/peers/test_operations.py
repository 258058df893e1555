"""Operating peers: health that tells the truth, neighbours lost and back, nobody trains alone, models in and out."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, DataError, Isolated, WeakBound
from byzmesh.peers.condition import trouble
from byzmesh.peers.export import peer_model
from byzmesh.peers.identity import load_keys
from byzmesh.peers.node import Node
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import Format
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
from tests.peers.networks import LONG, four, make_network
from tests.peers.worlds import Nodes, train
from tests.processes import command


def fetch(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LONG) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def each(text: str, metric: str) -> dict[str, float]:
    """A metric's values by neighbour; by "" if there is only one."""
    found = re.findall(rf'^byzmesh_{metric}(?:{{neighbour="(.*)"}})? (.*)$', text, re.MULTILINE)
    return {neighbour: float(value) for neighbour, value in found}


def slow_link(*_: object) -> float:
    return 0.05


@pytest.mark.real
def test_health_and_metrics_tell_the_truth(tmp_path: Path) -> None:
    """Friction 13: lost and back as events, as metrics, and in /health."""
    file = four(tmp_path, rounds=1000, timeouts={"round": 0.5, "start": 1.0, "start_grace": 0.05, "linger": 0.5})
    with VirtualWorld(link=slow_link) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer, metrics_port=0 if peer == 0 else None)
        world.run(3.0)
        node = nodes.latest[0]
        assert node.page is not None
        assert fetch(node.page.port, "/health") == (200, "ok\n")
        nodes.kill(1)
        world.run(5.0)
        assert fetch(node.page.port, "/health") == (200, "ok\n")  # two are left, of which one may lie
        text = fetch(node.page.port, "/metrics")[1]
        assert each(text, "connected") == each(text, "neighbour_up") == {"1": 0.0, "2": 1.0, "3": 1.0}
        assert each(text, "last_heard_seconds") == pytest.approx({"1": 1.95, "2": 0.0, "3": 0.0}, abs=0.051)
        assert each(text, "rounds_ignored_total") == {"1": 0.0, "2": 0.0, "3": float(node.peer.round)}
        assert each(text, "suspect") == {"1": 0.0, "2": 0.0, "3": 1.0}  # IOS ignores it in every round
        assert each(text, "waited_seconds_total") == pytest.approx({"": 5.0})  # work takes no time here
        assert each(text, "usual_round_seconds") == pytest.approx({"": 0.05})
        assert "# TYPE byzmesh_messages_silent_total counter" in text and f"byzmesh_round {node.peer.round:.1f}" in text
        nodes.kill(2)
        world.run(7.0)
        assert fetch(node.page.port, "/health") == (503, "hears 1 of 3 neighbours, of which 1 may lie\n")
        nodes.start(1)
        nodes.start(2)
        world.run(9.0)
        assert fetch(node.page.port, "/health") == (200, "ok\n")
        assert fetch(node.page.port, "/secret")[0] == 404
        node.folder.written = False
        assert "checkpoint" in str(trouble(node))
        node.folder.written = True
        node.ended -= 1000.0
        assert "no round ended" in str(trouble(node))
    events = [(what, facts["neighbour"]) for _, peer, what, facts in nodes.log if peer == 0 and "neighbour " in what]
    assert events[:2] == [("neighbour lost", 1), ("neighbour lost", 2)]
    assert sorted(events[2:]) == [("neighbour back", 1), ("neighbour back", 2)]


@pytest.mark.parametrize("rounds", [400, 100_000])
def test_a_peer_that_comes_back_after_the_others_left_does_not_train_alone(tmp_path: Path, rounds: int) -> None:
    """Row 9: it gives up with its own exit code, and its checkpoint is from when it had company."""
    file = four(tmp_path, rounds=rounds, timeouts={"round": 0.05, "start": 0.1, "linger": 0.1, "alone": 5.0})
    with VirtualWorld(link=slow_link) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer)
        world.run(2.0)
        for peer in range(4):
            nodes.kill(peer)
        saved = load_checkpoint(tmp_path / "out" / "peer3.ckpt")[1]["round"]
        nodes.start(3)
        with pytest.raises(Isolated, match="heard none") as failure:
            world.run(20.0)
    assert failure.value.exit_code == 4 and saved > 0
    kept = load_checkpoint(tmp_path / "out" / "peer3.ckpt")[1]["round"]
    assert saved <= kept <= saved + 3  # of what it trains alone, no more than three timeouts are kept


@pytest.mark.parametrize("rounds", [400, 100_000])
def test_a_peer_beside_one_that_may_lie_does_not_train_alone_either(tmp_path: Path, rounds: int) -> None:
    """Row 9 with one liar left: it answered every round, and the checkpoint went from round 174 to the last."""
    file = four(tmp_path, rounds=rounds, timeouts={"round": 0.05, "start": 0.1, "linger": 0.1, "alone": 5.0})
    form = Format(file.run, 5, file.dtype)
    with VirtualWorld(link=slow_link) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")

        def lie() -> None:
            transport = world.open(3, "", load_keys(tmp_path / "peer3.key"), file.remotes(3), form.size, print)
            while True:
                for sender, data in transport.receive(1.0)[0]:
                    transport.send(form.encode(np.full(5, 3.0), 3, form.decode(data, sender).round, sender))

        world.start(lie)
        for peer in range(3):
            nodes.start(peer)
        world.run(2.0)
        for peer in range(3):
            nodes.kill(peer)
        saved = load_checkpoint(tmp_path / "out" / "peer0.ckpt")[1]["round"]
        nodes.start(0)
        with pytest.raises(Isolated, match="heard 1 of its 3 neighbours, which may lie,") as failure:
            world.run(60.0)
    assert failure.value.exit_code == 4 and saved > 0
    assert saved <= load_checkpoint(tmp_path / "out" / "peer0.ckpt")[1]["round"] <= saved + 4


def test_one_of_two_neighbours_is_company(tmp_path: Path) -> None:
    """With so few, f = 1 cannot mean that one is not enough: two peers can train, and the rest of a ring of four."""
    ring = make_network(
        tmp_path,
        4,
        edges=[[0, 1], [1, 2], [2, 3], [3, 0]],
        f=1,
        rule="weimean",
        problem="quadratic",
        rounds=300,
        timeouts={"round": 0.1, "start": 0.2, "start_grace": 0.05, "linger": 0.1, "alone": 2.0},
    )
    with VirtualWorld(link=slow_link) as world:
        nodes = Nodes(world, ring, tmp_path, tmp_path / "out")
        for peer in (0, 1, 2):
            nodes.start(peer)
        world.run(done=lambda: len(nodes.running) == 3 and all(process.ended for process in nodes.running.values()))
    assert {load_checkpoint(tmp_path / "out" / f"peer{peer}.ckpt")[1]["round"] for peer in (0, 1, 2)} == {300}


def test_a_model_comes_out_of_a_running_peer(tmp_path: Path, samples: Path) -> None:
    """Friction 11."""
    file = four(tmp_path, problem={"name": "softmax", "dataset": str(samples)}, rounds=20)
    with VirtualWorld(link=slow_link) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer)
        world.run(done=lambda: (tmp_path / "out" / "peer2.ckpt").exists())
        task, model, peer, number = peer_model(tmp_path / "out", 2)
        assert peer == 2 and number < 20 and model.shape == (task.dimension,)
        with pytest.raises(ConfigError, match="choose by --worker"):
            peer_model(tmp_path / "out")
        world.run()
    to = tmp_path / "model.safetensors"
    done = command("export", tmp_path / "out", "--worker", 2, "--to", to)
    assert done.returncode == 0 and "peer 2" in done.stdout and "round 20" in done.stdout, done.stderr
    from safetensors.numpy import load_file

    assert set(load_file(to)) == {"weight", "bias"}
    again = command("export", tmp_path / "out", "--worker", 3, "--to", to)
    assert again.returncode == 2 and f"{to} exists; give another --to, or --force" in again.stderr
    with pytest.raises(ConfigError, match="no checkpoint of a peer"):
        peer_model(tmp_path)


def test_a_warm_start(tmp_path: Path) -> None:
    first = four(tmp_path / "first", rounds=30)
    models = train(first, tmp_path / "first", tmp_path / "first" / "out")
    second = four(tmp_path / "second", rounds=30)
    keys = load_keys(tmp_path / "second" / "peer0.key")

    def made(out: str, **options: Any) -> Node:
        with VirtualWorld() as world:
            return Node(second, 0, keys, out=tmp_path / out, world=world, **options)

    warm = made("warm", start_from=tmp_path / "first" / "out" / "peer3.ckpt")
    np.testing.assert_array_equal(warm.model[0], models[3])
    assert warm.peer.round == 0 and not np.array_equal(made("cold").model[0], models[3])
    save_checkpoint(tmp_path / "other.ckpt", {"model": np.zeros((1, 6))}, {})
    with pytest.raises(DataError, match="5 parameters"):
        made("bad", start_from=tmp_path / "other.ckpt")


def test_an_f_too_large_for_what_surely_arrives_is_told(tmp_path: Path) -> None:
    """Friction 10: of three messages two surely arrive, and of these TriMean resists none."""
    file = four(tmp_path, rule="trimean")
    with VirtualWorld() as world, pytest.warns(WeakBound, match="it resists 0 of the d - f = 2 messages"):
        Node(file, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path, world=world)


def test_the_deployed_file_can_be_certified(tmp_path: Path) -> None:
    """Friction 15."""
    four(tmp_path)
    done = command("certify", tmp_path / "network.yaml", "--search", 0)
    assert (
        done.returncode in (0, 1, 3) and "IOS on complete: 4 nodes, any of which may lie, at most 1" in done.stdout
    ), done.stderr

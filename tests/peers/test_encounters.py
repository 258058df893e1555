"""Peers on a changing network train as the simulator does, in virtual time, with few open links."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.peers.encounters import Encounter
from byzmesh.peers.identity import keygen, load_keys, load_public, new_keys
from byzmesh.peers.letters import APART
from byzmesh.peers.network_file import NetworkFile, load_network, save_network
from byzmesh.peers.node import Node
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer
from byzmesh.peers.plan import addresses, plan_network
from byzmesh.peers.rounds import Rounds
from byzmesh.sweeps.build import build
from tests.peers.networks import LONG, free_ports
from tests.peers.worlds import PATIENT, Nodes, train

PEERS, ROUNDS = 7, 12
PROCESSES: dict[str, Any] = {
    "schedule": {"name": "schedule", "edges": [[[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 6]], [[0, 6], [5, 2]]]},
    "directed schedule": {
        "name": "schedule",
        "edges": [[[0, 1], [2, 3], [4, 5], [6, 0]], [[1, 2], [3, 4], [5, 6]]],
        "directed": True,
    },
    "random-pull": {"name": "random-pull", "s": 3},
    "random-pull and sleep": [{"name": "random-pull", "s": 3}, {"name": "sleep", "p": 0.3}],
    "link-loss": {"name": "link-loss", "p": 0.4},
    "matching": "matching",
    "one-peer-exponential": "one-peer-exponential",
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    keygen(folder, PEERS)
    return folder


def config(process: Any, **more: Any) -> dict[str, Any]:
    problem = {"name": "quadratic", "dimension": 4, "targets": "normal", "init": "normal"}
    network = {"name": "complete", "n": PEERS, "weights": "equal"}
    run: dict[str, Any] = {"problem": problem, "network": network, "rule": "ios", "f": 0, "step": 0.2}
    local = {"decay": 0.01, "momentum": "heavy-ball"}
    return resolve({**run, "rounds": ROUNDS, "dtype": "float64", "local": local, "process": process, **more})


def planned(run: dict[str, Any], keys: Path, folder: Path, linger: float = 0.1, **more: Any) -> NetworkFile:
    timeouts = {**PATIENT, "linger": linger}
    network = Network.from_spec(run["network"])
    where = more.pop("where", addresses("127.0.0.1:7000", PEERS))
    file = plan_network(run, network, where, load_public(keys), folder, timeouts=timeouts, **more)
    return load_network(save_network(file, folder / "network.yaml"))


@pytest.mark.parametrize("name", PROCESSES)
def test_peers_train_as_the_simulator_does(keys: Path, tmp_path: Path, name: str) -> None:
    run = config(PROCESSES[name], f=1 if name == "random-pull" else 0)
    most: list[int] = []

    def watch(nodes: Nodes) -> None:
        def look() -> None:
            most.extend(len(node.peer.transport.connected) for node in nodes.latest.values())
            if nodes.world.time < 60.0:
                nodes.world.at(nodes.world.time + 0.0005, look)

        nodes.world.at(0.01, look)

    models = train(planned(run, keys, tmp_path, open_links=1), keys, tmp_path / "out", watch)
    simulated = build(run).run().models
    np.testing.assert_allclose(models, simulated, rtol=1e-9, atol=1e-10)
    still = build(config(None, f=0)).run().models
    assert np.abs(simulated - still).max() > 1e-3, "the process matters"
    if name == "one-peer-exponential":
        assert max(most) <= 3 + 1, "three rounds ahead and one more"


@pytest.mark.real
def test_real_peers_that_connect_on_demand_train_as_the_simulator_does(keys: Path, tmp_path: Path) -> None:
    """Real sockets: every peer listens to those due in three rounds and to one more, and waits for all of them."""
    run = config({"name": "random-pull", "s": 1}, f=0, evaluate_every=1)
    where = {peer: f"127.0.0.1:{port}" for peer, port in enumerate(free_ports(PEERS))}
    file = planned(run, keys, tmp_path, linger=LONG, open_links=1, where=where)
    open_links: list[int] = []
    ended = threading.Event()
    last: set[int] = set()
    nodes: list[Node] = []

    def log_of(me: int) -> Any:
        def log(event: str, **facts: Any) -> None:
            if event == "evaluated":
                open_links.append(len(nodes[me].peer.transport.connected))
                if facts["round"] == ROUNDS:
                    last.add(me)
                if len(last) == PEERS:
                    ended.set()

        return log

    for me in range(PEERS):
        secret = load_keys(keys / f"peer{me}.key")
        nodes.append(Node(file, me, secret, out=tmp_path / "out", log=log_of(me)))
    threads = [threading.Thread(target=node.run, daemon=True) for node in nodes]
    for thread in threads:
        thread.start()
    came = ended.wait(LONG)
    for node in nodes:
        node.stop = True  # until then all serve the slowest
    for thread in threads:
        thread.join(LONG)
    assert came and [node.peer.round for node in nodes] == [ROUNDS] * PEERS
    assert 0 < max(open_links) <= 3 + 1 < PEERS - 1
    models = np.concatenate([node.model for node in nodes])
    np.testing.assert_allclose(models, build(run).run().models, rtol=1e-9, atol=1e-10)


def test_peers_of_a_directed_network_train_as_the_simulator_does(keys: Path, tmp_path: Path) -> None:
    run = config(None, network={"name": "k-in", "n": PEERS, "k": 2, "seed": 1})
    file = planned(run, keys, tmp_path)
    assert (
        file.directed and file.network.links.sender.tolist() == Network.from_spec(run["network"]).links.sender.tolist()
    )
    models = train(file, keys, tmp_path / "out")
    np.testing.assert_allclose(models, build(run).run().models, rtol=1e-9, atol=1e-10)


def test_a_peer_that_hears_nobody_in_its_last_round_still_serves_its_readers(keys: Path, tmp_path: Path) -> None:
    """It leaves after `linger`, not at once: some of its readers may not have connected yet."""
    ring = [[peer, (peer + 1) % PEERS] for peer in range(PEERS)]
    run = config({"name": "schedule", "edges": [ring, []], "directed": True}, rounds=2)
    models = train(planned(run, keys, tmp_path, linger=30.0, open_links=1), keys, tmp_path / "out")
    np.testing.assert_allclose(models, build(run).run().models, rtol=1e-9, atol=1e-10)


class Knocking:
    """A world in which neighbours do nothing but connect: `joins` says who, `sent` is what was sent to anybody."""

    hoarding: ClassVar[set[int]] = set()
    connected: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.joins: list[int] = []
        self.sent: list[Any] = []

    def now(self) -> float:
        return 0.0

    def open(self, *given: Any) -> Any:
        return self

    def receive(self, seconds: float) -> Any:
        joined, self.joins = self.joins, []
        return [], joined

    def send(self, data: Any) -> None:
        self.sent.append(data)


def test_a_reader_that_connects_on_demand_is_served_as_often_as_it_has_messages_to_read() -> None:
    """A slow or finished sender stays in a round while its reader comes and goes, and loses what was on the way."""
    world: Any = Knocking()
    own = new_keys()
    meet = Encounter(active=True, senders=(), readers=(1,), own=1.0, weight=())
    given: dict[str, Any] = {"me": 0, "address": "here", "keys": own, "f": 0, "meet": lambda k: meet, "world": world}
    peer = Peer(np.ones(2), {1: ("there", own.public), 2: ("elsewhere", own.public)}, "mean", **given)
    for _ in range(3):
        peer.exchange(np.ones(2))
    served = []
    for _ in range(6):
        before, world.joins = len(world.sent), [1, 2]
        peer.pump(0.0)
        served.append(len(world.sent) - before)
    assert served == [3, 3, 3, 3, 0, 0], "three messages to the reader, none to the other, and no end of it"


def test_a_restarted_peer_knows_whom_to_expect(keys: Path, tmp_path: Path) -> None:
    run = config(PROCESSES["random-pull and sleep"])
    train(planned({**run, "rounds": 5}, keys, tmp_path), keys, tmp_path / "out")
    resumed = train(planned(run, keys, tmp_path), keys, tmp_path / "out")
    np.testing.assert_allclose(resumed, build(run).run().models, rtol=1e-9, atol=1e-10)


def test_messages_of_rounds_in_which_the_sender_is_not_due_are_dropped() -> None:
    rounds = Rounds([1, 2, 3], 0, Patience(), due=lambda k: [1 + k % 3])
    rounds.begin(0, 0.0)
    zero = np.zeros(1)
    assert rounds.offer(2, 0, zero, 0.1) == "not due" and not rounds.ready(0.2)
    assert rounds.offer(2, 1, zero, 0.1) == "early"
    assert rounds.offer(2, 1 + 3 * APART, zero, 0.1) == "not due", "too far ahead"
    assert rounds.offer(1, 0, zero, 0.1) == "current" and rounds.ready(0.2)
    assert rounds.gather(1)[1].tolist() == [True, False, False]
    rounds.begin(1, 0.3)
    assert rounds.ready(0.3) and rounds.gather(1)[1].tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("process", "f", "words"),
    [
        ("late", 0, "late is for the simulator"),
        ({"name": "sleep", "liars": "awake"}, 0, "peers do not know who lies"),
        ("matching", "exact", "give a number or quantile"),
    ],
)
def test_what_peers_cannot_do_is_said(keys: Path, tmp_path: Path, process: Any, f: Any, words: str) -> None:
    network = {"name": "complete", "n": PEERS, "byzantine": [3]}
    with pytest.raises(ConfigError, match=words):
        planned(config(process, f=f, network=network, attack="zero"), keys, tmp_path)

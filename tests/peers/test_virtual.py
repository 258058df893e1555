"""The virtual world itself: one seed is one run, links do what they are told, processes end when they are killed."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.peers import virtual_links
from byzmesh.peers.identity import new_keys
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.transport import QUEUE, Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.virtual_links import VirtualTransport
from byzmesh.peers.wire import EVERYONE
from byzmesh.training.checkpoint import load_checkpoint
from tests.peers.networks import four
from tests.peers.worlds import Nodes

KEYS = new_keys()
TO_ALL = struct.pack("<H", EVERYONE)


def jitter(random: random.Random, sender: int, receiver: int, now: float) -> float:
    return random.uniform(0.001, 0.01)


def open_at(world: VirtualWorld, me: int, others: list[int]) -> VirtualTransport:
    return world.open(me, "", KEYS, {other: Remote("", KEYS.public) for other in others}, 100, no_log)


def circle(seed: int) -> tuple[float, int, list[Any]]:
    """Four peers, ten rounds: time and number of events, and what they ended with."""
    ended: list[Any] = [None] * 4
    with VirtualWorld(seed, jitter) as world:

        def act(me: int) -> None:
            others = {i: ("", KEYS.public) for i in range(4) if i != me}
            peer = Peer(np.zeros(2), others, "ios", me=me, address="", keys=KEYS, f=1, world=world)
            vector = np.array([me, 1.0])
            for _ in range(10):
                world.sleep(0.001 * me)
                vector = peer.exchange(vector)
            peer.leave()
            ended[me] = vector.tolist()

        for me in range(4):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run()
        return world.time, world.events, ended


def test_one_seed_is_one_run() -> None:
    assert circle(1) == circle(1)
    assert circle(1)[0] != circle(2)[0]


def heard(world: VirtualWorld, count: int) -> list[int]:
    """The numbers that peer 1 hears of those that peer 0 sends, in order."""
    numbers: list[int] = []

    def say() -> None:
        transport = open_at(world, 0, [1])
        transport.receive(5.0)
        for number in range(count):
            transport.send(TO_ALL + bytes([number]))
            world.sleep(0.001)

    def hear() -> None:
        transport = open_at(world, 1, [0])
        while world.time < 1.0:
            numbers.extend(data[2] for _, data in transport.receive(1.0)[0])

    with world:
        world.start(say)
        world.start(hear)
        world.run()
    return numbers


def test_links_keep_the_order_unless_told_otherwise() -> None:
    assert heard(VirtualWorld(0, jitter), 50) == list(range(50))
    shuffled = heard(VirtualWorld(0, jitter, reorder=True), 50)
    assert shuffled != list(range(50)) and sorted(shuffled) == list(range(50))


def test_lost_messages_do_not_arrive_and_full_queues_lose_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_links, "_BUFFERS", 0)
    lossy = heard(VirtualWorld(0, lambda random, *_: 0.001 if random.random() < 0.5 else None), 50)
    assert 10 < len(lossy) < 40 and lossy == sorted(lossy)
    with VirtualWorld() as world:
        sender, reader = open_at(world, 0, [1]), open_at(world, 1, [0])
        process = world.start(lambda: world.sleep(1.0))
        world.run(0.01)
        sender.send(TO_ALL + b"not before it is known who joined")
        assert sender.receive(0.0)[1] == [1]
        for number in range(20):
            sender.send(TO_ALL + bytes([number]))
        world.run()
        assert [data[2] for _, data in reader.receive(0.0)[0]] == list(range(QUEUE)) and process.ended


def test_a_frame_above_the_size_ends_the_connection() -> None:
    with VirtualWorld() as world:
        sender, reader = open_at(world, 0, [1]), open_at(world, 1, [0])
        world.start(lambda: world.sleep(1.0))
        world.run(0.01)
        sender.receive(0.0)
        sender.send(TO_ALL + bytes(99))
        sender.send(TO_ALL)
        world.run()
        assert reader.receive(0.0)[0] == [] and sender.readers == set()


def test_errors_of_processes_and_checks_surface() -> None:
    with VirtualWorld() as world:
        world.start(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            world.run()
    with VirtualWorld() as world, pytest.raises(RuntimeError, match="may wait"):
        world.sleep(1.0)
    with VirtualWorld() as world:
        world.start(lambda: world.sleep(1.0))
        world.checks.append(lambda: pytest.fail("checked"))
        with pytest.raises(pytest.fail.Exception, match="checked"):
            world.run()


def test_killed_nodes_continue_from_their_checkpoint(tmp_path: Path) -> None:
    """The real checkpoints, on disk: what was trained before the last one is kept, and each peer moves up."""
    file = four(tmp_path)
    with VirtualWorld(3, jitter) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer)
        for place, victim in enumerate((3, 0)):
            goal = 40 + 60 * place
            world.run(done=lambda: len(nodes.latest) == 4 and min(n.peer.round for n in nodes.latest.values()) >= goal)
            nodes.kill(victim)
            reached = nodes.latest[victim].peer.round
            world.run(world.time + 0.5)
            nodes.start(victim)
            world.run(done=lambda: bool(nodes.said("resumed", victim)))
            assert 0 <= reached - nodes.said("resumed", victim)[0]["round"] <= 40
        world.run()
    assert all(node.peer.round == 200 for node in nodes.latest.values())
    assert nodes.latest[3].peer.jumps > 0 and nodes.latest[0].peer.jumps > 0
    models = np.concatenate([node.model for node in nodes.latest.values()])
    assert np.ptp(models, axis=0).max() < 0.2 * np.abs(models).max()


def test_all_killed_at_once_resume_where_they_were(tmp_path: Path) -> None:
    file = four(tmp_path, rounds=80)
    with VirtualWorld(4, jitter) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer)
        world.run(done=lambda: all((tmp_path / "out" / f"peer{peer}.ckpt").exists() for peer in range(4)))
        for peer in range(4):
            nodes.kill(peer)
        saved = {peer: load_checkpoint(tmp_path / "out" / f"peer{peer}.ckpt")[1]["round"] for peer in range(4)}
        for peer in range(4):
            nodes.start(peer)
        world.run()
    assert all(node.peer.round == 80 for node in nodes.latest.values())
    assert {peer: nodes.said("resumed", peer)[0]["round"] for peer in range(4)} == saved


def test_loss_and_delay_cost_no_message(tmp_path: Path) -> None:
    """50 ms of delay, and one message in twenty is sent again after 200 ms, as TCP does."""

    def link(random: random.Random, *_: object) -> float:
        return 0.05 + (0.2 if random.random() < 0.05 else 0.0)

    ring = {"topology": {"name": "ring", "n": 4}, "rule": "weimean", "f": 0, "rounds": 30}
    file = four(tmp_path, **ring, timeouts={})
    with VirtualWorld(5, link) as world:
        nodes = Nodes(world, file, tmp_path, tmp_path / "out")
        for peer in range(4):
            nodes.start(peer)
        world.run()
    for node in nodes.latest.values():
        assert node.peer.round == 30 and node.peer.tally.used.tolist() == [30, 30]

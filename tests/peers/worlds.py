"""Peers in a virtual world: whole nodes of a network file, or exchanges of small vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.attacks.base import attacks
from byzmesh.peers.drill.liars import Coalition
from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.peers.share import bind_share
from byzmesh.peers.virtual import Process, VirtualWorld

PATIENT = {"round": 600.0, "start": 600.0, "grace": 300.0, "start_grace": 300.0}
"""Nobody goes on without everybody, so that what comes out does not depend on who is quick."""


class Nodes:
    """The nodes of a network file as processes of a world; a node that was killed may be started again."""

    def __init__(self, world: VirtualWorld, file: NetworkFile, keys: Path, out: Path, **options: Any) -> None:
        self.world, self.file, self.keys, self.out, self.options = world, file, keys, out, options
        self.latest: dict[int, Node] = {}
        self.running: dict[int, Process] = {}
        self.log: list[tuple[float, int, str, dict[str, Any]]] = []

    def start(self, me: int, at: float | None = None, **options: Any) -> Process:
        def log(event: str, **facts: Any) -> None:
            self.log.append((self.world.time, me, event, facts))

        def work() -> None:
            self.latest[me] = self.make(me, log=log, **{**self.options, **options})
            self.latest[me].run()

        self.running[me] = self.world.start(work, self.world.time if at is None else at)
        return self.running[me]

    def make(self, me: int, **options: Any) -> Node:
        keys = load_keys(self.keys / f"peer{me}.key")
        return Node(self.file, me, keys, out=self.out, world=self.world, **options)

    def kill(self, me: int) -> None:
        self.running[me].kill()

    def said(self, event: str, me: int | None = None) -> list[dict[str, Any]]:
        return [facts for _, peer, what, facts in self.log if what == event and me in (None, peer)]


def drill(file: NetworkFile, keys: Path, out: Path, liars: list[int], attack: str) -> dict[int, Node]:
    """The honest nodes after a run beside liars that forge, all in a virtual world."""
    honest = [entry.id for entry in file.peers if entry.id not in liars]
    dimension = bind_share(file, honest[0])[0].dimension
    with VirtualWorld() as world:
        nodes = Nodes(world, file, keys, out)

        def lie() -> None:
            secrets = {liar: load_keys(keys / f"peer{liar}.key") for liar in liars}
            coalition = Coalition(file, secrets, attacks.build(attack), dimension, world=world)
            while True:
                for liar, transport in coalition.transports.items():
                    coalition.take(liar, transport.receive(0.0))
                coalition.lie()
                world.sleep(0.001)

        world.start(lie)
        for peer in honest:
            nodes.start(peer)
        world.run(done=lambda: len(nodes.running) == len(honest) and all(p.ended for p in nodes.running.values()))
    return nodes.latest


def train(file: NetworkFile, keys: Path, out: Path, disturb: Callable[[Nodes], None] | None = None) -> Any:
    """(n, D) what the peers of a network file end with, all of them honest."""
    count = len(file.peers)
    with VirtualWorld() as world:
        nodes = Nodes(world, file, keys, out)
        for peer in range(count):
            nodes.start(peer)
        if disturb is not None:
            disturb(nodes)
        world.run()
        assert world.time < PATIENT["round"], "somebody has left before all had heard it"
    assert [nodes.latest[peer].peer.round for peer in range(count)] == [file.rounds] * count
    return np.concatenate([nodes.latest[peer].model for peer in range(count)])

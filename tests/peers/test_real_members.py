"""The one test of changing members with real sockets: a key replaced, a peer removed, a peer added, while training."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.peers.changes import NewPeer
from byzmesh.peers.identity import Keyring, load_keys, one_more_key
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.wire import EVERYONE, Format
from tests.peers.members import next_file, signed_network
from tests.peers.networks import LONG, free_ports


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition; the limit is for a test that hangs."""
    limit = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


class Threads:
    """Nodes of this process, each in a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: dict[int, Node] = {}
        self.threads: dict[int, threading.Thread] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []

    def start(self, me: int, file: NetworkFile) -> None:
        def log(event: str, **facts: Any) -> None:
            self.log.append((me, event, facts))

        path = self.folder / f"given{me}.yaml"
        path.write_bytes(file.text)
        ring = Keyring(self.folder / f"peer{me}.key")
        self.nodes[me] = Node(file, me, ring, out=self.folder / "out", path=path, log=log)
        self.threads[me] = threading.Thread(target=self.nodes[me].run, daemon=True)
        self.threads[me].start()

    def reach(self, round: int) -> None:
        until(lambda: min(node.peer.round for node in self.nodes.values()) >= round, f"round {round}")

    def in_force(self, epoch: int) -> None:
        until(lambda: all(node.file.epoch == epoch for node in self.nodes.values()), f"epoch {epoch}")


@contextmanager
def threads(folder: Path) -> Iterator[Threads]:
    made = Threads(folder)
    yield made
    for node in made.nodes.values():
        node.stop = True
    for thread in made.threads.values():
        thread.join(LONG)


@pytest.mark.real
def test_members_change_between_real_sockets(tmp_path: Path) -> None:
    patience = {"round": 5.0, "start": 20.0, "start_grace": 0.5, "linger": 0.1, "alone": 60.0}
    file = signed_network(tmp_path, 5, real=True, rounds=1_000_000, evaluate_every=1_000_000, timeouts=patience)
    with threads(tmp_path) as run:
        for me in range(5):
            run.start(me, file)
        run.reach(5)

        # the key of peer 1, from the disk of peer 3
        key = one_more_key(tmp_path, 1)[1]
        one = next_file(tmp_path, file, 0, keys={1: key})
        (tmp_path / "given3.yaml").write_bytes(one.text)
        run.in_force(1)
        used = {me: int(run.nodes[me].peer.tally.used[run.nodes[me].peer.neighbours.index(1)]) for me in (0, 2, 3, 4)}
        until(
            lambda: all(
                run.nodes[me].peer.tally.used[run.nodes[me].peer.neighbours.index(1)] > used[me] + 5 for me in used
            ),
            "peer 1 is heard with its new key",
        )

        # whoever has the old key reads nothing and is not heard, though it listens to everybody
        form = Format(file.run, 5, file.dtype)
        where = f"127.0.0.1:{free_ports(1)[0]}"
        thief = Sockets(1, where, load_keys(tmp_path / "peer1.key"), one.remotes(1), form.size)
        refused = {me: run.nodes[me].peer.transport.strangers for me in used}
        stolen: list[Any] = []

        def try_all() -> bool:
            thief.send(bytes(form.encode(np.full(5, 1e3), 1, run.nodes[0].peer.round, EVERYONE)))
            stolen.extend(thief.receive(0.02)[0])
            return all(run.nodes[me].peer.transport.strangers > refused[me] for me in used)

        until(try_all, "all refuse the thief")
        thief.close(0.0)
        assert not stolen

        # peer 4 leaves, peer 5 joins
        new = NewPeer(f"127.0.0.1:{free_ports(1)[0]}", one_more_key(tmp_path, 5)[1], [0, 1, 2, 3], share=4)
        two = next_file(tmp_path, one, 0, remove=[4], add={5: new})
        (tmp_path / "given0.yaml").write_bytes(two.text)
        until(lambda: not run.threads[4].is_alive(), "peer 4 leaves")
        del run.nodes[4]
        run.in_force(2)
        run.start(5, two)
        until(lambda: any(event == "joined" for _, event, _ in run.log), "peer 5 joins")
        until(
            lambda: all(node.peer.tally.used.min() >= 5 for node in run.nodes.values()), "all go on hearing each other"
        )
        heard = {me: node.peer.tally.used.copy() for me, node in run.nodes.items()}
        until(
            lambda: all((node.peer.tally.used - heard[me]).min() >= 5 for me, node in run.nodes.items()), "still later"
        )
        assert {me: node.peer.neighbours for me, node in run.nodes.items()} == {
            me: sorted(two.remotes(me)) for me in two.ids
        }
        assert [me for me, event, _ in run.log if event == "removed"] == [4]
        assert not [event for _, event, _ in run.log if event in ("resumed", "cut off", "guard failed", "conflict")]

"""Peers without sockets: what one sends lies in the others' queues at once. Everything else is the real thing."""

from __future__ import annotations

import queue
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.peers.transport import Remote
from byzmesh.peers.wire import EVERYONE

PATIENT = {"round": 60.0, "start": 60.0, "grace": 30.0, "start_grace": 30.0}
"""Nobody goes on without everybody, so that what comes out does not depend on who is quick."""


class Transport:
    """Stands in for `byzmesh.peers.transport.Transport`."""

    def __init__(
        self,
        inboxes: dict[int, queue.Queue[tuple[int, bytes]]],
        me: int,
        address: str,
        keys: Any,
        neighbours: Mapping[int, Remote],
        size: int,
        log: Callable[..., None],
    ) -> None:
        self.me, self.inboxes, self.connected = me, inboxes, sorted(neighbours)
        self.hoarding: set[int] = set()
        self.strangers = 0
        self._joined = list(self.connected)

    def send(self, data: bytes | bytearray) -> None:
        (destination,) = struct.unpack("<H", data[:2])
        for neighbour in self.connected:
            if destination in (EVERYONE, neighbour):
                self.inboxes[neighbour].put((self.me, bytes(data)))

    def receive(self, seconds: float) -> tuple[list[tuple[int, Any]], list[int]]:
        joined, self._joined = self._joined, []
        try:
            return [self.inboxes[self.me].get(timeout=0.0 if joined else max(0.0, seconds))], joined
        except queue.Empty:
            return [], joined

    def close(self, linger: float = 0.0) -> None:
        """Nothing to close."""


@contextmanager
def in_memory(peers: int) -> Iterator[None]:
    """Peers made inside the block exchange their messages in memory."""
    inboxes: dict[int, queue.Queue[tuple[int, bytes]]] = {peer: queue.Queue() for peer in range(peers)}

    def make(*arguments: Any) -> Transport:
        return Transport(inboxes, *arguments)

    with mock.patch("byzmesh.peers.peer.Transport", make):
        yield


def train(file: NetworkFile, keys: Path, out: Path) -> np.ndarray[Any, Any]:
    """(n, D) what the peers of a network file end with, all of them honest, each in a thread."""
    count = len(file.peers)
    with in_memory(count), ThreadPoolExecutor(count) as pool:
        nodes = [Node(file, peer, load_keys(keys / f"peer{peer}.key"), out=out) for peer in range(count)]
        for done in [pool.submit(node.run) for node in nodes]:
            done.result()
    assert [node.peer.round for node in nodes] == [file.rounds] * count
    return np.concatenate([node.model for node in nodes])

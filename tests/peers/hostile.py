"""A neighbour with a valid key that does as it likes, and strangers without one."""

from __future__ import annotations

import struct
import time
from typing import Any

from byzmesh.peers.identity import Keys, zeromq
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.wire import EVERYONE, HEADER

zmq: Any = zeromq()
TOPIC = struct.pack("<H", EVERYONE)


class Hostile:
    """Publishes any bytes to its neighbours and hears their rounds."""

    def __init__(self, file: NetworkFile, me: int, keys: Keys) -> None:
        self.context = zmq.Context()
        self.publisher = self.context.socket(zmq.XPUB)
        self.publisher.linger = 0
        self.publisher.sndhwm = 100_000
        self.publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.publisher.curve_server = True
        self.publisher.curve_publickey = keys.public.encode()
        self.publisher.curve_secretkey = keys.secret.encode()
        self.publisher.bind(f"tcp://{file.entry(me).address}")
        self.ears = [
            subscriber(self.context, remote.address, remote.public_key, keys) for remote in file.remotes(me).values()
        ]
        self.round = -1

    def joined(self, count: int, seconds: float = 20.0) -> None:
        """Wait for that many subscriptions."""
        for _ in range(2 * count):
            assert self.publisher.poll(seconds * 1000)
            self.publisher.recv()

    def listen(self, seconds: float) -> int:
        """Hear for a while; the largest round of any neighbour so far."""
        poller = zmq.Poller()
        for ear in self.ears:
            poller.register(ear, zmq.POLLIN)
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            for ear, _ in poller.poll(max(1.0, 1000 * (limit - time.monotonic()))):
                self.round = max(self.round, HEADER.unpack_from(ear.recv())[5])
        return self.round

    def close(self) -> None:
        self.context.destroy(linger=0)


def subscriber(context: Any, address: str, server_key: str | None, keys: Keys | None) -> Any:
    """A connected subscriber, with whatever keys."""
    ear = context.socket(zmq.SUB)
    ear.linger = 0
    if keys is not None and server_key is not None:
        ear.curve_serverkey = server_key.encode()
        ear.curve_publickey = keys.public.encode()
        ear.curve_secretkey = keys.secret.encode()
    ear.subscribe(TOPIC)
    ear.connect(f"tcp://{address}")
    return ear


def resident(pid: int) -> int:
    """Bytes of memory a process holds."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096

"""A neighbour with a valid key that does as it likes, and strangers without one."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.identity import Keys, load_keys, zeromq
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.wire import EVERYONE, HEADER, Format
from tests.peers.networks import LONG, make_network

zmq: Any = zeromq()
TOPIC = struct.pack("<H", EVERYONE)
ID = 5
DIMENSION = 7850


class Hostile:
    """Publishes any bytes to its neighbours and hears their rounds."""

    def __init__(self, file: NetworkFile, me: int, keys: Keys) -> None:
        self.keys, self.context = keys, zmq.Context()
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

    def joined(self, count: int, seconds: float = LONG) -> None:
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


@dataclass(frozen=True)
class Siege:
    """Honest peers at work with one hostile neighbour."""

    file: NetworkFile
    drill: Drill
    hostile: Hostile
    me: int = ID
    """The hostile one."""


@contextlib.contextmanager
def siege(folder: Path, nursery: Nursery) -> Iterator[Siege]:
    """Five honest peers in a complete graph with the hostile one, past their twentieth round."""
    file = make_network(
        folder,
        6,
        edges=[[i, j] for i in range(6) for j in range(i)],
        rule="ios",
        f=1,
        problem={"name": "quadratic", "dimension": DIMENSION, "targets": "normal"},
        rounds=10_000_000,
        evaluate_every=10_000_000,
        timeouts={"start_grace": 0.3},
    )
    hostile = Hostile(file, ID, load_keys(folder / f"peer{ID}.key"))
    try:
        with Drill(folder / "network.yaml", folder / "out", nursery=nursery) as drill:
            drill.nursery.warm(drill.path)
            drill.honest.remove(ID)
            for peer in drill.honest:
                drill.start_peer(peer)
            hostile.joined(5)
            limit = time.monotonic() + LONG
            while hostile.listen(0.2) < 20:
                assert time.monotonic() < limit
            yield Siege(file, drill, hostile)
    finally:
        hostile.close()


def behaviours(siege: Siege) -> dict[str, Callable[[], object]]:
    """What the hostile one may publish, by name."""
    file, hostile = siege.file, siege.hostile
    form = Format(file.run, DIMENSION, file.dtype)
    random = np.random.default_rng(0)
    vector = random.normal(size=DIMENSION).astype(np.float32)
    good = bytes(form.encode(vector, siege.me, hostile.round))
    send = hostile.publisher.send
    return {
        "garbage": lambda: send(TOPIC + random.bytes(form.size - 2)),
        "truncated": lambda: send(good[: form.size // 2]),
        "damaged": lambda: send(good[:-9] + b"?" + good[-8:]),
        "replayed": lambda: send(good),
        "future": lambda: send(bytes(form.encode(vector, siege.me, hostile.round + 1_000_000))),
        "nan": lambda: send(bytes(form.encode(np.full(DIMENSION, np.nan), siege.me, hostile.round + 1))),
        "parts": lambda: hostile.publisher.send_multipart([TOPIC, b"x" * 1000, good]),
        "oversized": lambda: send(TOPIC + bytes(10 * form.size)),
    }


def flooding(siege: Siege) -> Callable[[], None]:
    """Thirty messages at once."""
    file, hostile = siege.file, siege.hostile
    good = bytes(Format(file.run, DIMENSION, file.dtype).encode(np.ones(DIMENSION), siege.me, hostile.round))

    def flood() -> None:
        for _ in range(30):
            with contextlib.suppress(zmq.Again):
                hostile.publisher.send(good, zmq.NOBLOCK)

    return flood


def slow_lorises(siege: Siege) -> list[socket.socket]:
    """Connections that begin a greeting and never end it, and some that send nothing."""
    made = []
    for peer in siege.drill.honest:
        host, _, port = siege.file.entry(peer).address.rpartition(":")
        for start in (b"", b"\xff", b"\xff" + bytes(8) + b"\x7f\x03"):
            made.append(socket.create_connection((host, int(port)), timeout=LONG))
            made[-1].sendall(start)
    return made

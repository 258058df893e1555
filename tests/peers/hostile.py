"""A neighbour with a valid key that does as it likes, and strangers without one."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byzmesh.peers.certificates import certificate, contexts
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.frames import LENGTH
from byzmesh.peers.handshake import Handshake, Opened, Refused
from byzmesh.peers.identity import Keys, load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.tcp import split_address
from byzmesh.peers.wire import EVERYONE, HEADER, Format
from tests.peers.networks import LONG, make_network

TOPIC = struct.pack("<H", EVERYONE)
ID = 5
DIMENSION = 7850
LARGEST = 1 << 20
"""What the hostile one may say in one message."""


class Hostile:
    """Says any bytes to its neighbours and hears their rounds."""

    def __init__(self, file: NetworkFile, me: int, keys: Keys) -> None:
        self.me, self.keys, self.round = me, keys, -1
        self.transport = Sockets(me, file.entry(me).address, keys, file.remotes(me), LARGEST)

    def follow(self, file: NetworkFile) -> None:
        """Go on among the members of another file."""
        self.transport.change(file.entry(self.me).address, self.keys, file.remotes(self.me))

    def joined(self, count: int, seconds: float = LONG) -> None:
        """Wait until that many listen."""
        found, limit = set[int](), time.monotonic() + seconds
        while len(found) < count:
            assert time.monotonic() < limit
            found |= set(self.transport.receive(0.05)[1])

    def send(self, data: bytes) -> None:
        """Any bytes, as one message to everybody."""
        self.transport.send(data)

    def raw(self, data: bytes) -> None:
        """Any bytes on the connections, which are no frame."""
        for voice in list(self.transport._voices.values()):
            with contextlib.suppress(OSError):
                voice.link.send(data)

    def listen(self, seconds: float) -> int:
        """Hear for a while; the largest round of any neighbour so far."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            for _, data in self.transport.receive(left)[0]:
                self.round = max(self.round, HEADER.unpack_from(data)[5])
        return self.round

    def close(self) -> None:
        self.transport.close(0.0)


def dial(address: str, server: str, keys: Keys, seconds: float = LONG, source: str = "127.0.0.1") -> Opened:
    """The handshake of whoever has these keys with whoever should have the public key `server`."""
    link = socket.create_connection(split_address(address), timeout=seconds, source_address=(source, 0))
    link.setblocking(False)
    handshake = Handshake(link, contexts(keys, [certificate(server)])[0], accepted=False)
    handshake.go_on()
    return finish(handshake, seconds)


def finish(handshake: Handshake, seconds: float = LONG) -> Opened:
    """Go on with a handshake that has begun, until it is over."""
    opened, limit = None, time.monotonic() + seconds
    try:
        with selectors.DefaultSelector() as selector:  # `select` knows no file beyond the 1,024th
            selector.register(handshake.link, selectors.EVENT_READ)
            while opened is None:
                assert selector.select(max(0.0, limit - time.monotonic())), "no answer"
                opened = handshake.read()
    except (OSError, Refused):
        handshake.link.close()
        raise
    return opened


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
    """Five honest peers in a complete graph with the hostile one, past their tenth round."""
    file = make_network(
        folder,
        6,
        real=True,
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
            while hostile.listen(0.02) < 10:
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
    send = hostile.send
    return {
        "garbage": lambda: send(TOPIC + random.bytes(form.size - 2)),
        "truncated": lambda: send(good[: form.size // 2]),
        "damaged": lambda: send(good[:32] + b"?" + good[33:]),
        "replayed": lambda: send(good),
        "future": lambda: send(bytes(form.encode(vector, siege.me, hostile.round + 1_000_000))),
        "nan": lambda: send(bytes(form.encode(np.full(DIMENSION, np.nan), siege.me, hostile.round + 1))),
        "tiny": lambda: send(TOPIC),
        "oversized": lambda: send(TOPIC + bytes(10 * form.size)),
        "no frame": lambda: hostile.raw(LENGTH.pack(form.size) + random.bytes(form.size)),
        "half a frame": lambda: hostile.raw(LENGTH.pack(form.size) + b"?"),
    }


def flooding(siege: Siege) -> Callable[[], None]:
    """Thirty messages at once."""
    file, hostile = siege.file, siege.hostile
    good = bytes(Format(file.run, DIMENSION, file.dtype).encode(np.ones(DIMENSION), siege.me, hostile.round))

    def flood() -> None:
        for _ in range(30):
            hostile.send(good)

    return flood


def slow_lorises(siege: Siege) -> list[socket.socket]:
    """Connections that begin a greeting and never end it, and some that send nothing."""
    made = []
    for peer in siege.drill.honest:
        host, _, port = siege.file.entry(peer).address.rpartition(":")
        for start in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
            made.append(socket.create_connection((host, int(port)), timeout=LONG))
            made[-1].sendall(start)
    return made

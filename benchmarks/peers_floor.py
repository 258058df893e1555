"""What of a peer's round is its transport: the same messages without a peer, beside the peers and the bare computation.

    python -m benchmarks.peers_floor [rounds] [repeats]

Twelve processes, two-castle: each sends 31,440 bytes to its ten neighbours in every round and reads ten messages,
without looking at them: through TCP as it is, through TLS 1.3, and in the frames of peers. CPU milliseconds per round
and process, alternating. With C for the computation and T for the transport, no peer can have a larger part of the
bare rate than C / (C + T).
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import statistics
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.peers import FORK, WARM, Cost, clocks, compute_cost, peers_cost, per_round, ports, slowest, together
from byzmesh.networks import Network
from byzmesh.peers import new_keys
from byzmesh.peers.certificates import certificate, contexts
from byzmesh.peers.frames import OVERHEAD, Ear, Room, Voice
from byzmesh.peers.handshake import KEY

MESSAGE = 31_440
"""Bytes of a message of D = 7,850 numbers."""


class Plain:
    """Both ends of a link that carries the bytes as they are, through TCP or TLS."""

    def __init__(self, link: Any) -> None:
        self.link, self._view, self._filled = link, memoryview(bytearray(MESSAGE)), 0

    def say(self, message: bytes) -> None:
        """Send a message."""
        self.link.sendall(message)

    def read(self, inbox: list[Any]) -> None:
        """Read what arrived."""
        while True:  # a TLS socket may hold more than one record
            try:
                self._filled += self.link.recv_into(self._view[self._filled :])
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            if self._filled == MESSAGE:
                self._filled = 0
                inbox.append(self._view)
                return


def links(me: int, where: list[int], near: list[int], barrier: Any) -> tuple[list[socket.socket], list[socket.socket]]:
    """Connections to read from and to write to, one of each per neighbour."""
    with socket.create_server(("127.0.0.1", where[me]), backlog=64) as server:
        barrier.wait()
        ears = [socket.create_connection(("127.0.0.1", where[neighbour])) for neighbour in near]
        for ear in ears:
            ear.sendall(struct.pack("<H", me))
        voices = [server.accept()[0] for _ in near]
        for voice in voices:
            voice.recv(2)
    for link in (*ears, *voices):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ears, voices


def bare(me: int, kind: str, keys: list[Any], where: list[int], near: list[list[int]], start: Any, answer: Any) -> None:
    """One process: send to all neighbours, wait for a message of each, and so on."""
    barrier, rounds = start
    raw_ears, raw_voices = links(me, where, near[me], barrier)
    ears: list[Any]
    voices: list[Any]
    if kind == "frames":
        shared = Room()
        ears = [Ear(0, link, bytes(KEY), MESSAGE, b"") for link in raw_ears]
        voices = [Voice(link, bytes(KEY), 8, shared) for link in raw_voices]
    else:
        if kind == "TLS 1.3":
            dialled, accepted = contexts(keys[me], [certificate(one.public) for one in keys])
            with ThreadPoolExecutor(2 * len(near[me])) as pool:
                waiting = [pool.submit(accepted.wrap_socket, link, server_side=True) for link in raw_voices]
                raw_ears = list(pool.map(dialled.wrap_socket, raw_ears))
                raw_voices = [one.result() for one in waiting]
        ears, voices = [Plain(link) for link in raw_ears], [Plain(link) for link in raw_voices]
    poll = select.epoll()
    for link in raw_ears:
        link.setblocking(False)
        poll.register(link, select.EPOLLIN)
    by_file = {ear.link.fileno(): ear for ear in ears}
    barrier.wait()
    data = bytes(MESSAGE)
    for number in range(rounds + WARM):
        if number == WARM:
            began = clocks()
        for voice in voices:
            voice.say(data)
        missing = set(by_file)
        while missing:  # a faster neighbour's next message waits in its own socket
            for file, _ in poll.poll():
                inbox: list[Any] = []
                by_file[file].read(inbox)
                if inbox:
                    missing.discard(file)
                    poll.modify(file, 0)
        for file in by_file:
            poll.modify(file, select.EPOLLIN)
    answer.put(per_round(began, rounds))
    barrier.wait()


def bare_cost(rounds: int, kind: str) -> Cost:
    """A round of the slowest of twelve processes that only send and read."""
    network = Network.from_spec({"name": "two-castle", "k": 6}).links
    near, keys = [network.of(me).tolist() for me in range(12)], [new_keys() for _ in range(12)]
    return slowest(together(bare, 12, kind, keys, ports(12), near, (FORK.Barrier(12), rounds)))


def main() -> None:
    """Medians of the repeats."""
    rounds, repeats = (int(word) for word in [*sys.argv[1:], *("200", "3")[len(sys.argv) - 1 :]])
    parts: dict[str, Callable[[], Cost]] = {
        "computation": lambda: compute_cost(2 * rounds),
        "TCP": lambda: bare_cost(rounds, "TCP"),
        "TLS 1.3": lambda: bare_cost(rounds, "TLS 1.3"),
        "frames": lambda: bare_cost(rounds, "frames"),
        "peers": lambda: peers_cost(rounds, "raw"),
        "peers, float16": lambda: peers_cost(rounds, "float16"),
    }
    found: dict[str, list[Cost]] = {name: [] for name in parts}
    for _ in range(repeats):
        for name, measure in parts.items():
            found[name].append(measure())
            print(f"{name}: {1e3 * found[name][-1][0]:.2f} ms, CPU {1e3 * found[name][-1][1]:.3f} ms", flush=True)
    computation = statistics.median(cpu for _, cpu in found["computation"])
    for name, costs in found.items():
        cpu = statistics.median(cpu for _, cpu in costs)
        whole = cpu if name.startswith(("peers", "computation")) else computation + cpu
        print(f"{name}: CPU {1e3 * cpu:.3f} ms; part of the bare rate at most {computation / whole:.3f}")
    print(f"{MESSAGE + OVERHEAD} bytes per frame, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

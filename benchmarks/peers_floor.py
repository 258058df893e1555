"""What of a peer's round is its transport: the same messages without a peer, beside the peers and the bare computation.

    python benchmarks/peers_floor.py [rounds] [repeats]

Twelve processes, two-castle: each sends 31,440 bytes to its ten neighbours in every round and reads ten messages,
through ZeroMQ as it is and with CURVE, without looking at them. CPU milliseconds per round and process, alternating.
With C for the computation and T for the transport, no peer can have a larger part of the bare rate than C / (C + T).
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

from byzmesh.networks import Network
from byzmesh.peers import new_keys
from byzmesh.peers.identity import zeromq
from peers import FORK, WARM, Cost, clocks, compute_cost, peers_cost, per_round, ports, slowest, together

MESSAGE = 31_440
"""Bytes of a message of D = 7,850 numbers."""


def bare(me: int, where: list[int], keys: list[Any] | None, near: list[list[int]], start: Any, answer: Any) -> None:
    """One process: send to all neighbours, wait for a message of each, and so on."""
    zmq: Any = zeromq()
    context, rounds = zmq.Context(), start[1]
    publisher = context.socket(zmq.XPUB)
    publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
    ears = [context.socket(zmq.SUB) for _ in near[me]]
    for socket in (publisher, *ears):
        socket.linger = 0
        if keys is not None:
            socket.curve_publickey, socket.curve_secretkey = keys[me].public.encode(), keys[me].secret.encode()
    publisher.curve_server = keys is not None
    publisher.bind(f"tcp://127.0.0.1:{where[me]}")
    poller = zmq.Poller()
    for ear, neighbour in zip(ears, near[me], strict=True):
        if keys is not None:
            ear.curve_serverkey = keys[neighbour].public.encode()
        ear.subscribe(b"")
        ear.connect(f"tcp://127.0.0.1:{where[neighbour]}")
        poller.register(ear, zmq.POLLIN)
    for _ in ears:
        publisher.recv()
    start[0].wait()
    data = bytes(MESSAGE)
    for number in range(rounds + WARM):
        if number == WARM:
            began = clocks()
        publisher.send(data)
        missing = set(ears)
        while missing:  # a faster neighbour's next message waits in its own socket
            for ear, _ in poller.poll():
                if ear in missing:
                    ear.recv()
                    missing.discard(ear)
                    poller.unregister(ear)
        for ear in ears:
            poller.register(ear, zmq.POLLIN)
    answer.put(per_round(began, rounds))
    start[0].wait()
    context.destroy()


def bare_cost(rounds: int, curve: bool) -> Cost:
    """A round of the slowest of twelve processes that only send and read."""
    links = Network.from_spec({"name": "two-castle", "k": 6}).links
    near = [links.of(me).tolist() for me in range(12)]
    keys = [new_keys() for _ in range(12)] if curve else None
    return slowest(together(bare, 12, ports(12), keys, near, (FORK.Barrier(12), rounds)))


def main() -> None:
    """Medians of the repeats."""
    rounds, repeats = (int(word) for word in [*sys.argv[1:], *("200", "3")[len(sys.argv) - 1 :]])
    parts: dict[str, Callable[[], Cost]] = {
        "computation": lambda: compute_cost(2 * rounds),
        "ZeroMQ": lambda: bare_cost(rounds, curve=False),
        "ZeroMQ with CURVE": lambda: bare_cost(rounds, curve=True),
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
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

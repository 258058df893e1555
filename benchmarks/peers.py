"""How fast peers are, as ratios within one run.

    python benchmarks/peers.py [rounds]

1. Twelve peers, two-castle, D = 7,850: rounds per second beside the same twelve workers' computation (gradient, local
   step, rule, each in a process of its own) without any sending, for each wire.
2. D = 1,000,000: bytes on the wire per message beside the raw vector, and the time of an exchange of two peers beside a
   bare loopback copy of the same bytes between two processes.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.peers import Patience, Peer, keygen, new_keys
from byzmesh.peers.audit import connections
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.network_file import NetworkFile, load_network, network_file, save_network
from byzmesh.peers.node import bind_share, local_round
from byzmesh.rules.inbox import make_inbox

FORK = multiprocessing.get_context("fork")
LARGE = 1_000_000


def ports(count: int) -> list[int]:
    """Free ports on loopback."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


def make(folder: Path, rounds: int, wire: str) -> NetworkFile:
    """The two-castle network of the paper, twelve honest peers."""
    public = keygen(folder, 12)
    file = network_file(
        {
            "peers": [
                {"id": i, "address": f"127.0.0.1:{port}", "public_key": public[i]} for i, port in enumerate(ports(12))
            ],
            "topology": {"name": "two-castle", "k": 6},
            "rule": "ios",
            "f": 2,
            "problem": {"name": "softmax", "partition": "one-class"},
            "local": {"decay": 0.01},
            "rounds": rounds,
            "evaluate_every": rounds // 2,
            "checkpoint_seconds": 1e6,
            "wire": wire,
        }
    )
    save_network(file, folder / "network.yaml")
    return file


def peers_rate(rounds: int, wire: str, nursery: Nursery) -> float:
    """Rounds per second of the second half of a drill, by the slowest peer."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rounds, wire)
        with Drill(Path(name, "network.yaml"), Path(name, "out"), nursery=nursery) as drill:
            drill.start()
            if not drill.wait(600):
                raise SystemExit("the peers did not finish")
        spans = []
        for peer in range(12):
            lines = [json.loads(line) for line in Path(name, "out", f"{peer}.log").read_text().splitlines()]
            when = {line["round"]: line["time"] for line in lines if line["event"] == "evaluated"}
            spans.append(when[rounds] - when[rounds // 2])
        return (rounds - rounds // 2) / max(spans)


def compute(path: str, me: int, rounds: int, barrier: Any, answer: Any) -> None:
    """One worker's computation: what a peer does in a round, without the network."""
    file = load_network(path)
    task, row = bind_share(file, me)
    rows, model = np.array([row]), task.initial()[row : row + 1].copy()
    local = local_round(file, task, row)
    local.start(model)
    degree = int(file.network.degree[me])
    weight, two = np.full((1, degree + 1), 1.0 / (degree + 1)), np.array([2])
    noise = 1e-3 * np.random.default_rng(me).normal(size=(degree, task.dimension)).astype(model.dtype)
    for k in range(-20, rounds):
        if k == 0:
            barrier.wait()
            began = time.perf_counter()
        half = local.half_steps(model, max(k, 0))
        inbox = make_inbox(file.made_rule, half, weight=weight, f=two, receiver=rows, messages=half + noise)
        model = local.apart(file.made_rule.apply(inbox, None)[0].models)
    answer.put(time.perf_counter() - began)


def compute_rate(rounds: int) -> float:
    """Rounds per second of twelve workers that only compute."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rounds, "raw")
        barrier, answer = FORK.Barrier(12), FORK.Queue()
        arguments = [(str(Path(name, "network.yaml")), i, rounds, barrier, answer) for i in range(12)]
        running = [FORK.Process(target=compute, args=one) for one in arguments]
        for process in running:
            process.start()
        spans = [answer.get() for _ in running]
        for process in running:
            process.join()
        return rounds / max(spans)


def exchange(me: int, where: list[str], keys: list[Any], rounds: int, answer: Any) -> None:
    """One of two peers that exchange a large vector."""
    vector = np.random.default_rng(me).normal(size=LARGE).astype(np.float32)
    other = {1 - me: (where[1 - me], keys[1 - me].public)}
    patience = Patience(timeout=60.0)
    with Peer(vector, other, "weimean", me=me, address=where[me], keys=keys[me], patience=patience) as peer:
        peer.exchange(vector)
        began = time.perf_counter()
        for _ in range(rounds):
            peer.exchange(vector)
        seconds = time.perf_counter() - began
        # includes handshakes, subscriptions and messages sent again to late joiners
        verdicts = peer.rounds.verdicts[1 - me]
        answer.put(
            (seconds / rounds, sum(link.received for link in connections()) / (verdicts.total() - verdicts["silent"]))
        )


def large(rounds: int) -> tuple[float, float]:
    """(seconds per round, bytes received per round) of two peers with D = 1,000,000."""
    where, keys, answer = [f"127.0.0.1:{port}" for port in ports(2)], [new_keys(), new_keys()], FORK.Queue()
    running = [FORK.Process(target=exchange, args=(me, where, keys, rounds, answer)) for me in (0, 1)]
    for process in running:
        process.start()
    found = [answer.get() for _ in running]
    for process in running:
        process.join()
    return max(seconds for seconds, _ in found), max(got for _, got in found)


def copy(port: int, rounds: int, server: socket.socket | None) -> float:
    """Seconds per round in which each of two processes sends and receives the same bytes, bare."""
    link = socket.create_connection(("127.0.0.1", port)) if server is None else server.accept()[0]
    data, room = bytes(4 * LARGE), bytearray(4 * LARGE)
    began = time.perf_counter()
    for _ in range(rounds):
        for turn in (0, 1):
            if (turn == 0) == (server is None):
                link.sendall(data)
            else:
                view = memoryview(room)
                while view:
                    view = view[link.recv_into(view) :]
    return (time.perf_counter() - began) / rounds


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    nursery = Nursery()
    try:
        alone = compute_rate(4 * rounds)
        print(f"12 workers, D = 7,850, computation alone: {alone:.0f} rounds per second")
        for wire in ("raw", "float16", "int8"):
            rate = peers_rate(rounds, wire, nursery)
            print(f"12 peers, wire {wire}: {rate:.0f} rounds per second, {rate / alone:.3f} of the computation alone")
    finally:
        nursery.close()
    seconds, received = large(20)
    print(f"D = 1,000,000: {received:.0f} bytes per message, {received / (4 * LARGE):.5f} of the raw vector")
    port = ports(1)[0]
    with socket.create_server(("127.0.0.1", port)) as server:
        other = FORK.Process(target=copy, args=(port, 20, None))
        other.start()
        bare = copy(port, 20, server)
        other.join()
    print(f"{1e3 * seconds:.1f} ms per round, {seconds / bare:.2f} times a bare loopback copy ({1e3 * bare:.1f} ms)")


if __name__ == "__main__":
    main()

"""How fast peers are, as ratios within one run: of rates, which other work on the machine blurs, and of CPU time.

    python benchmarks/peers.py [rounds] [repeats]

1. Twelve peers, two-castle, D = 7,850: rounds beside the same twelve workers' computation (gradient, local step, rule,
   each in a process of its own) without any sending, for each wire. On cores that are all busy the rate is one over the
   CPU time, so both ratios are the same on an idle machine.
2. D = 1,000,000: bytes on the wire per message beside the raw vector, and an exchange of two peers beside a bare
   loopback copy of the same bytes between two processes.
3. 48 peers, each linked to six: how long the longest round was, after the start, beside the timeout; without a pause,
   and with two seconds of it per round, as if the local work were longer.
4. The memory of one peer of the first network (`byzmesh peer`) that waits for the others; Linux only.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.peers import Patience, Peer, keygen, new_keys
from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile, load_network, network_file, save_network
from byzmesh.peers.node import Node
from byzmesh.peers.share import bind_share
from byzmesh.peers.warm import local_round, warm
from byzmesh.rules.inbox import make_inbox

FORK = multiprocessing.get_context("fork")
LARGE = 1_000_000
WARM = 30
"""Rounds before anything is measured."""
Cost = tuple[float, float]
"""Seconds and CPU seconds of a round."""


def clocks() -> Cost:
    """Time, and CPU time of this process."""
    return time.perf_counter(), time.process_time()


def per_round(began: Cost, rounds: int) -> Cost:
    """Seconds and CPU seconds since then, per round."""
    now, cpu = clocks()
    return (now - began[0]) / rounds, (cpu - began[1]) / rounds


def together(work: Callable[..., None], count: int, *arguments: Any) -> list[Any]:
    """What `count` processes at once put into their queue; work(me, *arguments, queue)."""
    answer = FORK.Queue()
    running = [FORK.Process(target=work, args=(me, *arguments, answer)) for me in range(count)]
    for process in running:
        process.start()
    found = [answer.get() for _ in running]
    for process in running:
        process.join()
    return found


def slowest(found: list[Cost]) -> Cost:
    """The longest round, and the mean CPU time."""
    return max(seconds for seconds, _ in found), statistics.mean(cpu for _, cpu in found)


def ports(count: int) -> list[int]:
    """Free ports on loopback."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return found


def make(folder: Path, peers: int = 12, **content: Any) -> NetworkFile:
    """The two-castle network of the paper, or another, with honest peers."""
    public = keygen(folder, peers)
    places = enumerate(ports(peers))
    entries = [{"id": i, "address": f"127.0.0.1:{port}", "public_key": public[i]} for i, port in places]
    usual = {
        "topology": {"name": "two-castle", "k": 6},
        "rule": "ios",
        "f": 2,
        "problem": {"name": "softmax", "partition": "one-class"},
        "local": {"decay": 0.01},
        "evaluate_every": 1_000_000,
        "checkpoint_seconds": 1e6,
    }
    file = network_file({"peers": entries, **usual, **content})
    save_network(file, folder / "network.yaml")
    warm(file, *bind_share(file, 0))
    return file


def train(me: int, folder: str, answer: Any) -> None:
    """One peer; what a round costs it after the start, and its longest one."""
    file = load_network(Path(folder, "network.yaml"))
    faults = Path(folder, "faults.json")
    out, faulty = Path(folder, "out"), faults if faults.exists() else None
    node = Node(file, me, load_keys(Path(folder, f"peer{me}.key")), out=out, faults=faulty)
    began, longest = clocks(), 0.0
    former = node.step

    def step() -> None:
        nonlocal began, longest
        if node.peer.round <= WARM:
            began = clocks()
        before = time.perf_counter()
        former()
        if node.peer.round > WARM:
            longest = max(longest, time.perf_counter() - before)
        if node.peer.round >= file.rounds:
            answer.put((per_round(began, file.rounds - WARM), longest))

    node.step = step  # type: ignore[method-assign]
    gc.freeze()  # as `byzmesh peer` does
    node.run()


def peers_cost(rounds: int, wire: str) -> Cost:
    """A round of the slowest of twelve peers."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rounds=rounds + WARM, wire=wire)
        return slowest([cost for cost, _ in together(train, 12, name)])


def compute(me: int, folder: str, rounds: int, barrier: Any, answer: Any) -> None:
    """One worker's computation: what a peer does in a round, without the network."""
    file = load_network(Path(folder, "network.yaml"))
    task, row = bind_share(file, me)
    rows, model = np.array([row]), task.initial()[row : row + 1].copy()
    local = local_round(file, task, row)
    local.start(model)
    degree = int(file.network.degree[me])
    weight, two = np.full((1, degree + 1), 1.0 / (degree + 1)), np.array([2])
    noise = 1e-3 * np.random.default_rng(me).normal(size=(degree, task.dimension)).astype(model.dtype)
    for k in range(-WARM, rounds):
        if k == 0:
            barrier.wait()
            began = clocks()
        half = local.half_steps(model, max(k, 0))
        inbox = make_inbox(file.made_rule, half, weight=weight, f=two, receiver=rows, messages=half + noise)
        model = local.apart(file.made_rule.apply(inbox, None)[0].models)
    answer.put(per_round(began, rounds))


def compute_cost(rounds: int) -> Cost:
    """A round of the slowest of twelve workers that only compute."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), rounds=rounds)
        return slowest(together(compute, 12, name, rounds, FORK.Barrier(12)))


def exchange(me: int, where: list[str], keys: list[Any], rounds: int, answer: Any) -> None:
    """One of two peers that exchange a large vector."""
    vector = np.random.default_rng(me).normal(size=LARGE).astype(np.float32)
    other = {1 - me: (where[1 - me], keys[1 - me].public)}
    patience = Patience(timeout=60.0)
    with Peer(vector, other, "weimean", me=me, address=where[me], keys=keys[me], f=0, patience=patience) as peer:
        peer.exchange(vector)
        began = clocks()
        for _ in range(rounds):
            peer.exchange(vector)
        cost = per_round(began, rounds)
        # includes messages sent again to late joiners
        verdicts = peer.rounds.verdicts[1 - me]
        received = peer.transport.received / (verdicts.total() - verdicts["silent"])  # type: ignore[attr-defined]
        answer.put((cost, received))


def large(rounds: int) -> tuple[Cost, float]:
    """A round of two peers with D = 1,000,000, and the bytes received in it."""
    where, keys = [f"127.0.0.1:{port}" for port in ports(2)], [new_keys(), new_keys()]
    found = together(exchange, 2, where, keys, rounds)
    return slowest([cost for cost, _ in found]), max(received for _, received in found)


def copy(me: int, port: int, rounds: int, answer: Any) -> None:
    """Each of two processes sends and receives the same bytes, bare."""
    if me == 0:
        with socket.create_server(("127.0.0.1", port)) as server:
            link = server.accept()[0]
    else:
        while True:
            try:
                link = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
    data, room = bytes(4 * LARGE), bytearray(4 * LARGE)
    began = clocks()
    for _ in range(rounds):
        for turn in (0, 1):
            if turn == me:
                link.sendall(data)
            else:
                view = memoryview(room)
                while view:
                    view = view[link.recv_into(view) :]
    answer.put(per_round(began, rounds))


def many(rounds: int, pause: float) -> tuple[float, float]:
    """The longest round of any of 48 peers after the start, without its pause, and the timeout."""
    with tempfile.TemporaryDirectory() as name:
        Path(name, "faults.json").write_text(json.dumps({"delay": pause}))
        topology = {"name": "k-regular", "n": 48, "k": 6}
        file = make(Path(name), 48, topology=topology, f=1, problem="softmax", rounds=rounds + WARM)
        return max(longest for _, longest in together(train, 48, name)), file.timeouts.round


def idle_memory() -> tuple[float, float]:
    """MB of a peer that waits for its neighbours: resident, and not shared with other processes."""
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
        words = ["peer", f"{name}/network.yaml", "--id", "0", "--key", f"{name}/peer0.key", "--out", f"{name}/out"]
        code = "from byzmesh.cli import main; main()"
        with subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while '"evaluated"' not in (line := process.stderr.readline()):
                assert line, "the peer ended"
            time.sleep(5.0)  # it has sent its first message, and waits
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]
            process.kill()
    held = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return held["Rss"], held["Private_Clean"] + held["Private_Dirty"]


def say(name: str, cost: Cost, base: Cost | None = None) -> None:
    """One line."""
    text = f"{name}: {1e3 * cost[0]:.2f} ms, {1e3 * cost[1]:.2f} ms of CPU per round and process"
    if base is not None:
        text += f"; times the bare one: {cost[0] / base[0]:.2f}, CPU {cost[1] / base[1]:.2f}"
        text += f" (one over it: {base[0] / cost[0]:.3f}, CPU {base[1] / cost[1]:.3f})"
    print(text, flush=True)


def main() -> None:
    """Print all parts; everything that is compared alternates."""
    rounds, repeats = (int(word) for word in [*sys.argv[1:], *("200", "3")[len(sys.argv) - 1 :]])
    print(f"load {os.getloadavg()[0]:.1f}")
    for _ in range(repeats):
        bare = compute_cost(4 * rounds)
        say("12 workers, D = 7,850, computation alone", bare)
        for wire in ("raw", "float16", "int8"):
            say(f"12 peers, wire {wire}", peers_cost(rounds, wire), bare)
    for _ in range(repeats):
        bare = slowest(together(copy, 2, ports(1)[0], 20))
        say("D = 1,000,000, bare copy both ways", bare)
        cost, received = large(20)
        say("D = 1,000,000, two peers", cost, bare)
    print(f"D = 1,000,000: {received:.0f} bytes per message, {received / (4 * LARGE):.5f} of the raw vector")
    for pause in (0.0, 2.0):
        longest, timeout = many(rounds // 4, pause)
        print(f"48 peers, {pause:g} s of other work per round: longest round {longest:.2f} s, timeout {timeout:.0f} s")
    resident, own = idle_memory()
    print(f"an idle peer, two-castle: {resident:.0f} MB resident, {own:.0f} of its own")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

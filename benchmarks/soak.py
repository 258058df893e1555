"""Twelve peers for an hour beside all that is hostile: memory, progress, accuracy.

    python -m benchmarks.soak OUT [seconds] [pause]

The two-castle network of the paper, f = 2, each honest peer with the data of one digit. Peer 7 forges (isolation).
Peer 9 has a valid key and does something else every minute: garbage, replays, claims of future rounds, floods, messages
without an end, silence by turns. Strangers knock, reset and hold connections. Honest peers are killed, paused and cut
off from each other by a seeded schedule; peers 0 to 3 are never killed, so that their memory is seen for the whole
time. Every honest peer pauses in each round, so that all of this takes less than half a core.

OUT/soak.json has samples and events, OUT/README.md the result; `python -m benchmarks.soak OUT 0` writes it again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.soak_report import write_report
from tests.peers.drill.simulated import final_models, simulation_of
from tests.peers.hostile import (
    DIMENSION,
    TOPIC,
    Hostile,
    Siege,
    behaviours,
    flooding,
    resident,
    slow_lorises,
    subscriber,
)
from tests.peers.networks import two_castle

from byzmesh.networks import network
from byzmesh.peers.drill.drill import LIARS, Drill
from byzmesh.peers.identity import load_keys, new_keys, zeromq
from byzmesh.peers.node import bind_share
from byzmesh.peers.sockets import split_address
from byzmesh.peers.wire import Format

zmq: Any = zeromq()
FORGER, HOSTILE, SPARED = 7, 9, 4
SAMPLE = 10.0


class Adversary(threading.Thread):
    """The hostile neighbour: one behaviour after another, one act per round that it hears."""

    def __init__(self, siege: Siege, ended: threading.Event, each: float) -> None:
        super().__init__(daemon=True)
        self.siege, self.ended, self.each = siege, ended, each
        self.acts: Counter[str] = Counter()

    def run(self) -> None:
        began = time.monotonic()
        while not self.ended.is_set():
            before = self.siege.hostile.round
            if self.siege.hostile.listen(0.05) > before >= 0:
                acts = self.behaviours()
                name = list(acts)[int((time.monotonic() - began) / self.each) % len(acts)]
                acts[name]()
                self.acts[name] += 1

    def behaviours(self) -> dict[str, Callable[[], object]]:
        siege, publisher, me = self.siege, self.siege.hostile.publisher, self.siege.me
        form = Format(siege.file.run, DIMENSION, siege.file.dtype)

        def seesaw() -> None:
            for peer in siege.drill.honest:
                if (peer + siege.hostile.round) % 2:
                    publisher.send(bytes(form.encode(np.zeros(DIMENSION), me, siege.hostile.round, peer)))

        def endless() -> None:
            if self.acts["endless"] % 100 == 0:
                publisher.send(TOPIC, zmq.SNDMORE)
                for _ in range(4_000):
                    publisher.send(bytes(30_000), zmq.SNDMORE)
                publisher.send(b"")

        def pose() -> None:
            """Subscribe under the ids of others, at everybody."""
            for ear in siege.hostile.ears:
                for peer in siege.drill.honest:
                    ear.unsubscribe(struct.pack("<H", peer))
                    ear.subscribe(struct.pack("<H", peer))

        calm = {"silent": lambda: None, "seesaw": seesaw, "pose": pose}
        return {**calm, **behaviours(siege), "endless": endless, "flood": flooding(siege)}


class Strangers(threading.Thread):
    """Without a key: handshakes for 20 seconds, connections reset, held, or left in the middle of a greeting."""

    def __init__(self, siege: Siege, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.siege, self.ended, self.random = siege, ended, random.Random(1)
        self.acts: Counter[str] = Counter()

    def run(self) -> None:
        kinds = (self.knock, self.reset, self.hold, self.greet)
        while not self.ended.is_set():
            act = kinds[self.acts.total() % len(kinds)]
            with contextlib.suppress(OSError):
                act(self.siege.file.entry(self.random.choice(self.siege.drill.honest)).address)
            self.acts[act.__name__] += 1
            self.ended.wait(20.0)

    def knock(self, address: str) -> None:
        """Sixty handshakes a second with a key that nobody knows."""
        peer = next(entry for entry in self.siege.file.peers if entry.address == address)
        with zmq.Context() as context:
            ears: deque[Any] = deque()
            for _ in range(20 * 60):
                ears.append(subscriber(context, address, peer.public_key, new_keys()))
                if len(ears) > 60:
                    ears.popleft().close(0)
                if self.ended.wait(1 / 60):
                    break
            for ear in ears:
                ear.close(0)

    def reset(self, address: str) -> None:
        for _ in range(500):
            with socket.create_connection(split_address(address), timeout=10) as link:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def hold(self, address: str) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection(split_address(address), timeout=10))
            self.ended.wait(20.0)

    def greet(self, address: str) -> None:
        links = slow_lorises(self.siege)
        self.ended.wait(10.0)
        for link in links:
            link.close()


class Faults:
    """Kills, pauses and partitions, one after another."""

    def __init__(self, drill: Drill, pause: float) -> None:
        self.drill, self.pause, self.random = drill, pause, random.Random(2)
        self.events: list[tuple[float, str, list[int]]] = []
        self._due: list[tuple[float, Callable[[], object]]] = []
        self._next = 60.0
        for peer in drill.honest:
            self._write(peer, [])

    def _write(self, peer: int, blocked: list[int]) -> None:
        self.drill.faults(peer).write_text(json.dumps({"delay": self.pause, "blocked": blocked}))

    def tick(self, now: float) -> None:
        for one in [one for one in self._due if one[0] <= now]:
            one[1]()
            self._due.remove(one)
        if now >= self._next:
            kinds = (self.kill, self.halt, self.split, self.kill_three, self.kill_liars)
            fault = kinds[len(self.events) % len(kinds)]
            self.events.append((round(now, 1), fault.__name__, fault(now)))
            self._next = now + 30.0

    def kill(self, now: float, count: int = 1) -> list[int]:
        running = [peer for peer in self.drill.running() if peer >= SPARED]
        chosen = self.random.sample(running, min(count, len(running)))
        for peer in chosen:
            self.drill.signal(peer, signal.SIGKILL)
            self._due.append((now + self.random.uniform(1.0, 12.0), lambda peer=peer: self.drill.start_peer(peer)))  # type: ignore[misc]
        return chosen

    def kill_three(self, now: float) -> list[int]:
        return self.kill(now, 3)

    def kill_liars(self, now: float) -> list[int]:
        self.drill.nursery.send(LIARS, signal.SIGKILL)
        again = lambda: self.drill._start(LIARS, [FORGER], attack=self.drill.attack)  # noqa: E731
        self._due.append((now + 5.0, again))
        return [FORGER]

    def halt(self, now: float) -> list[int]:
        peer = self.random.choice(self.drill.running())
        self.drill.signal(peer, signal.SIGSTOP)
        self._due.append((now + 5.0, lambda: self.drill.signal(peer, signal.SIGCONT)))
        return [peer]

    def split(self, now: float) -> list[int]:
        shuffled = self.random.sample(self.drill.honest, len(self.drill.honest))
        halves = shuffled[::2], shuffled[1::2]
        for half, other in (halves, halves[::-1]):
            for peer in half:
                self._write(peer, other)

        def heal() -> None:
            for peer in shuffled:
                self._write(peer, [])

        self._due.append((now + 10.0, heal))
        return sorted(halves[0])


@contextlib.contextmanager
def besieged(folder: Path) -> Iterator[Siege]:
    """The network at work, with its hostile neighbour."""
    # without the link between the two that lie: the forger would take the other for one of its victims
    links = network("two-castle", k=6).links
    pairs = zip(links.sender.tolist(), links.receiver.tolist())
    edges = [[a, b] for a, b in pairs if a < b and {a, b} != {FORGER, HOSTILE}]
    timeouts = {"grace": 0.2, "alone": 600}  # patient with neighbours that a busy machine makes late
    file = two_castle(folder, topology=None, edges=edges, rounds=100_000_000, evaluate_every=500, timeouts=timeouts)
    hostile = Hostile(file, HOSTILE, load_keys(folder / f"peer{HOSTILE}.key"))
    with Drill(folder / "network.yaml", folder / "out", byzantine=[FORGER], attack={"name": "isolation"}) as drill:
        drill.honest.remove(HOSTILE)
        try:
            yield Siege(file, drill, hostile, HOSTILE)
        finally:
            hostile.close()


def soak(out: Path, seconds: float, pause: float) -> dict[str, Any]:
    """Run it; samples and events."""
    ended = threading.Event()
    with tempfile.TemporaryDirectory() as name, besieged(Path(name)) as siege:
        drill = siege.drill
        faults = Faults(drill, pause)
        threads = (Adversary(siege, ended, max(10.0, seconds / 60)), Strangers(siege, ended))
        result: dict[str, Any] = {
            "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "seconds": seconds,
            "pause": pause,
            "honest": drill.honest,
            "samples": [],
        }
        threads[1].start()  # strangers come while peers start
        drill.start()
        threads[0].start()
        began, sampled = time.monotonic(), -SAMPLE
        while (now := time.monotonic() - began) < seconds:
            faults.tick(now)
            if now - sampled >= SAMPLE:
                sampled = now
                result["samples"].append(sample(drill, now))
                result["events"], result["acts"] = faults.events, dict(threads[0].acts + threads[1].acts)
                (out / "soak.json").write_text(json.dumps(result))
            codes = {peer: drill.nursery.codes.get(str(peer), 0) for peer in drill.honest}
            if any(code not in (0, -signal.SIGKILL) for code in codes.values()):
                raise SystemExit(f"a peer ended by itself: {codes}; see {drill.out}")
            time.sleep(0.2)
        ended.set()
        for peer in drill.honest:
            drill.faults(peer).write_text(json.dumps({"delay": pause}))
            if peer not in drill.running():
                drill.start_peer(peer)
            drill.signal(peer, signal.SIGCONT)
        time.sleep(20.0)
        result["last"] = sample(drill, time.monotonic() - began)
        for peer in drill.honest:
            drill.signal(peer, signal.SIGTERM)
        if not drill.wait(120):
            raise SystemExit("the peers did not leave on SIGTERM")
        result["codes"] = [drill.nursery.codes[str(peer)] for peer in drill.honest]
        result["log"] = logged(drill)
        result |= compared(siege)
    return result


def sample(drill: Drill, now: float) -> dict[str, Any]:
    """What a look at the processes shows: [peer, process, bytes, round]."""
    status = drill.status()
    peers = []
    for peer in drill.running():
        pid = drill.nursery.pids[str(peer)]
        with contextlib.suppress(OSError):
            peers.append([peer, pid, resident(pid), status[peer]["round"]])
    return {"time": round(now, 1), "load": os.getloadavg()[0], "peers": peers}


def logged(drill: Drill) -> dict[str, int]:
    """How often each event was logged by honest peers, and the CPU seconds of the processes that left."""
    count: Counter[str] = Counter()
    for peer in drill.honest:
        for line in (drill.out / f"{peer}.log").read_text().splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                count[f"{said['event']}: {said['reason']}" if "reason" in said else said["event"]] += 1
            else:
                count["not a log line"] += 1
    return dict(count)


def compared(siege: Siege) -> dict[str, Any]:
    """Accuracy of the peers' final models, and of the simulator after as many rounds."""
    file, drill = siege.file, siege.drill
    rounds = {peer: said["round"] for peer, said in drill.status().items()}
    models = final_models(drill.out, drill.honest)
    task, _ = bind_share(file, drill.honest[0])
    last = int(np.median(list(rounds.values())))
    shorter = file.model_copy(update={"rounds": last, "evaluate_every": last})
    simulated = {
        lie: float(simulation_of(shorter, [FORGER, HOSTILE], {"name": lie}).run().metrics["accuracy"][-1])
        for lie in ("isolation", "silent")
    }
    return {
        "rounds": rounds,
        "accuracy": {peer: float(np.mean(task.evaluate(models[[row]])["accuracy"])) for row, peer in enumerate(rounds)},
        "simulated": simulated,
    }


def main() -> None:
    """Soak, then write the report."""
    out = Path(sys.argv[1])
    seconds, pause = (float(word) for word in [*sys.argv[2:4], *("3600", "0.15")[len(sys.argv) - 2 :]])
    out.mkdir(parents=True, exist_ok=True)
    if seconds > 0:
        (out / "soak.json").write_text(json.dumps(soak(out, seconds, pause)))
    write_report(out)


if __name__ == "__main__":
    main()

"""Twelve peers for an hour beside all that is hostile, while their members change: memory, progress, accuracy.

    python -m benchmarks.soak OUT [seconds] [pause]

The two-castle network of the paper, f = 2, each honest peer with the data of one digit. Peer 7 forges (isolation).
Peer 9 has a valid key and does something else every minute: garbage, replays, claims of future rounds, floods, messages
without an end, silence by turns. Strangers knock, reset and hold connections, or come with a key that was replaced.
Honest peers are killed, paused and cut off from each other by a seeded schedule, every 30 seconds; peers 0 to 3 are
never killed, so that their memory is seen for the whole time. Every 150 seconds the operator changes the members. Every
honest peer pauses in each round, so that all of this takes less than half a core.

A peer that ends by itself is a finding: its exit code and the end of its log are kept, and it is started again.

OUT/soak.json has samples and events, OUT/README.md the result; `python -m benchmarks.soak OUT 0` writes it again. The
peers' logs stay in a folder that it prints.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.peers.drill.simulated import final_models, simulation_of
from tests.peers.hostile import Hostile, Siege, resident
from tests.peers.networks import two_castle

from benchmarks.soak_faults import Faults, Operator
from benchmarks.soak_hostile import Adversary, Strangers
from benchmarks.soak_report import write_report
from byzmesh.networks import network
from byzmesh.peers.changes import sign_file
from byzmesh.peers.drill.drill import LIARS, Drill
from byzmesh.peers.identity import load_keys
from byzmesh.peers.share import bind_share
from byzmesh.peers.signing import new_operator

FORGER, HOSTILE = 7, 9
SAMPLE = 10.0
CHANGE = 150.0


@contextlib.contextmanager
def besieged(folder: Path) -> Iterator[Siege]:
    """The network at work, with its hostile neighbour."""
    # without the link between the two that lie: the forger would take the other for one of its victims
    links = network("two-castle", k=6).links
    pairs = zip(links.sender.tolist(), links.receiver.tolist())
    edges = [[a, b] for a, b in pairs if a < b and {a, b} != {FORGER, HOSTILE}]
    # patient with neighbours that a busy machine makes late
    timeouts = {"round": 10, "grace": 0.5, "alone": 600}
    content = {"topology": None, "edges": edges, "evaluate_every": 250, "timeouts": timeouts}
    two_castle(folder, rounds=100_000_000, real=True, **content)
    new_operator(folder / "operator.key")
    file = sign_file(folder / "network.yaml", folder / "operator.key")
    hostile = Hostile(file, HOSTILE, load_keys(folder / f"peer{HOSTILE}.key"))
    with Drill(folder / "network.yaml", folder / "out", byzantine=[FORGER], attack={"name": "isolation"}) as drill:
        drill.honest.remove(HOSTILE)
        try:
            yield Siege(file, drill, hostile, HOSTILE)
        finally:
            hostile.close()


class Soak:
    """One run of it; `result` grows meanwhile."""

    def __init__(self, siege: Siege, folder: Path, seconds: float, pause: float) -> None:
        self.siege, self.drill, self.seconds = siege, siege.drill, seconds
        self.ended = threading.Event()
        self.faults = Faults(siege.drill, pause, lambda peer: self.operator.start(peer))
        self.operator = Operator(siege, folder, self.faults, min(CHANGE, seconds / 8))
        self.adversary = Adversary(siege, self.ended, max(10.0, seconds / 60))
        self.strangers = Strangers(siege, self.ended)
        self.result: dict[str, Any] = {
            "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "seconds": seconds,
            "pause": pause,
            "honest": list(siege.drill.honest),
            "samples": [],
            "ended": [],
        }

    def start(self) -> None:
        """Strangers come while peers start."""
        self.strangers.start()
        self.drill.nursery.warm(self.drill.path)
        self.faults.lie_again()
        for peer in self.drill.honest:
            self.operator.start(peer)
        self.adversary.start()

    def run(self, out: Path) -> None:
        """Until the time is over."""
        began, sampled = time.monotonic(), -SAMPLE
        while (now := time.monotonic() - began) < self.seconds:
            self.faults.tick(now)
            self.operator.tick(now, self.adversary, self.strangers)
            self._restart(now)
            if now - sampled >= SAMPLE:
                sampled = now
                self.result["samples"].append(self._sample(now))
                self._note(out)
            time.sleep(0.2)

    def finish(self, out: Path) -> None:
        """No more faults; then all leave."""
        self.ended.set()
        self.faults.heal()
        for peer in self.drill.honest:
            self.drill.signal(peer, signal.SIGCONT)
        limit = time.monotonic() + 60.0
        while time.monotonic() < limit:
            self._restart(self.seconds)
            time.sleep(0.2)
        self.result["last"] = self._sample(self.seconds + 60.0)
        for peer in self.drill.honest:
            self.drill.signal(peer, signal.SIGTERM)
        limit = time.monotonic() + 120.0
        while self.drill.running() and time.monotonic() < limit:
            time.sleep(0.1)
        codes = self.drill.nursery.codes
        self.result["codes"] = {peer: codes.get(str(peer)) for peer in self.drill.honest}
        self.result["epochs"] = {peer: self.operator.epoch(peer) for peer in self.drill.honest}
        self.result["removed"] = {peer: codes.get(str(peer)) for peer in self.operator.leaving}
        self._note(out)
        self.result |= compared(self.siege, self.drill)
        self._note(out)

    def _note(self, out: Path) -> None:
        self.result["events"] = self.faults.events
        self.result["changes"] = self.operator.changes
        self.result["acts"] = dict(self.adversary.acts + self.strangers.acts)
        self.result["stolen"] = self.strangers.stolen
        self.result["log"] = logged(self.drill.out, self.operator.everybody)
        (out / "soak.json").write_text(json.dumps(self.result))

    def _restart(self, now: float) -> None:
        """Start again whoever ended by itself, and keep why."""
        running = {str(peer) for peer in self.drill.running()} | self.drill.nursery.pids.keys()
        for name in [*map(str, self.drill.honest), LIARS]:
            if name not in running and name not in self.faults.down:
                lines = (self.drill.out / f"{name}.log").read_text().splitlines()
                code = self.drill.nursery.codes.get(name)
                self.result["ended"].append({"time": round(now, 1), "who": name, "code": code, "log": lines[-8:]})
                self.faults.lie_again() if name == LIARS else self.operator.start(int(name))

    def _sample(self, now: float) -> dict[str, Any]:
        """What a look at the processes shows: [peer, process, bytes, round]."""
        status = self.drill.status()
        peers = []
        for peer in self.drill.running():
            pid = self.drill.nursery.pids[str(peer)]
            with contextlib.suppress(OSError):
                peers.append([peer, pid, resident(pid), status[peer]["round"]])
        return {"time": round(now, 1), "load": os.getloadavg()[0], "peers": peers}


def logged(out: Path, peers: list[int]) -> dict[str, dict[int, int]]:
    """How often each event was logged by each honest peer."""
    count: dict[str, Counter[int]] = {}
    for peer in peers:
        with contextlib.suppress(OSError):
            for line in (out / f"{peer}.log").read_text().splitlines():
                event = "not a log line"
                if line.startswith("{"):
                    said = json.loads(line)
                    event = f"{said['event']}: {said['reason']}" if "reason" in said else said["event"]
                count.setdefault(event, Counter())[peer] += 1
    return {event: dict(by_peer) for event, by_peer in sorted(count.items())}


def compared(siege: Siege, drill: Drill) -> dict[str, Any]:
    """Accuracy of the peers' final models, and of the simulator after as many rounds."""
    file = siege.file
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
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):  # an hour is long for a question
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    seconds, pause = (float(word) for word in [*sys.argv[2:4], *("3600", "0.6")[len(sys.argv) - 2 :]])
    out.mkdir(parents=True, exist_ok=True)
    if seconds > 0:
        folder = Path(tempfile.mkdtemp(prefix="soak-"))
        print(f"logs in {folder / 'out'}", flush=True)
        with besieged(folder) as siege:
            soak = Soak(siege, folder, seconds, pause)
            soak.start()
            soak.run(out)
            soak.finish(out)
    write_report(out)


if __name__ == "__main__":
    main()

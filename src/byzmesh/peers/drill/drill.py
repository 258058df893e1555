"""Drills: all peers of a network as processes on this machine, with liars and faults.

`Drill` starts, disturbs and ends processes; `launch` runs a drill to its end, shows a table and stores the result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError, NoLiars, PeerError
from byzmesh.peers.identity import Keyring
from byzmesh.peers.network_file import NetworkFile, load_network
from byzmesh.plugins import load_plugins

LIARS = "liars"
"""Name of the process that runs the forging liars."""


class Nursery:
    """The process that forks the peers; one may serve several drills one after another.

    All are in the group of the process that starts it: whatever stops or continues that group (Ctrl-Z, fg) does so to
    the peers.

    prefix  words before its command, e.g. to run it in a network namespace
    """

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "byzmesh.peers.drill.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self.pids: dict[str, int] = {}
        self.codes: dict[str, int] = {}
        """How the last process of each name ended."""
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        output = self.process.stdout
        for line in output or ():
            self._answers.put(json.loads(line))

    def _ask(self, order: dict[str, Any], answer: str, seconds: float = 120.0) -> dict[str, Any]:
        if self.process.poll() is not None or self.process.stdin is None:
            raise PeerError("the nursery of the drill has ended; start the drill again")
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        limit = time.monotonic() + seconds
        while True:
            found = self._next(limit - time.monotonic())
            if found is None:
                raise PeerError(f"the nursery did not answer within {seconds:.0f} s; is the machine overloaded?")
            if answer in found:
                return found

    def _next(self, seconds: float) -> dict[str, Any] | None:
        try:
            found = self._answers.get(timeout=max(0.0, seconds)) if seconds > 0 else self._answers.get_nowait()
        except Empty:
            return None
        if "ended" in found and self.pids.get(found["ended"]) == found["pid"]:
            del self.pids[found["ended"]]
            self.codes[found["ended"]] = found["code"]
        return found

    def warm(self, path: Path, plugins: Sequence[str] = ()) -> None:
        """Load plugins, data and kernels, so that peers start at once."""
        answer = self._ask({"warm": str(path), "plugins": list(plugins)}, "warm", 600.0)
        if not answer["warm"]:
            raise ConfigError(answer["error"])

    def start(self, name: str, job: Mapping[str, Any], log: Path) -> None:
        """Fork a process that does the job."""
        self.codes.pop(name, None)
        answer = self._ask({"start": name, "job": dict(job), "log": str(log)}, "started")
        self.pids[name] = answer["pid"]

    def poll(self) -> None:
        """Record the processes that ended."""
        while self._next(0.0) is not None:
            pass

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process if it is still running."""
        self.poll()
        if name in self.pids and self.process.poll() is None:  # without the nursery, none of them runs
            self._ask({"signal": int(number), "to": self.pids[name]}, "sent")

    def close(self) -> None:
        """End this process and all that it started."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Drill:
    """One network on this machine.

    byzantine  ids of the liars
    attack     {"name": ..., options}; attacks that poison data train, all others forge from what the liars hear
    plugins    scripts or modules that define the attack
    keys       folder with peer<id>.key files (default: beside the network file, or keys/ beside it)
    """

    def __init__(
        self,
        network: str | Path,
        out: str | Path,
        *,
        byzantine: Iterable[int] = (),
        attack: Mapping[str, Any] | None = None,
        keys: str | Path | None = None,
        nursery: Nursery | None = None,
        plugins: Sequence[str] = (),
    ) -> None:
        self.plugins = load_plugins(plugins)
        self.path = Path(network).absolute()
        self.file: NetworkFile = load_network(self.path)
        self.byzantine = sorted({self.file.entry(int(peer)).id for peer in byzantine})
        self.honest = [entry.id for entry in self.file.peers if entry.id not in self.byzantine]
        if attack is not None and not self.byzantine:
            raise NoLiars(attack["name"])
        self.attack = dict(attack or {"name": "silent"})
        self.poison = attacks.build(self.attack).poison
        self.out = Path(out).absolute()
        self.out.mkdir(parents=True, exist_ok=True)
        if self.file.epoch > 0 and not any(self.out.glob("peer*.ckpt")):
            raise PeerError(
                f"{self.path.name} is of epoch {self.file.epoch}: each peer would wait for the models of others, and "
                "nobody has one yet; launch the file of epoch 0, or give the --out of the drill that you resume"
            )
        self.keys = {entry.id: self._key(entry.id, keys) for entry in self.file.peers}
        self._borrowed = nursery is not None
        self.nursery = nursery or Nursery()

    def _key(self, peer: int, folder: str | Path | None) -> str:
        places = [Path(folder)] if folder is not None else [self.path.parent, self.path.parent / "keys"]
        for place in places:
            path = place / f"peer{peer}.key"
            ring = Keyring(path)
            if ring.paths:
                if ring.find(self.file.entry(peer).public_key) is None:
                    raise PeerError(f"{path} is not the key of peer {peer} in {self.path.name}; plan the network again")
                return str(path.absolute())
        raise PeerError(f"no key file peer{peer}.key in {', '.join(map(str, places))}; give --keys")

    def __enter__(self) -> Drill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start all peers."""
        self.nursery.codes.pop(LIARS, None)
        self.nursery.warm(self.path, self.plugins)
        for place, peer in enumerate(self.byzantine):
            if self.poison is not None:
                self.start_peer(peer, flip=place, flips=len(self.byzantine), poison=self.poison)
        if self.byzantine and self.poison is None:
            log = self.out / f"{LIARS}.log"
            log.unlink(missing_ok=True)
            self._start(LIARS, self.byzantine, attack=self.attack)
            if not self.wait(120, lambda: log.exists() and '"ready"' in log.read_text()):
                raise PeerError(f"the liars did not get ready within 120 s; see {log}")
        for peer in self.honest:
            self.start_peer(peer)

    def start_peer(self, peer: int, **job: Any) -> None:
        """(Re)start a training peer."""
        self._start(str(peer), [peer], **job)

    def _start(self, name: str, peers: list[int], **job: Any) -> None:
        common = {
            "network": str(self.path),
            "peers": peers,
            "keys": [self.keys[peer] for peer in peers],
            "out": str(self.out),
            "faults": str(self.faults(name)),
        }
        self.nursery.start(name, {**common, **job}, self.out / f"{name}.log")

    def faults(self, peer: int | str) -> Path:
        """The file from which a peer reads its faults."""
        return self.out / f"faults{peer}.json"

    def signal(self, peer: int, number: signal.Signals) -> None:
        """Send a signal to an honest peer."""
        self.nursery.send(str(peer), number)

    def running(self) -> list[int]:
        """Honest peers whose process is running."""
        self.nursery.poll()
        return [peer for peer in self.honest if str(peer) in self.nursery.pids]

    def failed(self) -> dict[str, int]:
        """Exit codes of the processes that ended with their own error; with failed liars a drill tests nothing."""
        codes = {name: self.nursery.codes.get(name, 0) for name in [*map(str, self.honest), LIARS]}
        return {name: code for name, code in codes.items() if code > 0}

    def status(self) -> dict[int, dict[str, Any]]:
        """The last status of each honest peer."""
        found = {}
        for peer in self.honest:
            try:
                found[peer] = json.loads((self.out / f"peer{peer}.status.json").read_text())
            except (OSError, ValueError):
                found[peer] = {"round": 0}
        return found

    def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Wait until all honest peers have ended, or `until` holds; False if that takes longer than `seconds`."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            done = until() if until is not None else not self.running()
            if self.failed():
                name, code = next(iter(self.failed().items()))
                raise PeerError(f"peer {name} failed (exit code {code}); see {self.out / f'{name}.log'}")
            if done:
                return True
            time.sleep(0.02)
        return False

    def close(self) -> None:
        """End every process of the drill."""
        self.nursery.poll()
        for name in list(self.nursery.pids):
            self.nursery.send(name, signal.SIGKILL)
        limit = time.monotonic() + 10
        while self.nursery.pids and time.monotonic() < limit:
            time.sleep(0.01)
            self.nursery.poll()
        if not self._borrowed:
            self.nursery.close()

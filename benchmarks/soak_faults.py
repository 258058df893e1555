"""What happens to honest peers in a soak: kills, pauses, partitions, and an operator who changes the members."""

from __future__ import annotations

import json
import random
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.peers.hostile import Siege
from tests.peers.members import next_file
from tests.peers.networks import free_ports

from benchmarks.soak_hostile import Adversary, Strangers
from byzmesh.peers.changes import NewPeer
from byzmesh.peers.drill.drill import LIARS, Drill
from byzmesh.peers.identity import Keyring, one_more_key

SPARED = 4
"""Peers below this id are never killed, so that their memory is seen for the whole time."""


class Faults:
    """Kills, pauses and partitions, one after another."""

    def __init__(self, drill: Drill, pause: float, start: Callable[[int], None]) -> None:
        self.drill, self.pause, self.start, self.random = drill, pause, start, random.Random(2)
        self.events: list[tuple[float, str, list[int]]] = []
        self.down: set[str] = set()
        """Processes that were killed and not started again yet."""
        self._due: list[tuple[float, Callable[[], object]]] = []
        self._next = 60.0
        for peer in drill.honest:
            self.pace(peer)

    def pace(self, peer: int, blocked: list[int] | None = None) -> None:
        """What a peer does in every round besides its work."""
        self.drill.faults(peer).write_text(json.dumps({"delay": self.pause, "blocked": blocked or []}))

    def tick(self, now: float) -> None:
        """One more fault, if it is time."""
        for one in [one for one in self._due if one[0] <= now]:
            one[1]()
            self._due.remove(one)
        if now >= self._next:
            kinds = (self.kill, self.halt, self.split, self.kill_three, self.kill_liars)
            fault = kinds[len(self.events) % len(kinds)]
            self.events.append((round(now, 1), fault.__name__, fault(now)))
            self._next = now + 30.0

    def heal(self) -> None:
        """End all faults now."""
        for _, act in self._due:
            act()
        self._due.clear()
        self._next = float("inf")
        for peer in self.drill.honest:
            self.pace(peer)

    def kill(self, now: float, count: int = 1) -> list[int]:
        running = [peer for peer in self.drill.running() if peer >= SPARED]
        chosen = self.random.sample(running, min(count, len(running)))
        for peer in chosen:
            self.down.add(str(peer))
            self.drill.signal(peer, signal.SIGKILL)
            self._due.append((now + self.random.uniform(1.0, 12.0), lambda peer=peer: self._again(peer)))  # type: ignore[misc]
        return chosen

    def _again(self, peer: int) -> None:
        self.down.discard(str(peer))
        if peer in self.drill.honest:  # it may have been removed meanwhile
            self.start(peer)

    def kill_three(self, now: float) -> list[int]:
        return self.kill(now, 3)

    def kill_liars(self, now: float) -> list[int]:
        self.down.add(LIARS)
        self.drill.nursery.send(LIARS, signal.SIGKILL)
        self._due.append((now + 5.0, self.lie_again))
        return self.drill.byzantine

    def lie_again(self) -> None:
        """Start the liars' process."""
        self.down.discard(LIARS)
        self.drill._start(LIARS, self.drill.byzantine, attack=self.drill.attack)

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
                self.pace(peer, other)

        def heal() -> None:
            for peer in self.drill.honest:
                self.pace(peer)

        self._due.append((now + 10.0, heal))
        return sorted(halves[0])


class Operator:
    """Changes the members every `every` seconds: a peer joins, a key is replaced, an address moves, a peer is removed.

    Every peer watches a network file of its own. A new file is put on the disk of one honest peer and of the peer that
    it is about; the others hear of it from their neighbours. Every other file is in force at once, the rest ten rounds
    later.
    """

    def __init__(self, siege: Siege, folder: Path, faults: Faults, every: float) -> None:
        self.folder, self.faults, self.every, self.drill = folder, faults, every, siege.drill
        self.file = siege.file
        self.random = random.Random(3)
        self.changes: list[dict[str, Any]] = []
        """What was changed: when, what, whom, and after how many seconds it was in force at all honest peers."""
        self.everybody = list(self.drill.honest)
        """All who were ever members."""
        self.leaving: dict[int, int] = {}
        """Removed peer -> its exit code, None as long as it runs."""
        self._next = every
        self._replaced: list[tuple[int, Any]] = []
        for peer in self.drill.honest:
            self._give(peer)

    def _given(self, peer: int) -> Path:
        return self.folder / f"given{peer}.yaml"

    def _give(self, peer: int) -> None:
        self._given(peer).write_bytes(self.file.text)

    def start(self, peer: int) -> None:
        """Start a peer, with the file that it was given last."""
        self.drill.start_peer(peer, network=str(self._given(peer)))

    def tick(self, now: float, adversary: Adversary, strangers: Strangers) -> None:
        """One more change, if it is time; a look at who has taken up the last."""
        if self.changes and "seconds" not in self.changes[-1] and self._in_force():
            self.changes[-1]["seconds"] = round(now - self.changes[-1]["time"], 1)
            strangers.old += [key for epoch, key in self._replaced if epoch <= self.file.epoch]
            self._replaced.clear()
        if now >= self._next:
            kinds = (self.add, self.replace_key, self.move, self.replace_key, self.remove, self.replace_key)
            kind = kinds[len(self.changes) % len(kinds)]
            newest = max(said["round"] for said in self.drill.status().values())
            from_round = newest + 10 if len(self.changes) % 2 else 0
            self.changes.append({"time": round(now, 1), "what": kind.__name__, "from_round": from_round})
            self.changes[-1]["whom"] = kind(from_round)
            self._next = now + self.every
            adversary.siege = strangers.siege = replace(adversary.siege, file=self.file)

    def _in_force(self) -> bool:
        """Whether the newest file is in force at all honest peers that run."""
        return all(self.epoch(peer) == self.file.epoch for peer in self.drill.running())

    def epoch(self, peer: int) -> int:
        """The epoch in force at a peer, by what it has on disk."""
        try:
            text = (self.drill.out / f"peer{peer}.network.yaml").read_text()
        except OSError:
            return -1
        found = re.search(r"^epoch: (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def _publish(self, from_round: int, about: int | None, **change: Any) -> None:
        self.file = next_file(self.folder, self.file, from_round, **change)
        one = self.random.choice([peer for peer in self.drill.running() if peer != about])
        for peer in {one} if about is None else {one, about}:
            self._give(peer)

    def add(self, from_round: int) -> int:
        """A peer with a new id, linked to six honest ones and to all liars."""
        peer = max(*self.everybody, *self.file.ids) + 1
        key = one_more_key(self.folder, peer)[1]
        liars = [i for i in self.file.ids if i not in self.drill.honest]
        links = [*self.random.sample(self.drill.honest, 6), *liars]
        new = NewPeer(f"127.0.0.1:{free_ports(1)[0]}", key, links, share=self.random.randrange(10))
        self._publish(from_round, peer, add={peer: new})
        self.drill.keys[peer] = str(self.folder / f"peer{peer}.key")
        self.drill.honest.append(peer)
        self.everybody.append(peer)
        self.faults.pace(peer)
        self.start(peer)
        return peer

    def remove(self, from_round: int) -> int:
        """The newest peer."""
        peer = self.drill.honest[-1]
        self._old_key(peer)
        self._publish(from_round, None, remove=[peer])
        self.drill.honest.remove(peer)
        self.leaving[peer] = self.file.epoch
        return peer

    def replace_key(self, from_round: int) -> int:
        """Of one peer after another."""
        peer = self.drill.honest[len(self.changes) // 2 % len(self.drill.honest)]
        self._old_key(peer)
        self._publish(from_round, peer, keys={peer: one_more_key(self.folder, peer)[1]})
        return peer

    def _old_key(self, peer: int) -> None:
        keys = Keyring(self.drill.keys[peer]).find(self.file.entry(peer).public_key)
        self._replaced.append((self.file.epoch + 1, keys))

    def move(self, from_round: int) -> int:
        """One peer to another port."""
        peer = self.random.choice(self.drill.honest)
        self._publish(from_round, peer, addresses={peer: f"127.0.0.1:{free_ports(1)[0]}"})
        return peer

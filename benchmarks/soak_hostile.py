"""The hostile side of a soak: a neighbour with a valid key that does as it likes, and strangers without one."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.peers.hostile import DIMENSION, TOPIC, Siege, behaviours, flooding, slow_lorises, subscriber

from byzmesh.peers.identity import Keys, new_keys, zeromq
from byzmesh.peers.sockets import split_address
from byzmesh.peers.wire import Format

zmq: Any = zeromq()


class Adversary(threading.Thread):
    """The hostile neighbour: one behaviour after another, one act per round that it hears.

    siege  replaced as a whole when the members change
    """

    def __init__(self, siege: Siege, ended: threading.Event, each: float) -> None:
        super().__init__(daemon=True)
        self.siege, self.ended, self.each = siege, ended, each
        self.acts: Counter[str] = Counter()
        self._ears = dict(zip(siege.file.remotes(siege.me), siege.hostile.ears))

    def run(self) -> None:
        began, file = time.monotonic(), self.siege.file
        while not self.ended.is_set():
            if self.siege.file is not file:
                self._follow(file, file := self.siege.file)
            before = self.siege.hostile.round
            if self.siege.hostile.listen(0.05) > before >= 0:
                acts = self.behaviours()
                name = list(acts)[int((time.monotonic() - began) / self.each) % len(acts)]
                acts[name]()
                self.acts[name] += 1

    def _follow(self, former: Any, file: Any) -> None:
        """Listen to the members of a newer file; it learns of them from the operator, as any member would."""
        hostile, me, known = self.siege.hostile, self.siege.me, former.remotes(self.siege.me)
        for peer in list(self._ears):
            if file.remotes(me).get(peer) != known[peer]:
                self._ears.pop(peer).close(0)
        for peer, remote in file.remotes(me).items():
            if peer not in self._ears:
                keys = hostile.keys
                self._ears[peer] = subscriber(hostile.context, remote.address, remote.public_key, keys)
        hostile.ears[:] = self._ears.values()

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

        def flood() -> None:
            """More than any budget, however slow the rounds are."""
            act = flooding(siege)
            for _ in range(10):
                act()

        calm = {"silent": lambda: None, "seesaw": seesaw, "pose": pose}
        return {**calm, **behaviours(siege), "endless": endless, "flood": flood}


class Strangers(threading.Thread):
    """Without a key: handshakes for 20 seconds, connections reset, held, or left in the middle of a greeting.

    old  keys that were replaced, or whose peer was removed: whoever has one is a stranger too
    """

    def __init__(self, siege: Siege, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self.siege, self.ended, self.random = siege, ended, random.Random(1)
        self.acts: Counter[str] = Counter()
        self.old: list[Keys] = []
        self.stolen = 0
        """Messages that peers sent to a key that is no member's any more."""

    def run(self) -> None:
        kinds = (self.knock, self.reset, self.hold, self.greet, self.steal)
        while not self.ended.is_set():
            act = kinds[self.acts.total() % len(kinds)]
            with contextlib.suppress(OSError):
                act(self.siege.file.entry(self.random.choice(self.siege.drill.honest)).address)
            self.acts[act.__name__] += 1
            self.ended.wait(20.0)

    def _key(self, address: str) -> str:
        return next(entry.public_key for entry in self.siege.file.peers if entry.address == address)

    def knock(self, address: str) -> None:
        """Sixty handshakes a second with a key that nobody knows."""
        key = self._key(address)
        with zmq.Context() as context:
            ears: deque[Any] = deque()
            for _ in range(20 * 60):
                ears.append(subscriber(context, address, key, new_keys()))
                if len(ears) > 60:
                    ears.popleft().close(0)
                if self.ended.wait(1 / 60):
                    break
            for ear in ears:
                ear.close(0)

    def steal(self, address: str) -> None:
        """Listen with a key that was valid once."""
        if self.old:
            with zmq.Context() as context:
                ear = subscriber(context, address, self._key(address), self.random.choice(self.old))
                limit = time.monotonic() + 20.0
                while time.monotonic() < limit and not self.ended.is_set():
                    if ear.poll(200):
                        self.stolen += len(ear.recv_multipart())
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

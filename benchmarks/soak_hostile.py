"""The hostile side of a soak: a neighbour with a valid key that does as it likes, and strangers without one."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from tests.peers.hostile import DIMENSION, Siege, behaviours, dial, flooding, slow_lorises

from byzmesh.peers.frames import LENGTH
from byzmesh.peers.handshake import Opened, Refused
from byzmesh.peers.identity import Keys, new_keys
from byzmesh.peers.tcp import split_address
from byzmesh.peers.wire import Format


class Adversary(threading.Thread):
    """The hostile neighbour: one behaviour after another, one act per round that it hears.

    siege  replaced as a whole when the members change
    """

    def __init__(self, siege: Siege, ended: threading.Event, each: float) -> None:
        super().__init__(daemon=True)
        self.siege, self.ended, self.each = siege, ended, each
        self.acts: Counter[str] = Counter()

    def run(self) -> None:
        began, file = time.monotonic(), self.siege.file
        while not self.ended.is_set():
            if self.siege.file is not file:
                file = self.siege.file
                self.siege.hostile.follow(file)
            before = self.siege.hostile.round
            if self.siege.hostile.listen(0.05) > before >= 0:
                acts = self.behaviours()
                name = list(acts)[int((time.monotonic() - began) / self.each) % len(acts)]
                acts[name]()
                self.acts[name] += 1

    def behaviours(self) -> dict[str, Callable[[], object]]:
        siege, hostile, me = self.siege, self.siege.hostile, self.siege.me
        form = Format(siege.file.run, DIMENSION, siege.file.dtype)

        def seesaw() -> None:
            for peer in siege.drill.honest:
                if (peer + siege.hostile.round) % 2:
                    hostile.send(bytes(form.encode(np.zeros(DIMENSION), me, hostile.round, peer)))

        def endless() -> None:
            """Frames that never end, of the largest size that can be said."""
            hostile.raw(LENGTH.pack(0xFFFFFFFF) + bytes(100_000))

        def rejoin() -> None:
            """Hang up on everybody and listen again, so that they send again."""
            for peer in hostile.transport.connected:
                hostile.transport.disconnect(peer)
                hostile.transport.connect(peer)

        def flood() -> None:
            """More than any budget, however slow the rounds are."""
            act = flooding(siege)
            for _ in range(10):
                act()

        calm = {"silent": lambda: None, "seesaw": seesaw, "rejoin": rejoin}
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
        """Links that peers opened to a key that is no member's any more."""

    def run(self) -> None:
        kinds = (self.knock, self.reset, self.hold, self.greet, self.steal)
        while not self.ended.is_set():
            act = kinds[self.acts.total() % len(kinds)]
            with contextlib.suppress(OSError, StopIteration):  # whoever moves meanwhile is not found any more
                act(self.siege.file.entry(self.random.choice(self.siege.drill.honest)).address)
            self.acts[act.__name__] += 1
            self.ended.wait(20.0)

    def _key(self, address: str) -> str:
        return next(entry.public_key for entry in self.siege.file.peers if entry.address == address)

    def knock(self, address: str) -> None:
        """Sixty handshakes a second with a key that nobody knows."""
        for _ in range(20 * 60):
            with contextlib.suppress(OSError, Refused, AssertionError):
                dial(address, self._key(address), new_keys(), seconds=1.0).link.close()
            if self.ended.wait(1 / 60):
                break

    def steal(self, address: str) -> None:
        """Listen with a key that was valid once."""
        limit = time.monotonic() + 20.0
        while self.old and time.monotonic() < limit and not self.ended.wait(0.2):
            with contextlib.suppress(OSError, Refused, AssertionError):
                opened: Opened = dial(address, self._key(address), self.random.choice(self.old), seconds=1.0)
                opened.link.close()
                self.stolen += 1

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

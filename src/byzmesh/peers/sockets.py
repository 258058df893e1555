"""Links between processes: TCP, authenticated and encrypted, bounded.

A peer listens at its own address and opens one connection to each neighbour it wants to hear; a connection carries
messages one way, from the end that accepted it. The handshake (doorkeeper.py) tells both ends who the other one is.

    own links       what arrives through a neighbour's link can only come from that neighbour, and closing the link
                    shuts it out
    never blocks    a slow or dead reader fills its own short queue and then loses messages
    exact size      a frame larger than a message of this run ends the link before it is read; it is opened again after
                    ten seconds
    short queues    `QUEUE` messages per neighbour each way, small buffers in the kernel; a neighbour has room for one
                    frame in the making

A neighbour that has just connected to listen is announced (`joined`), by the key it authenticated with: it can be sent
the message of the current round again.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial

from byzmesh.peers.certificates import certificate, contexts
from byzmesh.peers.dials import LAST_REDIAL
from byzmesh.peers.doorkeeper import Doorkeeper
from byzmesh.peers.frames import Ear, Garbage, Room, Voice
from byzmesh.peers.handshake import Opened
from byzmesh.peers.identity import Keys
from byzmesh.peers.tcp import file_limit, listen, listen_elsewhere, set_options
from byzmesh.peers.transport import AFTER_GARBAGE, QUEUE, Received, Remote
from byzmesh.peers.wire import EVERYONE

MOST_INBOUND = 1000
"""Connections from outside that may be in a handshake, if the file limit allows more."""
_LINGER = 0.3  # seconds that messages under a former key have; a reader that does not read holds the peer up so long
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Sockets:
    """The links of one peer."""

    def __init__(
        self,
        me: int,
        address: str,
        keys: Keys,
        neighbours: Mapping[int, Remote],
        size: int,
        log: Callable[..., None] = lambda event, **facts: None,
        parts: int = 1,
    ) -> None:
        self.me = me
        self.neighbours = dict(neighbours)
        self._size, self._keys, self._log, self._address = size, keys, log, address
        self._queue = QUEUE * parts
        self._names = {certificate(remote.public_key): i for i, remote in neighbours.items()}
        self._listens: set[int] = set()
        self._ears: dict[int, Ear] = {}
        self._voices: dict[int, Voice] = {}
        self._since: dict[int, float] = {}
        self._full: set[int] = set()
        self._messages: list[tuple[int, memoryview]] = []
        self._joined: list[int] = []
        self._opened: deque[Opened] = deque()
        self._shared = Room()
        self._visits = self._seen = 0
        self._lock = threading.Lock()
        """Held while links are looked after, by the peer or by the doorkeeper for it."""
        listener = listen(address, me)
        self._selector = selectors.DefaultSelector()
        self._wake, woken = socket.socketpair()
        self._woken = woken
        for one in (self._wake, woken):
            one.setblocking(False)
        self._selector.register(woken, _READ, self._adopt)
        most = max(min(file_limit() // 4, MOST_INBOUND), 2 * len(neighbours) + 16)
        self._door = Doorkeeper(
            listener, contexts(keys, self._names), most, self._let_in, self._serve_for_the_absent, log
        )
        self._closed = False
        for neighbour in self.neighbours:
            self.connect(neighbour)

    def fileno(self) -> int:
        """For a caller that waits for several transports at once: readable when `receive` has something to do."""
        return self._selector.fileno()

    @property
    def guarding(self) -> bool:
        """Whether handshakes are answered."""
        return self._door.guarding

    @property
    def strangers(self) -> int:
        """Handshakes refused."""
        return self._door.refused

    @property
    def received(self) -> int:
        """Bytes of the frames that came through the links that are open."""
        return sum(ear.received for ear in self._ears.values())

    @property
    def connected(self) -> list[int]:
        """The neighbours listened to."""
        return sorted(self._listens)

    @property
    def linked(self) -> list[int]:
        """Those of them whose link is open."""
        return sorted(self._ears)

    def change(self, address: str, keys: Keys, neighbours: Mapping[int, Remote]) -> None:
        """Other neighbours, or addresses, or keys; links that stay as they are stay open."""
        former, self.neighbours = self.neighbours, dict(neighbours)
        anew = keys != self._keys
        for neighbour in self.connected:
            if anew or former[neighbour] != neighbours.get(neighbour):
                self.disconnect(neighbour)
        with self._lock:
            if anew:  # whoever has not got the last messages yet will not hear us any more
                self._flush(_LINGER)
            for neighbour in list(self._voices):
                known = neighbours.get(neighbour)
                if anew or known is None or known.public_key != former[neighbour].public_key:
                    self._end_voice(neighbour)
            self._names = {certificate(remote.public_key): i for i, remote in neighbours.items()}
            stays = address == self._address
            self._address, self._keys = address, keys
        move = None if stays else partial(listen_elsewhere, address=address, me=self.me, log=self._log)
        self._door.change(contexts(keys, self._names), move)
        for neighbour in self.neighbours:
            self.connect(neighbour)

    def connect(self, neighbour: int) -> None:
        """Listen to a neighbour (again)."""
        if neighbour not in self._listens:
            self._listens.add(neighbour)
            self._dial(neighbour)

    def _dial(self, neighbour: int, after: float = 0.0, again: bool = False) -> None:
        remote = self.neighbours[neighbour]
        self._door.dials.add(neighbour, remote.address, certificate(remote.public_key), after, again)

    def disconnect(self, neighbour: int) -> None:
        """Stop listening to a neighbour; whatever it still sends is lost."""
        self._listens.discard(neighbour)
        self._door.dials.remove(neighbour)
        with self._lock:
            self._end_ear(neighbour)
            self._messages = [message for message in self._messages if message[0] != neighbour]

    def send(self, data: bytes | bytearray) -> None:
        """Send a message; its first bytes say who reads it. Never blocks."""
        (to,) = struct.unpack_from("<H", data)
        with self._lock:
            known = [reader for reader in self._voices if reader not in self._joined]
            for reader in known if to == EVERYONE else [to] if to in known else []:
                voice = self._voices[reader]
                waited = len(voice.waiting)
                try:
                    voice.say(data)
                except OSError:
                    self._end_voice(reader)
                    continue
                if voice.waiting and not waited:
                    self._selector.modify(voice.link, _READ | _WRITE, partial(self._tend, reader, voice))

    def receive(self, seconds: float) -> Received:
        """Wait up to `seconds`: (neighbour, bytes) of what arrived, and the neighbours that have just joined."""
        self._visits += 1
        with self._lock:
            self._look(0.0 if self._messages or self._joined else max(0.0, seconds))
            messages, joined = self._messages, self._joined
            self._messages, self._joined = [], []
            for neighbour in self._full:
                ear = self._ears[neighbour]
                self._selector.register(ear.link, _READ, partial(self._hear, ear, ear.read))
            self._full.clear()
        self._visits += 1
        return messages, list(dict.fromkeys(joined))

    def _look(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            key.data()

    def _serve_for_the_absent(self) -> bool:
        """Look after the links while the peer computes for long; whether it does. Called by the doorkeeper."""
        if self._visits != self._seen or not self._lock.acquire(blocking=False):
            self._seen = self._visits
            return False
        try:
            self._look(0.0)
            for neighbour, count in Counter(sender for sender, _ in self._messages).items():
                # of a link that ended there may be messages still
                if count >= self._queue and neighbour in self._ears and neighbour not in self._full:
                    self._full.add(neighbour)
                    self._selector.unregister(self._ears[neighbour].link)
            if self._messages or self._joined:
                self._rouse()
        finally:
            self._lock.release()
        return True

    def _rouse(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"!")

    def _let_in(self, opened: Opened) -> None:
        """A link is open; called by the doorkeeper, who must not wait for the peer."""
        self._opened.append(opened)
        self._rouse()

    def _adopt(self) -> None:
        """Take the links that were opened."""
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(1024)
        while self._opened:
            opened = self._opened.popleft()
            neighbour = self._names.get(opened.certificate)
            if neighbour is None or (not opened.accepted and neighbour not in self._listens):
                opened.link.close()
                continue
            try:
                set_options(opened.link, self._size)
                (self._take_voice if opened.accepted else self._take_ear)(neighbour, opened)
            except OSError:
                opened.link.close()
                if not opened.accepted:
                    self._dial(neighbour, again=True)

    def _take_voice(self, neighbour: int, opened: Opened) -> None:
        self._end_voice(neighbour)
        voice = self._voices[neighbour] = Voice(opened.link, opened.key, self._queue, self._shared)
        self._selector.register(opened.link, _READ, partial(self._tend, neighbour, voice))
        self._joined.append(neighbour)

    def _tend(self, neighbour: int, voice: Voice) -> None:
        """A reader hung up, or can be written to again."""
        if self._voices.get(neighbour) is not voice:
            return
        try:
            with contextlib.suppress(BlockingIOError):
                voice.link.recv(1)
                raise EOFError  # whoever listens has nothing to say
            voice.write()
        except (EOFError, OSError):
            self._end_voice(neighbour)
            return
        if not voice.waiting:
            self._selector.modify(voice.link, _READ, partial(self._tend, neighbour, voice))

    def _end_voice(self, neighbour: int) -> None:
        voice = self._voices.pop(neighbour, None)
        if voice is not None:
            self._selector.unregister(voice.link)
            voice.link.close()

    def _take_ear(self, neighbour: int, opened: Opened) -> None:
        self._end_ear(neighbour)
        ear = self._ears[neighbour] = Ear(neighbour, opened.link, opened.key, self._size, opened.begun)
        self._since[neighbour] = time.monotonic()
        self._selector.register(opened.link, _READ, partial(self._hear, ear, ear.read))
        self._hear(ear, ear.take)

    def _hear(self, ear: Ear, read: Callable[[list[tuple[int, memoryview]]], None]) -> None:
        neighbour = ear.neighbour
        if self._ears.get(neighbour) is not ear:
            return
        try:
            read(self._messages)
        except Garbage as error:
            self._log("shut down", neighbour=neighbour, reason=str(error))
            self._end_ear(neighbour)
            self._dial(neighbour, AFTER_GARBAGE)
        except (EOFError, OSError):
            if time.monotonic() - self._since[neighbour] > LAST_REDIAL:
                self._door.dials.settle(neighbour)
            self._end_ear(neighbour)
            self._dial(neighbour, again=True)

    def _end_ear(self, neighbour: int) -> None:
        ear = self._ears.pop(neighbour, None)
        if ear is not None:
            if neighbour in self._full:
                self._full.discard(neighbour)
            else:
                self._selector.unregister(ear.link)
            ear.link.close()

    def _flush(self, seconds: float) -> None:
        """Wait up to `seconds` until nothing waits to be written."""
        limit = time.monotonic() + seconds
        while any(voice.waiting for voice in self._voices.values()) and time.monotonic() < limit:
            self._look(max(0.0, limit - time.monotonic()))

    def close(self, linger: float = 1.0) -> None:
        """End all links; queued messages may still be sent for `linger` seconds."""
        if self._closed:
            return
        self._closed = True
        self._listens.clear()
        self._door.close()
        for neighbour in list(self._ears):
            self._end_ear(neighbour)
        self._flush(linger)
        for neighbour in list(self._voices):
            self._end_voice(neighbour)
        for opened in self._opened:
            opened.link.close()
        self._selector.close()
        for one in (self._wake, self._woken):
            one.close()


class Machine:
    """The world of this machine's clock and of sockets."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
    open = Sockets


MACHINE = Machine()

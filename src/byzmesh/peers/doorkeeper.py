"""Who may connect: all handshakes, those of others with us and ours with them, in a thread of their own.

Neither may wait for the peer's computation. While the peer computes for long, the thread also reads and writes the
links that are open (`serve`). Whatever goes wrong in it is logged, and the thread goes on.

    few         at most so many connections are in a handshake; a newer one ends the oldest from where most come from.
                Those that have said nothing yet cannot displace those that have
    short       a handshake that takes longer than `HANDSHAKE_SECONDS` is over
    not costly  handshakes of others take at most `SHARE` of the time of a processor; who comes from where few come
                from is first
"""

from __future__ import annotations

import contextlib
import errno
import random
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from byzmesh.peers.crowd import Crowd, source
from byzmesh.peers.dials import Dial, Dials
from byzmesh.peers.handshake import Handshake, Opened, Refused

T = TypeVar("T")
Move = Callable[[socket.socket], socket.socket]
"""The former listening socket -> the one to go on with."""

HANDSHAKE_SECONDS = 5.0
SHARE = 0.2
_LOOK, _SERVE = 0.1, 0.02
"""Seconds between two looks whether the peer computes for long, and between two services while it does."""
_SLICE = SHARE * _LOOK
"""Seconds of a processor for handshakes of others until the next pause."""
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


@dataclass(eq=False)
class _Visitor:
    """A connection in its handshake; `dial` is None if the other end opened it."""

    handshake: Handshake
    address: str
    source: str
    dial: Dial | None = None
    _: KW_ONLY
    limit: float = 0.0


class Doorkeeper:
    """Opens links.

    listener  a listening socket; it is closed with the doorkeeper
    most      connections of others that may be in a handshake
    opened    called with every connection whose other end is known
    serve     called often while the peer does not look after its links itself; whether it does not
    """

    def __init__(
        self,
        listener: socket.socket,
        contexts: tuple[ssl.SSLContext, ssl.SSLContext],
        most: int,
        opened: Callable[[Opened], None],
        serve: Callable[[], bool],
        log: Callable[..., None],
    ) -> None:
        self._listener, self._contexts = listener, contexts
        self._opened, self._serve, self._log = opened, serve, log
        self.refused = 0
        """Handshakes of others that failed."""
        self.dials = Dials(self._rouse)
        """Whom to open links to."""
        self._lock = threading.Lock()
        """Of the news."""
        self._news: list[tuple[tuple[ssl.SSLContext, ssl.SSLContext], Move | None]] = []
        self._visitors: dict[_Visitor, None] = {}
        """The oldest first."""
        self._talking, self._silent = Crowd[_Visitor](most // 4), Crowd[_Visitor](most - most // 4)
        """Those of others that have begun, and that have not."""
        self._random = random.Random()
        self._stopped = False
        self._wake, self._woken = socket.socketpair()
        for one in (listener, self._wake, self._woken):
            one.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="byzmesh-doorkeeper", daemon=True)
        self._thread.start()

    @property
    def guarding(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def change(self, contexts: tuple[ssl.SSLContext, ssl.SSLContext], move: Move | None) -> None:
        """Other keys, own or trusted, and perhaps another address; handshakes under way are over."""
        with self._lock:
            self._news.append((contexts, move))
        self._rouse()

    def _take_news(self) -> None:
        with self._lock:
            news, self._news = self._news, []
        for contexts, move in news:
            self._contexts = contexts
            for visitor in list(self._visitors):
                self._drop(visitor)
            if move is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(self._listener)
                self._listener = move(self._listener)
                self._listener.setblocking(False)
                self._selector.register(self._listener, selectors.EVENT_READ)

    def _rouse(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"!")

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(1024)

    def _run(self) -> None:
        absent, looked, rested = False, 0.0, 0.0
        while not self._stopped:
            pause = min(_SERVE if absent else _LOOK, self.dials.next_due() - time.monotonic())
            ready = [key for key, _ in self._selector.select(max(0.0, pause))]
            began = time.thread_time()
            self._try(self._hear)
            self._try(self._take_news)
            visitors = [key.data for key in ready if key.data is not None]
            for visitor in visitors:
                if visitor.dial is not None:
                    self._try(self._go_on, visitor)
            for dial in self._try(self.dials.take_due) or ():
                self._try(self._connect, dial)
            self._try(self._end_late)
            others = [visitor for visitor in visitors if visitor.dial is None]
            knocking = any(key.fileobj is self._listener for key in ready)
            if time.monotonic() >= rested:
                self._attend(others, began + _SLICE / 2)
                if knocking:
                    self._try(self._accept, began + _SLICE)
            cost = time.thread_time() - began
            if time.monotonic() - looked >= _SERVE:
                absent, looked = self._try(self._serve) is True, time.monotonic()
            if knocking or others:
                now = time.monotonic()
                rested = max(rested, now) + cost * (1.0 / SHARE - 1.0)
                time.sleep(min(_LOOK, rested - now))  # links cannot wait for the rest after a slice that took too long

    def _attend(self, others: list[_Visitor], limit: float) -> None:
        """Go on with handshakes of others until the processor's time is up."""
        self._random.shuffle(others)
        for visitor in sorted(others, key=lambda visitor: self._talking.of(visitor.source)):
            if time.thread_time() > limit:
                return
            self._try(self._go_on, visitor)

    def _try(self, act: Callable[..., T], *facts: object) -> T | None:
        try:
            return act(*facts)
        except Exception as error:
            with contextlib.suppress(Exception):
                self._log("guard failed", error=repr(error))
            return None

    def _accept(self, limit: float) -> None:
        """Accept connections until the processor's time is up, and never so many that nobody else has a chance."""
        for _ in range(self._silent.most // 2):
            if time.thread_time() > limit:
                return
            try:
                link, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    for visitor in [visitor for visitor in self._visitors if visitor.dial is None]:
                        self._drop(visitor)
                return
            visitor = _Visitor(Handshake(link, self._contexts[1], True), str(address[0]), source(address[0]))
            self._displace(self._silent.add(visitor, visitor.source))
            self._begin(visitor, selectors.EVENT_READ)

    def _displace(self, visitor: _Visitor | None) -> None:
        if visitor is not None:
            self._drop(visitor)

    def _begin(self, visitor: _Visitor, events: int) -> None:
        link = visitor.handshake.link
        link.setblocking(False)
        visitor.limit = time.monotonic() + HANDSHAKE_SECONDS
        self._visitors[visitor] = None
        self._selector.register(link, events, visitor)

    def _connect(self, dial: Dial) -> None:
        family, where = dial.places.pop(0)
        try:
            link = socket.socket(family, socket.SOCK_STREAM)
            link.setblocking(False)
            link.connect_ex(where)
            visitor = _Visitor(Handshake(link, self._contexts[0], False), dial.address, "", dial)
            self._begin(visitor, selectors.EVENT_WRITE)
        except OSError:
            self.dials.failed(dial)

    def _go_on(self, visitor: _Visitor) -> None:
        """One step of a handshake."""
        if visitor not in self._visitors:
            return
        handshake, dial, begun = visitor.handshake, visitor.dial, visitor.handshake.begun
        try:
            if dial is not None and not begun:
                failed = handshake.link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    raise OSError(failed, "cannot connect")
                self._selector.modify(handshake.link, selectors.EVENT_READ, visitor)
                opened = handshake.go_on()
            else:
                opened = handshake.read()
            if dial is None and handshake.begun and not begun:
                self._silent.remove(visitor, visitor.source)
                self._displace(self._talking.add(visitor, visitor.source))
            if opened is None:
                return
            if dial is not None and opened.certificate != dial.certificate:
                raise Refused("key is another neighbour's")
        except (OSError, Refused) as error:
            if dial is None and isinstance(error, Refused):
                self.refused += 1
                self._log("refused", address=visitor.address, reason=str(error))
            self._drop(visitor)
            return
        self._forget(visitor)
        if dial is None or self.dials.wants(dial):
            self._opened(opened)
        else:
            handshake.link.close()

    def _end_late(self) -> None:
        now = time.monotonic()
        while self._visitors and (oldest := next(iter(self._visitors))).limit < now:
            self._drop(oldest)

    def _forget(self, visitor: _Visitor) -> None:
        self._visitors.pop(visitor, None)
        for crowd in (self._silent, self._talking):
            crowd.remove(visitor, visitor.source)
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(visitor.handshake.link)

    def _drop(self, visitor: _Visitor) -> None:
        self._forget(visitor)
        visitor.handshake.link.close()
        if visitor.dial is not None:
            self.dials.failed(visitor.dial)

    def close(self) -> None:
        """End the thread and all handshakes."""
        self._stopped = True
        self._rouse()
        self._thread.join()
        for visitor in list(self._visitors):
            self._drop(visitor)
        self._selector.close()
        for one in (self._listener, self._wake, self._woken):
            one.close()

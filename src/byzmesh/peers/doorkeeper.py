"""Who may connect: all handshakes, those of others with us and ours with them, in a thread of their own.

Neither may wait for the peer's computation. While the peer computes for long, the thread also reads and writes the
links that are open (`serve`). Whatever goes wrong in it is logged, and the thread goes on.

    few         at most so many connections are in a handshake; a newer one ends the oldest
    short       a handshake that takes longer than `HANDSHAKE_SECONDS` is over
    not costly  handshakes of others take at most `SHARE` of the time of a processor
    stubborn    a link that cannot be opened, or ends, is dialled again after 20 ms, then less and less often
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from byzmesh.peers.handshake import Handshake, Opened, Refused
from byzmesh.peers.tcp import split_address

HANDSHAKE_SECONDS = 5.0
SHARE = 0.2
FIRST_REDIAL, LAST_REDIAL = 0.02, 1.0
"""Seconds until a link is dialled again: the first time, and at most."""
_LOOK, _SERVE = 0.1, 0.02
"""Seconds between two looks whether the peer computes for long, and between two services while it does."""
_ACCEPTED = 64  # connections accepted at once


@dataclass
class _Dial:
    """A neighbour to connect to."""

    address: str
    certificate: bytes
    due: float
    _: KW_ONLY
    wait: float = FIRST_REDIAL
    busy: bool = False


@dataclass(eq=False)
class _Visitor:
    """A connection in its handshake; `dial` is None if the other end opened it."""

    handshake: Handshake
    address: str
    limit: float
    dial: _Dial | None = None
    _: KW_ONLY
    said: bool = False


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
        self._listener, self._contexts, self._most = listener, contexts, most
        self._opened, self._serve, self._log = opened, serve, log
        self.refused = 0
        """Handshakes of others that failed."""
        self._lock = threading.Lock()
        """Of what the peer and the thread both change: dials and news."""
        self._dials: dict[int, _Dial] = {}
        self._news: list[tuple[tuple[ssl.SSLContext, ssl.SSLContext], socket.socket | None]] = []
        self._visitors: dict[_Visitor, None] = {}
        self._knocking = 0
        self._stopped = False
        self._wake, self._woken = socket.socketpair()
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for one, act in ((listener, self._accept), (self._woken, self._hear)):
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ, act)
        self._thread = threading.Thread(target=self._run, name="byzmesh-doorkeeper", daemon=True)
        self._thread.start()

    @property
    def guarding(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def dial(self, neighbour: int, address: str, certificate: bytes, after: float = 0.0, again: bool = False) -> None:
        """Open a link to a neighbour after so many seconds; `again` if one has just failed: then not too often."""
        with self._lock:
            former = self._dials.get(neighbour)
            dial = _Dial(address, certificate, time.monotonic() + after)
            if again and former is not None:
                dial.wait = min(LAST_REDIAL, 2.0 * former.wait)
                dial.due += former.wait
            self._dials[neighbour] = dial
        self._rouse()

    def settled(self, neighbour: int) -> None:
        """A link to this neighbour has lasted: if it ends, it is dialled again at once."""
        with self._lock:
            if neighbour in self._dials:
                self._dials[neighbour].wait = FIRST_REDIAL

    def hang_up(self, neighbour: int) -> None:
        """Do not dial a neighbour any more."""
        with self._lock:
            self._dials.pop(neighbour, None)

    def change(self, contexts: tuple[ssl.SSLContext, ssl.SSLContext], listener: socket.socket | None) -> None:
        """Other keys, own or trusted, and perhaps another address; handshakes under way are over."""
        with self._lock:
            self._news.append((contexts, listener))
        self._rouse()

    def _take_news(self) -> None:
        with self._lock:
            news, self._news = self._news, []
        for contexts, listener in news:
            self._contexts = contexts
            for visitor in list(self._visitors):
                self._drop(visitor)
            if listener is not None:
                self._selector.unregister(self._listener)
                self._listener.close()
                listener.setblocking(False)
                self._listener = listener
                self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def _rouse(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"!")

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(1024)

    def _run(self) -> None:
        absent, looked = False, 0.0
        while not self._stopped:
            with self._lock:
                due = min((dial.due for dial in self._dials.values() if not dial.busy), default=float("inf"))
            pause = min(_SERVE if absent else _LOOK, due - time.monotonic())
            ready = self._selector.select(max(0.0, pause))
            began, self._knocking = time.thread_time(), 0
            for act in (self._take_news, *(key.data for key, _ in ready), self._dial_due, self._end_late):
                self._try(act)
            cost = time.thread_time() - began
            if time.monotonic() - looked >= _SERVE:
                absent, looked = self._try(self._serve) is True, time.monotonic()
            if self._knocking:
                time.sleep(min(_LOOK, cost * (1.0 / SHARE - 1.0)))

    def _try(self, act: Callable[[], object]) -> object:
        try:
            return act()
        except Exception as error:
            self._log("guard failed", error=repr(error))
            return None

    def _accept(self) -> None:
        for _ in range(_ACCEPTED):
            try:
                link, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # gone again, or no file is free
                self._knocking += 1
                self._make_room(0)
                return
            self._knocking += 1
            self._make_room(self._most - 1)
            self._begin(_Visitor(Handshake(link, self._contexts[1], True), str(address[0]), 0.0), link)

    def _make_room(self, most: int) -> None:
        """End the oldest handshakes of others until at most so many are left."""
        others = [visitor for visitor in self._visitors if visitor.dial is None]
        for visitor in others[: max(0, len(others) - most)]:
            self._drop(visitor)

    def _begin(self, visitor: _Visitor, link: socket.socket) -> None:
        link.setblocking(False)
        visitor.limit = time.monotonic() + HANDSHAKE_SECONDS
        self._visitors[visitor] = None
        dialled = visitor.dial is not None
        events = selectors.EVENT_WRITE if dialled else selectors.EVENT_READ
        self._selector.register(link, events, lambda: self._go_on(visitor))

    def _dial_due(self) -> None:
        now = time.monotonic()
        with self._lock:
            due = [dial for dial in self._dials.values() if not dial.busy and dial.due <= now]
        for dial in due:
            dial.busy = True
            try:
                host, port = split_address(dial.address)
                family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                link = socket.socket(family, kind, protocol)
                link.setblocking(False)
                link.connect_ex(where)
                self._begin(_Visitor(Handshake(link, self._contexts[0], False), dial.address, 0.0, dial), link)
            except OSError:
                self._again(dial)

    def _again(self, dial: _Dial) -> None:
        dial.busy, dial.due = False, time.monotonic() + dial.wait
        dial.wait = min(LAST_REDIAL, 2.0 * dial.wait)

    def _go_on(self, visitor: _Visitor) -> None:
        """One step of a handshake."""
        if visitor not in self._visitors:
            return
        handshake, dial = visitor.handshake, visitor.dial
        if dial is None:
            self._knocking += 1
        try:
            if dial is not None and not visitor.said:
                failed = handshake.link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    raise OSError(failed, "cannot connect")
                visitor.said = True
                self._selector.modify(handshake.link, selectors.EVENT_READ, lambda: self._go_on(visitor))
                opened = handshake.go_on()
            else:
                opened = handshake.read()
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
        self._selector.unregister(handshake.link)
        del self._visitors[visitor]
        with self._lock:
            wanted = dial is None or any(dial is other for other in self._dials.values())
        if wanted:
            self._opened(opened)
        else:
            handshake.link.close()

    def _end_late(self) -> None:
        now = time.monotonic()
        for visitor in [visitor for visitor in self._visitors if visitor.limit < now]:
            self._drop(visitor)

    def _drop(self, visitor: _Visitor) -> None:
        del self._visitors[visitor]
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._selector.unregister(visitor.handshake.link)
        visitor.handshake.link.close()
        if visitor.dial is not None:
            self._again(visitor.dial)

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

"""ZeroMQ's sockets: authenticated, encrypted, bounded.

A peer binds one publisher (XPUB) at its own address and connects one subscriber (SUB) to the publisher of each
neighbour. CURVE authenticates both ends: the subscriber knows the publisher's public key, and the publisher asks this
module (ZAP) whether the subscriber's key is a neighbour's; a stranger fails in the handshake.

    send once       the publisher gives one buffer to all connections; a slow or dead reader fills its own short queue
                    and then loses messages, but never blocks the sender
    own sockets     what arrives through a neighbour's socket can only come from that neighbour, and closing the socket
                    shuts it out
    exact size      a frame larger than a message of this run ends the connection for good before it is read
    short queues    `QUEUE` messages per neighbour each way, small kernel buffers; the audit of bytes finds what ZeroMQ
                    buffers beyond its own limits

A subscriber asks for messages to everybody and to itself. When it (re)appears, the publisher learns of it (`joined`),
by the key it authenticated with, and can send the message of the current round again to it alone.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from byzmesh.errors import PeerError
from byzmesh.peers.audit import Audit, file_limit
from byzmesh.peers.doorkeeper import Doorkeeper
from byzmesh.peers.identity import Keys, zeromq
from byzmesh.peers.transport import QUEUE, Received, Remote
from byzmesh.peers.wire import EVERYONE

MOST_INBOUND = 1000
"""Connections from outside, if the file limit allows more: each is looked at in every audit."""
OVERHEAD = 33
"""What CURVE adds to a frame: name, nonce, authenticator, flags."""
_PER_FRAME = OVERHEAD + 9  # ZeroMQ's own frame header
_HANDSHAKE = 1024  # the largest command of a handshake fits; a smaller cap would refuse everybody
_KERNEL_BUFFER = 1 << 18
_LINGER = 2.0  # seconds that the messages of a closed publisher have, and that its address has to get free
_COPIED = 1 << 19  # bytes up to which a copy costs less than the object that would spare it
_JOINS = 4  # subscriptions read at once, per neighbour


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port"; an IPv6 host is in brackets.

    >>> split_address("[::1]:7000"), split_address("peer.example:7000")
    (('::1', 7000), ('peer.example', 7000))
    """
    host, _, port = address.rpartition(":")
    return host.removeprefix("tcp://").strip("[]"), int(port)


class Sockets:
    """The sockets of one peer."""

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
        self.zmq: Any = zeromq()
        self.me = me
        self.neighbours = dict(neighbours)
        self.received = dict.fromkeys(self.neighbours, 0)
        """Bytes delivered by neighbour, including the overhead on the wire."""
        self.hoarding: set[int] = set()
        """Neighbours that sent bytes that never became messages."""
        self._size, self._keys, self._log, self._address = size, keys, log, address
        self._queue = QUEUE * parts
        self._context = self.zmq.Context()
        self._poller = self.zmq.Poller()
        self._noblock = int(self.zmq.NOBLOCK)
        self._by_copy = size <= _COPIED
        self._subscribers: dict[int, Any] = {}
        self._sender: dict[Any, int] = {}
        self._doorkeeper = Doorkeeper(self._context, {remote.public_key: i for i, remote in neighbours.items()}, log)
        try:
            self._publisher = self._publish(address)
            self._audit = Audit(
                self._port,
                {i: split_address(remote.address) for i, remote in neighbours.items()},
                2 * self._queue * (size + _PER_FRAME),
                most_inbound=max(min(file_limit() // 4, MOST_INBOUND), 2 * len(neighbours) + 16),
            )
            self._doorkeeper.audit = lambda: self._note(self._audit.check(self.received))
            for neighbour in self.neighbours:
                self.connect(neighbour)
        except BaseException:
            self.close(linger=0.0)
            raise

    @property
    def _port(self) -> int:
        return split_address(self._publisher.getsockopt_string(self.zmq.LAST_ENDPOINT))[1]

    def change(self, address: str, keys: Keys, neighbours: Mapping[int, Remote]) -> None:
        """Other neighbours, or addresses, or keys; links that stay as they are stay open."""
        former, self.neighbours = self.neighbours, dict(neighbours)
        anew = (address, keys) != (self._address, self._keys)
        for neighbour in list(self._subscribers):
            if anew or former[neighbour] != neighbours.get(neighbour):
                self.disconnect(neighbour)
        names = {remote.public_key: i for i, remote in neighbours.items()}
        shut_out = self._doorkeeper.names.keys() - names.keys()
        self._doorkeeper.names = names
        self._address, self._keys = address, keys
        if anew or shut_out:
            # ZeroMQ asks for a key in the handshake only: whoever is inside stays until the publisher closes
            self._publish_again()
        self.received |= {i: 0 for i in neighbours if i not in self.received}
        self._audit.change(self._port, {i: split_address(remote.address) for i, remote in neighbours.items()})
        for neighbour in self.neighbours:
            self.connect(neighbour)

    def _publish_again(self) -> None:
        self._poller.unregister(self._publisher)
        self._publisher.close(int(1000 * _LINGER))
        limit = time.monotonic() + _LINGER
        while True:
            try:
                self._publisher = self._publish(self._address)
                return
            except PeerError:  # ZeroMQ frees an address in its own thread
                if time.monotonic() > limit:
                    raise
                time.sleep(0.005)

    def _note(self, guilty: list[int | None]) -> None:
        for neighbour in guilty:
            self._log("shut down", neighbour=neighbour, reason="sends bytes that never become messages")
            if neighbour is not None:
                self.hoarding.add(neighbour)

    def _publish(self, address: str) -> Any:
        zmq = self.zmq
        socket = self._socket(zmq.XPUB, _HANDSHAKE, address)
        socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        socket.zap_domain = b"byzmesh"
        socket.curve_server = True
        try:
            socket.bind(f"tcp://{address}")
        except zmq.ZMQError as error:
            socket.close(0)
            raise PeerError(f"peer {self.me} cannot listen at {address}: {error}; give it a free address") from error
        self._poller.register(socket, zmq.POLLIN)
        return socket

    def _socket(self, kind: int, largest: int, address: str) -> Any:
        zmq = self.zmq
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.IPV6, int(address.startswith("[")))
        for option, value in (
            (zmq.SNDHWM, self._queue),
            (zmq.RCVHWM, self._queue),
            (zmq.SNDBUF, max(_KERNEL_BUFFER, 2 * self._size)),
            (zmq.RCVBUF, max(_KERNEL_BUFFER, 2 * self._size)),
            (zmq.MAXMSGSIZE, largest),
            (zmq.HANDSHAKE_IVL, 5000),
            # the kernel's, not ZeroMQ's heartbeats: libzmq 4.3.5 aborts the process if one of them is due, or not
            # answered, on a connection whose queue is full
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 5),
            (zmq.TCP_KEEPALIVE_INTVL, 2),
            (zmq.TCP_KEEPALIVE_CNT, 3),
            (zmq.RECONNECT_IVL, 20),
            (zmq.RECONNECT_IVL_MAX, 1000),
            (zmq.BACKLOG, 256),
        ):
            socket.setsockopt(option, value)
        socket.curve_publickey = self._keys.public.encode()
        socket.curve_secretkey = self._keys.secret.encode()
        return socket

    def connect(self, neighbour: int) -> None:
        """Listen to a neighbour (again)."""
        if neighbour in self._subscribers:
            return
        remote = self.neighbours[neighbour]
        socket = self._socket(self.zmq.SUB, max(self._size + OVERHEAD, _HANDSHAKE), remote.address)
        socket.curve_serverkey = remote.public_key.encode()
        for destination in (EVERYONE, self.me):
            socket.subscribe(struct.pack("<H", destination))
        socket.connect(f"tcp://{remote.address}")
        self._subscribers[neighbour] = socket
        self._sender[socket] = neighbour
        self._poller.register(socket, self.zmq.POLLIN)

    def disconnect(self, neighbour: int) -> None:
        """Stop listening to a neighbour; whatever it still sends is lost."""
        socket = self._subscribers.pop(neighbour, None)
        if socket is not None:
            self._poller.unregister(socket)
            del self._sender[socket]
            socket.close(0)

    @property
    def sockets(self) -> list[Any]:
        """All sockets to poll, for a caller that polls several transports."""
        return [self._publisher, *self._subscribers.values()]

    @property
    def guarding(self) -> bool:
        """Whether handshakes are answered and connections audited."""
        return self._doorkeeper.guarding

    @property
    def strangers(self) -> int:
        """Handshakes refused."""
        return self._doorkeeper.refused

    @property
    def connected(self) -> list[int]:
        """The neighbours listened to."""
        return sorted(self._subscribers)

    def send(self, data: bytes | bytearray) -> None:
        """Publish a message; its first bytes say who reads it. Never blocks."""
        self._publisher.send(data, copy=False)

    def receive(self, seconds: float) -> Received:
        """Wait up to `seconds`: (neighbour, bytes) of what arrived, and the neighbours that have just joined."""
        return self.take(self._poller.poll(max(0.0, seconds) * 1000.0))

    def take(self, ready: Iterable[tuple[Any, int]]) -> Received:
        """`receive` for the sockets that a poller found ready; foreign sockets are ignored."""
        messages: list[tuple[int, Any]] = []
        joined: list[int] = []
        for socket, _ in ready:
            sender = self._sender.get(socket)
            if sender is None:
                joined += self._joined() if socket is self._publisher else ()
                continue
            # one each: to poll again is cheaper than to ask every socket for more, and nobody's turn is longer
            try:
                data = socket.recv(self._noblock, self._by_copy)
            except self.zmq.Again:
                continue
            if not self._by_copy:
                data = data.buffer
            self.received[sender] += len(data) + _PER_FRAME
            # a message has one part: every part of anything longer is checked, and refused, separately
            messages.append((sender, data))
        return messages, joined

    def _joined(self) -> list[int]:
        joined = []
        for _ in range(_JOINS * (1 + len(self.neighbours))):
            try:
                frame = self._publisher.recv(self.zmq.NOBLOCK, copy=False)
            except self.zmq.Again:
                break
            if bytes(frame)[:1] == b"\x01":  # what a connection that ended leaves behind begins with 0 and names nobody
                # who asks is who was authenticated, whatever the subscription says
                joined.append(int(frame.get("User-Id")))
        return list(dict.fromkeys(joined))

    def close(self, linger: float = 1.0) -> None:
        """Close all sockets; queued messages may still be sent for `linger` seconds."""
        if self._context.closed:
            return
        for neighbour in list(self._subscribers):
            self.disconnect(neighbour)
        publisher = getattr(self, "_publisher", None)
        if publisher is not None:
            publisher.close(int(linger * 1000))
        self._doorkeeper.close()
        self._context.term()


class Machine:
    """The world of this machine's clock and ZeroMQ's sockets."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
    open = Sockets


MACHINE = Machine()

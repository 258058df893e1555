"""What the kernel knows of this peer's connections: a bound on the memory and the files that ZeroMQ itself may use.

ZeroMQ's limits count whole messages. A neighbour that begins a message of many parts and never ends it could fill the
memory with parts that no limit sees. So the audit compares the kernel's counters with what was delivered: a connection
that received more than that, `SLACK` and `QUEUE`s of messages, and ZeroMQ's heartbeats, is shut down and its neighbour
named. On connections that others opened to this peer's publisher only subscriptions may arrive, which are a few bytes.

ZeroMQ accepts any number of connections. Above `most_inbound`, those that received the fewest bytes are shut down: a
neighbour's has received a whole handshake, which a stranger cannot finish.

The counters are Linux's (TCP_INFO); elsewhere the audit finds nothing, and the service needs limits from outside.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

SLACK = 4 << 20
"""Bytes that may be in transit on one connection, besides the queue."""
ASKING = 1 << 18
"""Bytes that a subscriber may send, besides heartbeats."""
HEARTBEATS = 256.0
"""Bytes per second that ZeroMQ's heartbeats may add on one connection: a ping and a pong of 40 bytes every two seconds,
with room."""
_BYTES_RECEIVED = 128  # offset in struct tcp_info


@dataclass(frozen=True)
class Connection:
    """A TCP connection of this process."""

    handle: int
    own_port: int
    far: tuple[str, int]
    received: int

    def shut(self) -> None:
        """End it in both directions; ZeroMQ then closes it."""
        # the handle may be another file's by now
        link = _borrowed(self.handle)
        if link is None:
            return
        try:
            if (link.getsockname()[1], link.getpeername()[:2]) == (self.own_port, self.far):
                link.shutdown(socket.SHUT_RDWR)
        except (OSError, IndexError):
            pass
        finally:
            link.detach()


def _borrowed(handle: int) -> socket.SocketType | None:
    """ZeroMQ's socket as Python's, if it is one; not a duplicate, because there may be no free file left.

    As if it were TCP: Python would otherwise ask the kernel three times what it is, ten times a second for each file.
    And as the plain type, which takes a fifth of the time to make.
    """
    try:
        return socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, handle)
    except (OSError, ValueError):
        return None


def file_limit() -> int:
    """How many files this process may open; raised as far as the system allows."""
    if sys.platform == "win32":
        return 1 << 16
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return 1 << 16 if soft == resource.RLIM_INFINITY else soft


def connections() -> list[Connection]:
    """This process's TCP connections; those that end meanwhile are left out."""
    try:
        handles = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        # no file is free to list them with: then there are so many that trying each is no more work
        handles = list(range(file_limit())) if os.path.isdir("/proc/self/fd") else []
    found = []
    for handle in handles:
        link = _borrowed(handle)
        if link is None:
            continue
        try:
            info = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)  # raises for all but TCP
            far = link.getpeername()  # raises for a listening socket
            received = struct.unpack_from("<Q", info, _BYTES_RECEIVED)[0]
            found.append(Connection(handle, link.getsockname()[1], (str(far[0]), far[1]), received))
        except (OSError, IndexError, struct.error):
            continue
        finally:
            link.detach()
    return found


class Audit:
    """Compares connections with deliveries.

    port          this peer's listening port
    remotes       neighbour -> (host, port) it is connected to
    queue         bytes that may wait as whole messages
    most_inbound  connections that others may have opened to this peer
    """

    def __init__(
        self, port: int, remotes: Mapping[int, tuple[str, int]], queue: int, most_inbound: int = 1 << 16
    ) -> None:
        self._queue, self._most = queue, most_inbound
        self.change(port, remotes)
        self._known: dict[tuple[int, tuple[str, int]], tuple[float, int]] = {}
        self._before: dict[int, int] = {}

    def change(self, port: int, remotes: Mapping[int, tuple[str, int]]) -> None:
        """Other neighbours; what is known of connections stays."""
        names: dict[tuple[str, int], int] = {}
        for neighbour, (host, remote_port) in remotes.items():
            with contextlib.suppress(OSError):
                for found in socket.getaddrinfo(host, remote_port, type=socket.SOCK_STREAM):
                    names[str(found[4][0]), remote_port] = neighbour
        self._port, self._neighbour = port, names

    def check(self, received: Mapping[int, int], now: float | None = None) -> list[int | None]:
        """Shut down connections that received too much, or are too many.

        The neighbour of each that received too much, None for a subscriber's.

        received  bytes delivered by neighbour, including headers
        """
        now = time.monotonic() if now is None else now
        guilty: list[int | None] = []
        inbound, known = [], {}
        for link in connections():
            neighbour = self._neighbour.get(link.far)
            key = link.own_port, link.far
            # new since the last audit: what its neighbour has delivered until then came through another connection
            since, base = self._known.get(key, (now, self._before.get(neighbour, 0) if neighbour is not None else 0))
            known[key] = since, base
            allowed = HEARTBEATS * (now - since)
            if link.own_port == self._port:
                inbound.append(link)
                delivered, allowed = 0, allowed + ASKING
            elif neighbour is not None:
                delivered, allowed = received[neighbour] - base, allowed + SLACK + self._queue
            else:
                continue
            if link.received - delivered > allowed:
                guilty.append(None if link.own_port == self._port else neighbour)
                link.shut()
        for link in sorted(inbound, key=lambda link: link.received)[: max(0, len(inbound) - self._most)]:
            link.shut()
        self._known, self._before = known, dict(received)
        return guilty

"""Received bytes that never became a message: a bound on the memory that ZeroMQ itself may use.

ZeroMQ's limits count whole messages. A neighbour that begins a message of many parts and never ends it could fill the
memory with parts that no limit sees. So the audit compares the kernel's counters with what was delivered: a connection
that received `SLACK` bytes more than that is shut down, and its neighbour named. On connections that others opened to
this peer's publisher only subscriptions may arrive, which are a few bytes.

The counters are Linux's (TCP_INFO); elsewhere the audit finds nothing, and the service needs a memory limit.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator, Mapping

SLACK = 4 << 20
"""Bytes that may be in transit on one connection, besides the queue."""
ASKING = 1 << 18
"""Bytes that a subscriber may send over the life of a connection."""
_BYTES_RECEIVED = 128  # offset in struct tcp_info


def connections() -> Iterator[tuple[socket.socket, int]]:
    """This process's TCP connections (duplicated handles, closed after use) and the bytes each has received."""
    try:
        handles = os.listdir("/proc/self/fd")
    except OSError:
        return
    for handle in handles:
        with contextlib.suppress(OSError, ValueError, struct.error):
            if not os.readlink(f"/proc/self/fd/{handle}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(handle))) as link:
                if link.family in (socket.AF_INET, socket.AF_INET6) and link.type == socket.SOCK_STREAM:
                    link.getpeername()  # raises for a listening socket
                    info = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    yield link, struct.unpack_from("<Q", info, _BYTES_RECEIVED)[0]


class Audit:
    """Compares connections with deliveries.

    port     this peer's listening port
    remotes  neighbour -> (host, port) it is connected to
    queue    bytes that may wait as whole messages
    """

    def __init__(self, port: int, remotes: Mapping[int, tuple[str, int]], queue: int) -> None:
        self._port, self._queue = port, queue
        self._neighbour: dict[tuple[str, int], int] = {}
        for neighbour, (host, remote_port) in remotes.items():
            with contextlib.suppress(OSError):
                for found in socket.getaddrinfo(host, remote_port, type=socket.SOCK_STREAM):
                    self._neighbour[str(found[4][0]), remote_port] = neighbour
        self._base: dict[tuple[int, int], int] = {}

    def check(self, received: Mapping[int, int]) -> list[int | None]:
        """Shut down connections that received too much; the neighbour of each, None for a subscriber's.

        received  bytes delivered by neighbour, including headers
        """
        guilty: list[int | None] = []
        for link, total in connections():
            own, far = link.getsockname()[1], link.getpeername()
            neighbour = self._neighbour.get((str(far[0]), far[1]))
            if own == self._port:
                if total > ASKING:
                    guilty.append(None)
                    link.shutdown(socket.SHUT_RDWR)
            elif neighbour is not None:
                base = self._base.setdefault((neighbour, own), received[neighbour])
                if total - (received[neighbour] - base) > SLACK + self._queue:
                    guilty.append(neighbour)
                    link.shutdown(socket.SHUT_RDWR)
        return guilty

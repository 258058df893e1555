"""TCP as peers use it: addresses, options, and how many connections there may be."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Callable
from typing import Any

from byzmesh.errors import PeerError

_KERNEL_BUFFER = 1 << 18
_BACKLOG = 4096
"""Connections that wait to be accepted, if the system allows so many."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port"; an IPv6 host is in brackets, * is any host or any free port.

    >>> split_address("[::1]:7000"), split_address("peer.example:7000"), split_address("*:*")
    (('::1', 7000), ('peer.example', 7000), ('', 0))
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("tcp://").strip("[]")
    return "" if host == "*" else host, 0 if port == "*" else int(port)


def places(address: str, numeric: bool) -> list[tuple[int, Any]]:
    """Where to connect to: family and socket address, all that are known; `numeric`: `OSError` for the name of a host,
    which may take as long as the name server likes.

    >>> places("127.0.0.1:7000", numeric=True) == [(socket.AF_INET, ("127.0.0.1", 7000))]
    True
    """
    host, port = split_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST if numeric else 0)
    except ValueError as error:  # a name that cannot be one
        raise OSError(str(error)) from error
    return [(family, where) for family, _, _, _, where in found]


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


def listen(address: str, me: int) -> socket.socket:
    """A socket that listens there for peer `me`."""
    host, port = split_address(address)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        text = f"peer {me} cannot listen at {address}: {error.strerror}; give it a free address"
        raise PeerError(text) from error


def listen_elsewhere(former: socket.socket, address: str, me: int, log: Callable[..., None]) -> socket.socket:
    """A socket that listens there, instead of the former one; that one, or one at its place, if it cannot be."""
    host, port = former.getsockname()[:2]
    with contextlib.suppress(OSError):
        if any(where[:2] == (host, port) for _, where in places(address, numeric=False)):
            return former  # by another name
    try:
        try:
            moved = listen(address, me)
        except PeerError:
            if split_address(address)[1] != port:
                raise
            former.close()  # it may be in the way itself: 127.0.0.1:7000 and 0.0.0.0:7000 exclude each other
            moved = listen(address, me)
        former.close()
        return moved
    except PeerError as error:
        log("not moved", address=address, text=str(error), stays=f"{host}:{port}")
        return former if former.fileno() >= 0 else listen(f"[{host}]:{port}", me)


def set_options(link: socket.socket, size: int) -> None:
    """Send at once, notice a dead end, and hold few messages of `size` bytes in the kernel."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    if 2 * size <= _KERNEL_BUFFER:  # for larger ones the system finds the right size
        options += [(socket.SOL_SOCKET, which, _KERNEL_BUFFER) for which in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
    for option in options:
        link.setsockopt(*option)

"""Connections of others that are in a handshake: bounded, and shared out by where they come from."""

from __future__ import annotations

import ipaddress
from typing import Generic, TypeVar

T = TypeVar("T")


def source(host: str) -> str:
    """Where a connection comes from: its IPv4 address, or the network of its IPv6 address, which has as many as it
    likes.

    >>> source("10.0.0.1"), source("2001:db8::1") == source("2001:db8::2:3"), source("::1") == source("2001:db8::1")
    ('10.0.0.1', True, False)
    >>> source("::ffff:10.0.0.1"), source("fe80::1%eth0") == source("fe80::2%eth0")
    ('10.0.0.1', True)
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped is not None else address.packed[:8].hex()
    return host


class Crowd(Generic[T]):
    """At most so many; one more costs the oldest of the source that has the most.

    >>> crowd = Crowd[int](3)
    >>> [crowd.add(who, where) for who, where in enumerate("aabab")]
    [None, None, None, 0, 1]
    """

    def __init__(self, most: int) -> None:
        self.most, self._count = most, 0
        self._by_source: dict[str, dict[T, None]] = {}

    def add(self, who: T, source: str) -> T | None:
        """One more; whom it costs its place."""
        gone = None
        if self._count >= self.most:
            largest = max(self._by_source, key=self.of)
            gone = next(iter(self._by_source[largest]))
            self.remove(gone, largest)
        self._by_source.setdefault(source, {})[who] = None
        self._count += 1
        return gone

    def of(self, source: str) -> int:
        """How many come from there."""
        return len(self._by_source.get(source, ()))

    def remove(self, who: T, source: str) -> None:
        """One less, if it is there."""
        there = self._by_source.get(source, {})
        if who in there:
            del there[who]
            self._count -= 1
            if not there:
                del self._by_source[source]

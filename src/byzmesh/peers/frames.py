"""Frames on a link whose ends share a key: each message in one, encrypted and authenticated.

    0  4      bytes that follow
    4         the message, under AES-256-GCM, and its tag of 16 bytes

The nonce of a frame is its number on the link. A link's key is fresh and only one end sends, so no nonce is used twice;
a frame that was changed, left out, repeated or brought from elsewhere fails its tag.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from typing import Any

import numpy as np

from byzmesh.peers.handshake import CHUNK

LENGTH = struct.Struct("<I")
TAG = 16
OVERHEAD = LENGTH.size + TAG
"""Bytes that a frame adds to a message."""
_NONCE = 12
_SHARED = 1 << 18
"""Up to this size a frame is made in a buffer that all links share, which stays in the processor's cache."""


class Garbage(Exception):
    """What arrived is no frame."""


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


class Ear:
    """The reading end of a link.

    neighbour  who speaks
    size       bytes of the largest message
    begun      what was read of the first frames
    """

    def __init__(self, neighbour: int, link: socket.socket, key: bytes, size: int, begun: bytes) -> None:
        self.neighbour, self.link, self._largest = neighbour, link, size + TAG
        self.received = 0
        """Bytes of whole frames."""
        self._decrypt = _cipher(key).decrypt_into
        self._view = memoryview(bytearray(max(size + OVERHEAD, CHUNK)))
        self._view[: len(begun)] = begun
        self._filled = len(begun)
        self._frames = 0

    def read(self, inbox: list[tuple[int, memoryview]]) -> None:
        """Read what arrived into the inbox; `EOFError` or `OSError` if the link ended, `Garbage` if no frame came."""
        try:
            count = self.link.recv_into(self._view[self._filled :])
        except BlockingIOError:
            return
        if not count:
            raise EOFError
        self._filled += count
        self.take(inbox)

    def take(self, inbox: list[tuple[int, memoryview]]) -> None:
        """Put the messages in what was read into the inbox; the beginning of another one is kept."""
        start, filled, view = 0, self._filled, self._view
        while filled - start >= OVERHEAD:
            (length,) = LENGTH.unpack_from(view, start)
            if not TAG <= length <= self._largest:
                raise Garbage(f"a frame of {length} bytes, at most {self._largest} expected")
            end = start + LENGTH.size + length
            if end > filled:
                break
            nonce = self._frames.to_bytes(_NONCE, "little")
            self._frames += 1
            message = np.empty(length - TAG, np.uint8).data
            try:
                self._decrypt(nonce, view[start + LENGTH.size : end], None, message)
            except Exception as error:  # cryptography's InvalidTag
                raise Garbage("a frame with a wrong tag") from error
            inbox.append((self.neighbour, message))
            start = end
        if start:
            self.received += start
            self._filled = filled - start
            if self._filled:
                view[: self._filled] = view[start:filled]


class Voice:
    """The writing end of a link: what the system does not take at once waits in a short queue; beyond it, messages are
    lost."""

    def __init__(self, link: socket.socket, key: bytes, queue: int, shared: bytearray) -> None:
        self.link = link
        self._encrypt = _cipher(key).encrypt_into
        self._queue, self._shared = queue, shared
        self._frames = 0
        self._room = bytearray()
        """For frames that are too large for the shared buffer: kept, if nothing of the last one waits."""
        self.waiting: deque[memoryview] = deque()
        """What is left to write."""

    def say(self, message: bytes | bytearray) -> None:
        """Send a message, or queue it, or lose it; `OSError` if the link ended."""
        if len(self.waiting) >= self._queue:
            return
        length = len(message) + TAG
        room = self._shared if length + LENGTH.size <= len(self._shared) else self._own_room(length + LENGTH.size)
        frame = memoryview(room)[: length + LENGTH.size]
        LENGTH.pack_into(frame, 0, length)
        self._encrypt(self._frames.to_bytes(_NONCE, "little"), message, None, frame[LENGTH.size :])
        self._frames += 1
        sent = 0
        if not self.waiting:
            try:
                sent = self.link.send(frame)
            except BlockingIOError:
                sent = 0
        if sent < len(frame):
            rest = frame[sent:]
            self.waiting.append(memoryview(bytes(rest)) if room is self._shared else rest)

    def _own_room(self, size: int) -> bytearray:
        if self.waiting or len(self._room) < size:
            self._room = bytearray(size)
        return self._room

    def write(self) -> None:
        """Write what waits, as far as the system takes it."""
        while self.waiting:
            frame = self.waiting[0]
            try:
                sent = self.link.send(frame)
            except BlockingIOError:
                return
            if sent < len(frame):
                self.waiting[0] = frame[sent:]
                return
            self.waiting.popleft()


def shared_room(size: int) -> bytearray:
    """The buffer that the links of a peer share; empty if its messages are too large for one."""
    return bytearray(size + OVERHEAD if size + OVERHEAD <= _SHARED else 0)

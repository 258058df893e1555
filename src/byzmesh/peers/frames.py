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
        self._receive, self._decrypt = link.recv_into, _cipher(key).decrypt_into
        self._view = memoryview(bytearray(max(size + OVERHEAD, CHUNK)))
        self._view[: len(begun)] = begun
        self._filled = len(begun)
        self._frames = 0

    def read(self, inbox: list[tuple[int, memoryview]]) -> None:
        """Read what arrived into the inbox; `EOFError` or `OSError` if the link ended, `Garbage` if no frame came."""
        try:
            count = self._receive(self._view[self._filled :] if self._filled else self._view)
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


class Room:
    """Memory for one frame after another. Those of a run have one length, so that the views of it are made once."""

    def __init__(self) -> None:
        self.length = -1
        self._memory = bytearray()

    def fit(self, length: int) -> None:
        """Make room for a frame in which so many bytes follow its length."""
        size = LENGTH.size + length
        if size > len(self._memory):
            self._memory = bytearray(size)
        if length != self.length:
            self.length, self.frame = length, memoryview(self._memory)[:size]
            self.content = self.frame[LENGTH.size :]
            LENGTH.pack_into(self.frame, 0, length)


class Voice:
    """The writing end of a link: what the system does not take at once waits in a short queue; beyond it, messages are
    lost."""

    def __init__(self, link: socket.socket, key: bytes, queue: int, shared: Room) -> None:
        self.link = link
        self._encrypt = _cipher(key).encrypt_into
        self._queue, self._shared = queue, shared
        self._frames = 0
        self._own = Room()
        """For frames that are too large for the shared room."""
        self.waiting: deque[memoryview] = deque()
        """What is left to write."""

    def say(self, message: bytes | bytearray) -> None:
        """Send a message, or queue it, or lose it; `OSError` if the link ended."""
        if len(self.waiting) >= self._queue:
            return
        length, room = len(message) + TAG, self._shared
        if length != room.length:
            room = self._room_for(length)
        self._encrypt(self._frames.to_bytes(_NONCE, "little"), message, None, room.content)
        self._frames += 1
        sent = 0
        if not self.waiting:
            try:
                sent = self.link.send(room.frame)
            except BlockingIOError:
                sent = 0
        if sent < length + LENGTH.size:
            rest = room.frame[sent:]
            self.waiting.append(memoryview(bytes(rest)) if room is self._shared else rest)

    def _room_for(self, length: int) -> Room:
        """Room for a frame of this length: the shared one, or its own, which is made anew if something waits in it."""
        room = self._shared
        if length + LENGTH.size > _SHARED:
            if self.waiting:
                self._own = Room()
            room = self._own
        room.fit(length)
        return room

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

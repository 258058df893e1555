"""Frames: what arrives is what was sent, in order, or the link ends."""

from __future__ import annotations

import contextlib
import socket

import pytest

from byzmesh.peers.frames import LENGTH, OVERHEAD, Ear, Garbage, Room, Voice
from byzmesh.peers.handshake import KEY

SIZE = 40
KEY_OF_LINK = bytes(range(KEY))


class Tap:
    """A socket that keeps what is written to it."""

    def __init__(self) -> None:
        self.sent = b""

    def send(self, data: memoryview) -> int:
        self.sent += bytes(data)
        return len(data)


def sealed(*messages: bytes) -> bytes:
    """The bytes on a link that carries these messages."""
    tap = Tap()
    voice = Voice(tap, KEY_OF_LINK, 8, Room())  # type: ignore[arg-type]
    for message in messages:
        voice.say(message)
    return tap.sent


def heard(data: bytes, key: bytes = KEY_OF_LINK, chunk: int = 1 << 20) -> list[bytes]:
    """What the other end makes of bytes that come in chunks; `Garbage` if it ends the link."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        ear, inbox = Ear(3, theirs, key, SIZE, b""), list[tuple[int, memoryview]]()
        for start in range(0, len(data), chunk):
            ours.sendall(data[start : start + chunk])
            ear.read(inbox)
    return [bytes(message) for _, message in inbox]


@pytest.mark.parametrize("chunk", [1, 3, 19, 20, 61, 1 << 20])
def test_messages_arrive_however_the_bytes_are_cut(chunk: int) -> None:
    said = [b"", b"a", b"b" * SIZE, b"c" * 7]
    assert heard(sealed(*said), chunk=chunk) == said


def test_no_bit_can_be_changed() -> None:
    """Not of the message, its tag or its length: the frame is refused, or waited for in vain."""
    good = sealed(b"x" * 5, b"the next")
    for bit in range(8 * (5 + OVERHEAD)):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(Garbage):
            assert heard(bytes(data)) == []


def test_frames_cannot_be_repeated_left_out_swapped_or_read_with_another_key() -> None:
    one, two = sealed(b"one" * 3), sealed(b"one" * 3, b"two" * 3)[9 + OVERHEAD :]
    assert heard(one + two) == [b"one" * 3, b"two" * 3]
    for data in (one + one, two, two + one):
        with pytest.raises(Garbage):
            heard(data)
    with pytest.raises(Garbage):
        heard(one, key=bytes(KEY))


def test_the_length_is_bounded_before_anything_is_read() -> None:
    for length in (0, 15, SIZE + 17, 0xFFFFFFFF):
        with pytest.raises(Garbage, match="bytes"):
            heard(LENGTH.pack(length) + bytes(OVERHEAD))


def test_equal_messages_look_different_on_the_wire() -> None:
    """A nonce is used once."""
    data = sealed(b"same", b"same")
    assert data[: len(data) // 2] != data[len(data) // 2 :]

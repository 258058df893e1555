"""How many bytes a message between peers has: what a run records is what the wire sends."""

from __future__ import annotations

HEADER_BYTES = 40
"""Bytes before the payload of a message between peers."""
PART_BYTES = 1 << 22
"""A message of more bytes travels in parts of so many."""


def frame_bytes(payload: int) -> int:
    """Bytes of a whole message between peers: header, payload, zeros up to a multiple of 8.

    >>> frame_bytes(9)
    56
    """
    return HEADER_BYTES + payload + -payload % 8


def parts_of(size: int, limit: int = PART_BYTES) -> int:
    """How many frames a message of `size` bytes travels in.

    >>> parts_of(PART_BYTES), parts_of(PART_BYTES + 8)
    (1, 2)
    """
    return -(-size // limit)


def sent_bytes(payload: int) -> int:
    """Bytes of all frames of a message: the message and, if it is long, a header per part.

    >>> sent_bytes(9), sent_bytes(2 * PART_BYTES)
    (56, 8388768)
    """
    size = frame_bytes(payload)
    count = parts_of(size)
    return size + (HEADER_BYTES * count if count > 1 else 0)

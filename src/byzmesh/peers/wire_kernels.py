"""What is computed over all bytes of a message: its checksum, and the largest of its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import fast

HEADER_WORDS = 5
_CHUNK = 1024  # words that are still in the nearest cache when they are read for the second time


@fast
def mixed(words: Any, first: Any) -> Any:
    """The sum of (W,) words, each mixed with its position, the first at `first`."""
    total, place = np.uint64(0), np.uint64(first)
    for number in range(words.size):
        word = words[number] + (place + np.uint64(number)) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        total += word ^ (word >> np.uint64(32))
    return total


@fast
def of_header(words: Any) -> Any:
    """What the header adds to the checksum: its last word, the checksum itself, counts as zero."""
    return mixed(words[: HEADER_WORDS - 1], 0) + mixed(np.zeros(1, np.uint64), HEADER_WORDS - 1)


@fast
def checksum(words: Any) -> Any:
    """Checksum of the (W,) uint64 words of a message, with its own word taken as zero.

    Words are mixed with their positions before the sum, to detect swapped, shifted and twice-flipped bits.
    """
    return of_header(words) + mixed(words[HEADER_WORDS:], HEADER_WORDS)


@fast
def largest(bits: Any, mask: Any) -> Any:
    """The largest of (D,) integers under the mask."""
    kind = bits.dtype.type
    top = kind(0)
    for place in range(bits.size):
        value = kind(bits[place] & mask)
        if value > top:
            top = value
    return top


@fast
def inspect(words: Any, bits: Any, mask: Any) -> Any:
    """Checksum of a message's (W,) words, and the bits of the largest absolute value of its (D,) numbers, in one pass.

    bits  (D,) the numbers as signed integers: under the mask, which takes away the sign, they order like |x|, with
          infinity and NaN on top
    """
    kind = bits.dtype.type
    per_word = 8 // bits.itemsize
    total, top = of_header(words), kind(0)
    for first in range(HEADER_WORDS, len(words), _CHUNK):
        last = min(first + _CHUNK, len(words))
        total += mixed(words[first:last], first)
        top = max(top, largest(bits[(first - HEADER_WORDS) * per_word : (last - HEADER_WORDS) * per_word], mask))
    return total, top

"""What is computed over all numbers of a message."""

from __future__ import annotations

from typing import Any

from byzmesh.compiled import fast


@fast
def largest(bits: Any, mask: Any) -> Any:
    """The largest of (D,) numbers as signed integers, under a mask that takes away the sign.

    They order like absolute values, with infinity and NaN on top.
    """
    kind = bits.dtype.type
    top = kind(0)
    for place in range(bits.size):
        value = kind(bits[place] & mask)
        if value > top:
            top = value
    return top

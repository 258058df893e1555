"""What is computed over all numbers of a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.compiled import fast


def _largest(signed: Any, mask: Any, kind: Any) -> Callable[[Any], float]:
    @fast
    def largest(vector: Any) -> Any:
        bits, top = vector.view(signed), signed(0)
        for place in range(bits.size):
            value = signed(bits[place] & mask)
            if value > top:
                top = value
        found = signed(top)
        return found.view(kind)

    return largest


LARGEST = {
    np.dtype(np.float32): _largest(np.int32, np.int32(0x7FFFFFFF), np.float32),
    np.dtype(np.float64): _largest(np.int64, np.int64(0x7FFFFFFFFFFFFFFF), np.float64),
}
"""The largest absolute value of (D,) floats; NaN or infinity if there is one.

Without their sign, the bits of floats order like their absolute values, with infinity and NaN on top.
"""

"""Sums inside kernels, in the order of NumPy's: the rounding of that order is part of results."""

from __future__ import annotations

from typing import Any

from byzmesh.compiled import exact
from byzmesh.types import Array

MOST = 128
"""`row_sum` adds at most this many numbers."""


@exact
def row_sum(row: Array) -> Any:
    """The sum of at most `MOST` numbers in the order of NumPy's `sum`: eight sums side by side, then what is left."""
    count = row.size
    if count < 8:
        total = -0.0
        for place in range(count):
            total += row[place]
        return total
    a, b, c, d, e, f, g, h = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    whole = count - count % 8
    for place in range(8, whole, 8):
        a += row[place]
        b += row[place + 1]
        c += row[place + 2]
        d += row[place + 3]
        e += row[place + 4]
        f += row[place + 5]
        g += row[place + 6]
        h += row[place + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(whole, count):
        total += row[place]
    return total

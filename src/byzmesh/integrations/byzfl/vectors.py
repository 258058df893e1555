"""n vectors as ByzFL's callers give them, and results as they came."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import require
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Array


def rows_of(vectors: Any) -> tuple[Array, Any]:
    """(n, D) on the host, and one of the vectors as it was given."""
    require(len(vectors) > 0, "vectors must be at least one vector, got none")
    like = vectors[0]
    rows = np.stack([to_host(vector) for vector in vectors])
    require(rows.ndim == 2, f"vectors must be of shape (n, D), got {rows.shape}; flatten them first")
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64), like


def back(array: Array, like: Any) -> Any:
    """A result in the type, dtype and device of the input."""
    if isinstance(like, np.ndarray) and like.dtype.kind != "f":
        return array
    return from_host(array, like)

"""The one door to Numba: typed decorators for compiled kernels.

Kernels are cached on disk, so a second process does not compile again, and release the GIL, so that threads can share
a large round. `fast` lets the compiler reorder sums (needed to vectorise a reduction) but keeps NaN and infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_REORDER = {"reassoc", "contract", "nsz", "arcp"}


def exact(function: F) -> F:
    """Compile with IEEE arithmetic in the order written."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def fast(function: F) -> F:
    """Compile with sums that may be reordered; NaN and infinity still behave."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_REORDER)(function)
    return compiled

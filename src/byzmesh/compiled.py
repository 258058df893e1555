"""The one door to Numba: typed decorators for compiled kernels.

Kernels are cached on disk, so a second process does not compile again, and release the GIL, so that threads can share
a large round. `fast` lets the compiler reorder sums (needed to vectorise a reduction) but keeps NaN and infinity.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_REORDER = {"reassoc", "contract", "nsz", "arcp"}
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's mallopt parameters


def exact(function: F) -> F:
    """Compile with IEEE arithmetic in the order written."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def fast(function: F) -> F:
    """Compile with sums that may be reordered; NaN and infinity still behave."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_REORDER)(function)
    return compiled


@functools.cache
def keep_memory() -> None:
    """Ask glibc to keep freed blocks: arrays of a round come and go, and fresh pages cost more than the arithmetic."""
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    tune(_TRIM_THRESHOLD, 1 << 30)
    tune(_MMAP_THRESHOLD, 1 << 30)


def limit_threads(threads: int) -> AbstractContextManager[Any]:
    """Context in which BLAS uses this many threads."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=threads)
    return limits

"""Give back the memory of files that a peer reads seldom: the code of LLVM at its start, all data when it evaluates.

Their pages are those of the system's file cache, so nothing is lost: whoever reads one again gets it from there.
Mappings of which a page was changed (relocated code is) are left alone. Linux only; elsewhere nothing happens.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import time
from collections.abc import Callable

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r(?:-[x-][ps] .*\s/|w-p .*\s/.*\.npy$)")
"""What nobody may write, and data sets, which nobody writes."""
_DONTNEED = 4
_SECONDS = 10.0


def give_back_mapped_files() -> int:
    """Drop the resident pages of mapped files; how many bytes.

    >>> give_back_mapped_files() >= 0
    True
    """
    if not sys.platform.startswith("linux"):
        return 0
    given, where, resident = 0, None, 0
    with contextlib.suppress(OSError, AttributeError, ValueError):
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
        for line in lines:
            name, _, rest = line.partition(" ")
            if "-" in name:
                found = _MAPPING.match(line)
                where = None if found is None else (int(found[1], 16), int(found[2], 16))
            elif name == "Rss:":
                resident = 1024 * int(rest.split()[0])
            elif name == "Anonymous:" and where is not None and rest.split()[0] == "0" and resident:
                given += resident if madvise(where[0], where[1] - where[0], _DONTNEED) == 0 else 0
    return given


def seldom(act: Callable[[], object], now: Callable[[], float] = time.monotonic) -> Callable[[], None]:
    """`act`, at most once in ten seconds.

    >>> clock, done = [0.0], []
    >>> one = seldom(lambda: done.append(clock[0]), lambda: clock[0])
    >>> for clock[0] in (0.0, 9.0, 10.0, 19.0, 25.0):
    ...     one()
    >>> done
    [0.0, 10.0, 25.0]
    """
    last = [-_SECONDS]

    def limited() -> None:
        if now() - last[0] >= _SECONDS:
            last[0] = now()
            act()

    return limited

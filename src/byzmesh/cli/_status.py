"""What a long computation is doing, on stderr: a live line in a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 5.0
"""Without a terminal: the least time between two lines."""


@contextmanager
def status() -> Iterator[Callable[[str], None]]:
    """A function to call with what goes on now."""
    if not sys.stderr.isatty():
        yield lines()
        return
    from rich.console import Console

    with Console(stderr=True).status("") as shown:
        yield lambda text: shown.update(text)


def lines(clock: Callable[[], float] = time.monotonic) -> Callable[[str], None]:
    """Print what it is called with, but nothing in the first seconds and then not too often.

    >>> times = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    >>> tell = lines(lambda: next(times))
    >>> sys.stderr, before = sys.stdout, sys.stderr
    >>> for text in ("one", "two", "three", "four"):
    ...     tell(text)
    two
    four
    >>> sys.stderr = before
    """
    last = clock()

    def tell(text: str) -> None:
        nonlocal last
        now = clock()
        if now - last >= QUIET_SECONDS:
            print(text, file=sys.stderr, flush=True)
            last = now

    return tell

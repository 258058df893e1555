"""Structured logs: one JSON object per line; what others can provoke is bounded in rate."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

Log = Callable[..., None]
PROVOKED = {
    "refused",
    "moved up",
    "cut off",
    "shut down",
    "guard failed",
    "not written",
    "neighbour lost",
    "neighbour back",
}
"""Events that others can cause as often as they like."""
BURST, SECONDS = 20, 10.0
"""Of each such event and neighbour or path, `BURST` lines are written at once, and then one in `SECONDS`."""


def bounded(log: Log, now: Callable[[], float] = time.monotonic) -> Log:
    """The same log without floods; the next line of an event says how many were left out.

    >>> log = bounded(lambda event, **facts: print(event, facts), now=iter([0.0] * 30 + [11.0]).__next__)
    >>> for _ in range(31):
    ...     log("refused", reason="size")
    refused {'reason': 'size'}
    ...
    refused {'reason': 'size', 'left_out': 10}
    """
    left: dict[tuple[str, Any], tuple[float, float, int]] = {}

    def limited(event: str, **facts: Any) -> None:
        if event not in PROVOKED:
            log(event, **facts)
            return
        # a file's lines have a bucket of their own, which no stranger can empty
        key, moment = (event, facts.get("neighbour", facts.get("path"))), now()
        tokens, since, omitted = left.get(key, (float(BURST), moment, 0))
        tokens = min(float(BURST), tokens + (moment - since) / SECONDS)
        if tokens < 1.0:
            left[key] = tokens, moment, omitted + 1
            return
        left[key] = tokens - 1.0, moment, 0
        log(event, **facts, **({"left_out": omitted} if omitted else {}))

    return limited


def json_log(peer: int, stream: TextIO | None = None) -> Log:
    """A log function `log(event, **facts)` that writes lines to `stream` (default: standard error).

    >>> json_log(3, sys.stdout)("cut off", neighbour=7)
    {"time": ..., "peer": 3, "event": "cut off", "neighbour": 7}
    """
    target = sys.stderr if stream is None else stream

    def log(event: str, **facts: Any) -> None:
        line = json.dumps({"time": round(time.time(), 3), "peer": peer, "event": event, **facts}, default=str)
        # one write per line, so that threads do not mix lines; a full disk must not stop training
        try:
            target.write(line + "\n")
            target.flush()
        except (OSError, ValueError):
            pass

    return bounded(log)


@contextmanager
def warnings_in(log: Log) -> Iterator[None]:
    """Python's warnings as lines of the log, instead of plain ones between them."""

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        log("warning", text=str(message))

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield

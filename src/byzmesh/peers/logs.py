"""Structured logs: one JSON object per line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

Log = Callable[..., None]


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

    return log

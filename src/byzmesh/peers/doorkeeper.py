"""Who may connect: ZeroMQ's authentication protocol (ZAP), answered in a thread of its own, and the timer of the audit.

Neither a handshake nor the audit may wait for the peer's computation, nor one for the other: after every handshake the
thread looks whether an audit is due. Whatever goes wrong in it is logged, and the thread goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.peers.identity import zeromq

AUDIT_SECONDS = 0.1
AUDIT_SHARE, LONGEST_PAUSE = 0.05, 1.0
"""Audits take at most this part of the time of a processor, and are at most so many seconds apart: whoever opens many
connections makes each audit longer, and must not keep the peer from its work."""


def pause_after(cost: float) -> float:
    """Seconds until the next audit, after one that took `cost` seconds of a processor.

    >>> pause_after(0.001), pause_after(0.025), pause_after(9.0)
    (0.1, 0.5, 1.0)
    """
    return max(AUDIT_SECONDS, min(LONGEST_PAUSE, cost / AUDIT_SHARE))


class Doorkeeper:
    """Accepts the keys of the neighbours and no others; an accepted connection carries the neighbour's id."""

    def __init__(self, context: Any, names: Mapping[str, int], log: Callable[..., None]) -> None:
        self._zmq: Any = zeromq()
        self.names = dict(names)
        """Public key -> neighbour; replaced as a whole when the members change."""
        self._log = log
        self.audit: Callable[[], None] = lambda: None
        self._requests = context.socket(self._zmq.REP)
        self._requests.linger = 0
        self._requests.bind("inproc://zeromq.zap.01")
        self._stop = context.socket(self._zmq.PAIR)
        self._stop.linger = 0
        self._stop.bind("inproc://byzmesh.stop")
        self._ask = context.socket(self._zmq.PAIR)
        self._ask.linger = 0
        self._ask.connect("inproc://byzmesh.stop")
        self.refused = 0
        """Handshakes of strangers."""
        self._thread = threading.Thread(target=self._run, name="byzmesh-doorkeeper", daemon=True)
        self._thread.start()

    @property
    def guarding(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def _run(self) -> None:
        poller = self._zmq.Poller()
        poller.register(self._requests, self._zmq.POLLIN)
        poller.register(self._stop, self._zmq.POLLIN)
        due = 0.0
        while True:
            ready = dict(poller.poll(1000 * AUDIT_SECONDS))
            if self._stop in ready:
                break
            if self._requests in ready:
                self._try(self._answer)
            if time.monotonic() >= due:
                began = time.thread_time()
                self._try(self.audit)
                due = time.monotonic() + pause_after(time.thread_time() - began)
        self._requests.close()
        self._stop.close()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self._log("guard failed", error=repr(error))

    def _answer(self) -> None:
        version, request, _, address, _, mechanism, *credentials = self._requests.recv_multipart()
        known = self._neighbour(mechanism, credentials)
        if known is None:
            self.refused += 1
            self._requests.send_multipart([version, request, b"400", b"not a neighbour", b"", b""])
            self._log("refused", address=address.decode(errors="replace"), reason="key is no neighbour's")
        else:
            self._requests.send_multipart([version, request, b"200", b"", str(known).encode(), b""])

    def _neighbour(self, mechanism: bytes, credentials: list[bytes]) -> int | None:
        from zmq.utils.z85 import encode

        if mechanism != b"CURVE" or len(credentials) != 1 or len(credentials[0]) != 32:
            return None
        return self.names.get(encode(credentials[0]).decode())

    def close(self) -> None:
        """End the thread."""
        self._ask.send(b"")
        self._thread.join()
        self._ask.close()

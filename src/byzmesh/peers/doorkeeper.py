"""Who may connect: ZeroMQ's authentication protocol (ZAP), answered in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.peers.identity import zeromq


class Doorkeeper:
    """ZeroMQ's authentication protocol (ZAP) in a separate thread: accepts only the keys of the neighbours.

    Neither a handshake nor the audit, which it runs ten times a second, may wait for the peer's computation.
    """

    def __init__(self, context: Any, names: Mapping[str, int], log: Callable[..., None]) -> None:
        self._zmq: Any = zeromq()
        self._names = dict(names)
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

    def _run(self) -> None:
        from zmq.utils.z85 import encode

        poller = self._zmq.Poller()
        poller.register(self._requests, self._zmq.POLLIN)
        poller.register(self._stop, self._zmq.POLLIN)
        while True:
            ready = dict(poller.poll(100))
            if self._stop in ready:
                break
            if self._requests not in ready:
                self.audit()
                continue
            version, request, _, address, _, mechanism, *credentials = self._requests.recv_multipart()
            known = None
            if mechanism == b"CURVE" and len(credentials) == 1 and len(credentials[0]) == 32:
                known = self._names.get(encode(credentials[0]).decode())
            if known is None:
                self.refused += 1
                self._log("refused", address=address.decode(errors="replace"), reason="key is no neighbour's")
                self._requests.send_multipart([version, request, b"400", b"not a neighbour", b"", b""])
            else:
                self._requests.send_multipart([version, request, b"200", b"", str(known).encode(), b""])
        self._requests.close()
        self._stop.close()

    def close(self) -> None:
        """End the thread."""
        self._ask.send(b"")
        self._thread.join()
        self._ask.close()

"""`/metrics` in Prometheus text format and `/health`, on loopback only, in a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from byzmesh.errors import PeerError

Snapshot = Mapping[str, Any]


def metrics_text(snapshot: Snapshot) -> str:
    """The snapshot as Prometheus text: numbers as is, mappings with their keys as the label `neighbour`.

    >>> print(metrics_text({"round": 7, "refused": {4: 1}}), end="")
    # TYPE byzmesh_round gauge
    byzmesh_round 7
    # TYPE byzmesh_refused gauge
    byzmesh_refused{neighbour="4"} 1
    """
    lines = []
    for name, value in snapshot.items():
        lines.append(f"# TYPE byzmesh_{name} gauge")
        if isinstance(value, Mapping):
            lines += [f'byzmesh_{name}{{neighbour="{label}"}} {number}' for label, number in value.items()]
        else:
            lines.append(f"byzmesh_{name} {value}")
    return "\n".join(lines) + "\n"


class Page:
    """Serves the pages until closed. `snapshot` gives the numbers, `healthy` whether rounds still end."""

    def __init__(self, port: int, snapshot: Callable[[], Snapshot], healthy: Callable[[], bool]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, metrics_text(snapshot()))
                elif self.path == "/health":
                    good = healthy()
                    self._answer(200 if good else 503, "ok\n" if good else "no round ended lately\n")
                else:
                    self._answer(404, "see /metrics and /health\n")

            def _answer(self, code: int, text: str) -> None:
                body = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise PeerError(f"cannot serve metrics at port {port}: {error.strerror}; choose another port") from error
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="byzmesh-page", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

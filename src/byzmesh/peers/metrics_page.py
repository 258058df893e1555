"""`/metrics` for Prometheus and `/health`, on loopback only, in a separate thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from byzmesh.errors import MissingExtra, PeerError


@dataclass(frozen=True)
class Number:
    """A number to show: one, or one per neighbour. A total only grows while the process lives."""

    name: str
    help: str
    value: float | Mapping[int, float]
    total: bool = False


def metrics_text(numbers: Iterable[Number]) -> str:
    """The numbers in the text format of Prometheus.

    >>> shown = [Number("round", "the next round", 7), Number("refused", "malformed", {4: 1}, total=True)]
    >>> print(metrics_text(shown), end="")
    # HELP byzmesh_round the next round
    # TYPE byzmesh_round gauge
    byzmesh_round 7.0
    # HELP byzmesh_refused_total malformed
    # TYPE byzmesh_refused_total counter
    byzmesh_refused_total{neighbour="4"} 1.0
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError as error:
        raise MissingExtra("peers", "the metrics page") from error

    class Shown:
        def collect(self) -> Iterable[Any]:
            for number in numbers:
                family = CounterMetricFamily if number.total else GaugeMetricFamily
                several = isinstance(number.value, Mapping)
                made = family(f"byzmesh_{number.name}", number.help, labels=("neighbour",) if several else ())
                if isinstance(number.value, Mapping):
                    for neighbour, value in number.value.items():
                        made.add_metric([str(neighbour)], value)
                else:
                    made.add_metric([], number.value)
                yield made

    registry = CollectorRegistry()
    registry.register(Shown())
    return str(generate_latest(registry).decode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away before it has its answer is no news."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Page:
    """Serves the pages until closed. `numbers` gives the metrics, `trouble` what is wrong, None if nothing is."""

    def __init__(self, port: int, numbers: Callable[[], Iterable[Number]], trouble: Callable[[], str | None]) -> None:
        metrics_text(())  # the library is there

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(200, metrics_text(list(numbers())))
                elif self.path == "/health":
                    wrong = trouble()
                    self._answer(200 if wrong is None else 503, "ok\n" if wrong is None else f"{wrong}\n")
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
            self._server = _Server(("127.0.0.1", port), Handler)
        except OSError as error:
            raise PeerError(f"cannot serve metrics at port {port}: {error.strerror}; choose another port") from error
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="byzmesh-page", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

"""The server: one page, its state as server-sent events. It answers GET and nothing else, and changes nothing.

    /            the page             /state   the state once, as JSON
    /events      the state, whenever it has changed; ?run=KEY chooses the run whose network is shown

It listens on loopback unless told otherwise, and answers only requests whose Host is where it listens: a page from
elsewhere cannot read it through a name that resolves to 127.0.0.1.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from byzmesh.checks import whole
from byzmesh.errors import ByzmeshError, ConfigError

SECONDS = 1.0
"""Between two looks."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
ASSETS = {
    "/": ("byzmesh.watch", "watch.html"),
    "/watch.js": ("byzmesh.watch", "watch.js"),
    "/watch.css": ("byzmesh.watch", "watch.css"),
    "/echarts.min.js": ("byzmesh.reports", "echarts.min.js"),
}
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"


class Source(Protocol):
    """What is watched."""

    def snapshot(self, chosen: str = "") -> dict[str, Any]:
        """The state as plain values."""
        ...


class Watch:
    """Serves the page until closed; `url` is its address."""

    def __init__(
        self, source: Source, host: str = "127.0.0.1", port: int = 8700, wait: Callable[[], None] | None = None
    ):
        """wait  called between two looks; default: a pause of `SECONDS`"""
        whole("--port", port, 0, 65535)
        self.closing = threading.Event()
        pause = wait or (lambda: self.closing.wait(SECONDS) and None)
        closing = self.closing
        allowed = {host, *LOOPBACK}

        class Handler(BaseHTTPRequestHandler):
            timeout = 30

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                chosen = parse_qs(parts.query).get("run", [""])[0][:64]
                if (urlsplit(f"//{self.headers.get('Host', '')}").hostname or "") not in allowed:
                    self._answer(403, "text/plain", b"this address is not served here\n")
                elif parts.path in ASSETS:
                    package, name = ASSETS[parts.path]
                    content = files(package).joinpath("assets", name).read_bytes()
                    self._answer(200, TYPES[name.rsplit(".", 1)[1]], content)
                elif parts.path == "/state":
                    self._answer(200, "application/json", _state(source, chosen))
                elif parts.path == "/events":
                    self._events(chosen)
                else:
                    self._answer(404, "text/plain", b"see /\n")

            def _answer(self, code: int, kind: str, body: bytes) -> None:
                self.send_response(code)
                self._headers(kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _headers(self, kind: str) -> None:
                self.send_header("Content-Type", kind)
                self.send_header("Cache-Control", "no-store")
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("X-Content-Type-Options", "nosniff")

            def _events(self, chosen: str) -> None:
                """The state now and after each change, until the reader or the server goes away."""
                self.send_response(200)
                self._headers("text/event-stream")
                self.end_headers()
                last = b""
                try:
                    while not closing.is_set():
                        now = _state(source, chosen)
                        self.wfile.write(b": still here\n\n" if now == last else b"data: " + now + b"\n\n")
                        self.wfile.flush()
                        last = now
                        pause()
                except OSError:  # the reader is gone
                    return

            def log_message(self, format: str, *args: Any) -> None:
                return

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise ConfigError(f"cannot serve at {host}:{port}: {error.strerror}; choose another --port") from error
        self._server.daemon_threads = True
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, name="byzmesh-watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; open streams end after their next look."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _state(source: Source, chosen: str) -> bytes:
    """The state as JSON; what cannot be read just now is said instead."""
    try:
        state = source.snapshot(chosen)
    except ByzmeshError as error:
        state = {"error": str(error)}
    return json.dumps(state, separators=(",", ":"), allow_nan=False, default=float).encode()

"""A real browser for tests: headless Chromium driven over its debugging pipe (fds 3 and 4), no further dependency."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0
REPORT = "window.byzmesh !== undefined"
"""True in an HTML report whose script has run."""


class Page:
    """One page of a headless Chromium; a context manager."""

    def __init__(
        self, page: Path | str, width: int = 1280, height: int = 900, *, dark: bool = False, ready: str = REPORT
    ) -> None:
        """page is a file or an address; it is loaded once the expression `ready` is true."""
        self.profile = tempfile.mkdtemp(prefix="byzmesh-chromium-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self.process = subprocess.Popen(
            [_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--hide-scrollbars", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: _as_3_and_4(to_read, to_write),
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._bytes = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        """What the page wrote to the console as an error, threw, or failed to load."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.requests: list[str] = []
        self.call("Page.navigate", url=page if isinstance(page, str) else page.absolute().as_uri())
        self.until(f"document.readyState === 'complete' && ({ready})")

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """One command of the DevTools protocol and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]
            self._note(told)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        readable = select.poll()  # `select` knows no file beyond the 1,024th
        readable.register(self._read, select.POLLIN)
        while b"\0" not in self._bytes:
            if not readable.poll(max(0.0, 1000.0 * (deadline - time.monotonic()))):
                raise TimeoutError("Chromium does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError(f"Chromium closed its pipe; its exit code is {self.process.poll()}")
            self._bytes += chunk
        message, _, self._bytes = self._bytes.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        method, facts = told.get("method"), told.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(facts["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(facts["args"]))
        elif method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.problems.append(facts["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.js(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}")

    def place(self, element: str) -> tuple[float, float]:
        """Scroll an element (a JavaScript expression) into view; its middle on the screen."""
        self.js(f"({element}).scrollIntoView({{block: 'center', inline: 'center'}})")
        box = self.js(f"(() => {{ const b = ({element}).getBoundingClientRect(); "
                      "return [b.x + b.width / 2, b.y + b.height / 2]; })()")  # fmt: skip
        return box[0], box[1]

    def move(self, element: str) -> None:
        """Move the mouse onto an element."""
        x, y = self.place(element)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, element: str) -> None:
        """Click on an element with the mouse."""
        x, y = self.place(element)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path, *, full: bool = False) -> Path:
        """A PNG of the screen, or of the whole page."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(told["data"]))
        return path


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    raise RuntimeError("these tests need Chromium: apt-get install -y chromium (scripts/test does that)")


def _as_3_and_4(to_read: int, to_write: int) -> None:
    # via numbers that are free: either pipe may already be 3 or 4
    high_read, high_write = (fcntl.fcntl(pipe, fcntl.F_DUPFD, 5) for pipe in (to_read, to_write))
    os.dup2(high_read, 3)
    os.dup2(high_write, 4)

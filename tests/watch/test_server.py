"""The live view in a real browser, and what its server refuses."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import ConfigError
from byzmesh.store import open_store
from byzmesh.watch.server import Watch
from byzmesh.watch.stored import StoredRuns
from tests.processes import command
from tests.reports.browser import Page
from tests.watch.test_sources import finished

LIVE = "window.byzmesh !== undefined"


class Told:
    """A source that says what the test tells it."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"error": "nothing yet"}

    def snapshot(self, chosen: str = "") -> dict[str, Any]:
        return {**self.state, "chosen": chosen}


def get(watch: Watch, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str, bytes]:
    connection = HTTPConnection("127.0.0.1", int(watch.url.rsplit(":", 1)[1].strip("/")), timeout=30)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers.get("Content-Security-Policy", ""), body


def test_only_reading_from_here_is_answered() -> None:
    with Watch(Told(), port=0) as watch:
        assert get(watch, "/state?run=abc")[2] == b'{"error":"nothing yet","chosen":"abc"}'
        assert get(watch, "/state", host="evil.example")[0] == 403
        assert get(watch, "/state", host="localhost:1")[0] == 200
        assert get(watch, "/../pyproject.toml")[0] == 404
        assert get(watch, "/state", method="POST")[0] == 501
        code, policy, page = get(watch, "/")
        assert code == 200 and "default-src 'self'" in policy and b"byzmesh watch" in page
        with pytest.raises(ConfigError, match=r"--port must be .* 65535, got 99999"):
            Watch(Told(), port=99999)
        with pytest.raises(ConfigError, match="choose another --port"):
            Watch(Told(), port=int(watch.url.rsplit(":", 1)[1].strip("/")))


def test_events_are_sent_when_something_changed() -> None:
    source, look, looked = Told(), threading.Semaphore(0), threading.Semaphore(0)

    def wait() -> None:
        looked.release()
        look.acquire()

    with Watch(source, port=0, wait=wait) as watch:
        connection = HTTPConnection("127.0.0.1", int(watch.url.rsplit(":", 1)[1].strip("/")), timeout=60)
        connection.request("GET", "/events")
        lines = connection.getresponse()
        assert lines.readline().startswith(b'data: {"error":"nothing yet"') and lines.readline() == b"\n"
        looked.acquire()
        look.release()
        assert lines.readline() == b": still here\n" and lines.readline() == b"\n"
        looked.acquire()
        source.state = {"error": "changed"}
        look.release()
        assert lines.readline().startswith(b'data: {"error":"changed"')
        looked.acquire()
        watch.closing.set()
        look.release()
        connection.close()


def test_a_sweep_in_the_browser_grows_without_a_reload(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    finished(path, rule="ios", attack="sign-flipping")
    look = threading.Semaphore(0)

    def wait() -> None:
        look.acquire()

    with Watch(StoredRuns(path), port=0, wait=wait) as watch:
        with Page(watch.url, 390, 844, dark=True, ready=LIVE) as page:
            assert page.js("document.querySelectorAll('#rows tbody tr').length") == 1
            assert page.js("document.querySelectorAll('#network circle').length") == 10
            assert page.js("document.querySelectorAll('#network rect').length") == 2
            trusts = page.js("[...document.querySelectorAll('#network line')].map(line => line.dataset.trust)")
            assert any(trust and float(trust) < 1.0 for trust in trusts)
            assert "cannot tell" in page.js("document.getElementById('verdict').textContent")
            second = finished(path, rule="weimean", attack="sign-flipping")
            look.release()
            page.until("document.querySelectorAll('#rows tbody tr').length === 2")
            page.until("echarts.getInstanceByDom(document.getElementById('curves')).getOption().series.length === 2")
            row = f"[...document.querySelectorAll('#rows tbody tr')].find(r => r.textContent.includes('{second[:12]}'))"
            page.click(row)
            page.until("document.getElementById('network-title').textContent.includes('WeiMean')")
            assert page.js("document.documentElement.scrollWidth <= innerWidth")
            assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
            assert page.problems == [] and all(address.startswith((watch.url, "data:")) for address in page.requests)
        look.release(5)


def test_what_a_config_says_is_text_never_html(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        evil = "<img src=x onerror='window.hacked=1'>"
        key = store.plan({"rule": {"name": evil}, "attack": {"name": "none"}, "network": {"label": evil}, "rounds": 2})
        store.finish(key, "finished", {"round": [0.0, 1.0], "accuracy": [0.1, 0.2]})
    with Watch(StoredRuns(tmp_path / "runs.db"), port=0) as watch, Page(watch.url, ready=LIVE) as page:
        assert page.js("document.querySelector('#rows tbody').textContent").count("<img") == 2
        assert page.js("window.hacked === undefined && document.querySelectorAll('main img').length === 0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --store runs.db to watch runs, or --peers network.yaml"),
        (("--store", "a.db", "--peers", "n.yaml"), "one of the two"),
        (("--store", "a.db", "--metrics", "9100"), "--out and --metrics are about peers"),
        (("--store", "none.db"), "none.db"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = command("watch", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1

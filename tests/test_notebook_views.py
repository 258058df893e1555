"""What a notebook shows of a network, a run and a certificate: HTML without scripts; short reprs; a bar that moves."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.progress import SECONDS, in_notebook, progress_bar

NET = bm.network("paper/two-castle")
JOB: dict[str, Any] = {"problem": "noisy-quadratic", "network": "paper/two-castle", "rounds": 6, "evaluate_every": 2}


class Balanced(HTMLParser):
    """Fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_network_is_drawn_with_its_liars() -> None:
    html = NET._repr_html_()
    seen = Balanced(html).seen
    assert seen.count("circle") == 10 and seen.count("rect") == 2 and seen.count("path") == 60
    assert "12, 10 of them honest" in html and "7, 9" in html and "script" not in seen


def test_links_that_go_one_way_are_arrows() -> None:
    html = bm.network("directed-ring", n=5)._repr_html_()
    assert Balanced(html).seen.count("path") == 5 and "5, directed" in html
    assert html.count("M") == 10  # a line and a head each
    mixed = bm.Network.from_edges([(0, 1), (1, 0), (1, 2)], directed=True)._repr_html_()
    assert mixed.count('<path d="M') == 2 and mixed.count("M") == 3


def test_names_are_escaped_and_large_networks_have_no_picture() -> None:
    html = bm.Network.from_edges([(0, 1)], name="<i>x")._repr_html_()
    assert html.count("&lt;i&gt;x") == 2 and "<i>" not in html
    assert "svg" not in Balanced(bm.network("ring", n=500)._repr_html_()).seen


def test_draw_without_a_path_is_a_figure_that_notebooks_show() -> None:
    figure = NET.draw()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert type(figure).__name__ == "Figure"


def test_a_run_shows_values_a_curve_and_whom_it_cut() -> None:
    run = bm.simulate(**JOB, rule="ios", attack="sign-flipping")
    html = run._repr_html_()
    seen = Balanced(html).seen
    assert "IOS under sign-flipping" in html and "finished after 6 rounds" in html
    assert seen.count("polyline") == 1 and seen.count("rect") == 2
    assert len(repr(run)) < 200
    assert run.edges is not None
    rates = run.edges.cut_rates(12)
    first = run.edges
    assert rates[first.receiver[0], first.sender[0]] == first.cut[0] / first.rounds[0]
    assert rates.shape == (12, 12) and rates[7].sum() == 0.0, "a liar cuts nobody"


def test_a_run_of_an_object_or_a_diverged_one_is_shown_too() -> None:
    own = bm.Network.from_edges([(0, 1), (1, 2), (2, 0)])
    run = bm.simulate(problem="quadratic", network=own, rule=lambda own, received, weights, f: own * 1e9, rounds=5)
    assert run.status == "diverged"
    Balanced(run._repr_html_())


def test_a_certificate_says_what_holds_in_one_line_and_in_a_table() -> None:
    found = bm.certify(NET, "ios")
    assert repr(found) == "Certificate(IOS on paper/two-castle: bounded holds, rho <= 0.9206)"
    html = found._repr_html_()
    Balanced(html)
    assert html.count("holds") == 2 and "unknown" in html and "can tolerate 2 liars, not 3" in html
    assert html.count("<tr>") == 3 + 1 + 10


def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's shell is imitated; tests/examples/test_notebooks.py has a real one."""
    told: list[str] = []
    handle = SimpleNamespace(update=lambda html: told.append(html))
    shown = SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=shown))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    now = np.zeros(1)
    monkeypatch.setattr("time.monotonic", lambda: float(now[0]))
    assert in_notebook()
    with progress_bar() as tell:
        now += 1.0
        tell(0.25, "a < b")
        tell(0.5, "too soon")
        now += 2 * SECONDS
        tell(0.75, "later")
        tell(1.0, "the end is always shown")
    assert [text.split("</progress> ")[1][:4].strip() for text in told] == ["25%", "75%", "100%"]
    assert "a &lt; b" in told[0]


def test_without_a_notebook_or_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert not in_notebook()
    bm.simulate(**JOB, rule="ios", progress=True)
    assert capsys.readouterr() == ("", "")

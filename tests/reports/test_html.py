"""The HTML report in a real browser: opens without an error and without the network, sorts, hovers, toggles, fits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from byzmesh.reports.pivot import pivot
from byzmesh.reports.sweep import sweep_report
from byzmesh.reports.writing import write_report
from byzmesh.store import open_store
from byzmesh.studies.paper.report import Reproduction, report, sections
from byzmesh.studies.readings import collect
from tests.reports.browser import Page
from tests.studies.paper.stores import made_up

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    entries = made_up(folder / "runs.db")
    with open_store(folder / "runs.db", readonly=True) as store:
        shown = Reproduction(store=store, targets=["table-3", "figure-2", "figure-3"], readings=collect(store, entries))
        return write_report(report(shown, sections(shown)), folder / "report.html")


@pytest.fixture(scope="module")
def page(file: Path) -> Iterator[Page]:
    with Page(file) as opened:
        yield opened
        assert opened.problems == []


def show_all(page: Page) -> None:
    """Scroll to every plot in turn: each is drawn when it comes near the screen."""
    for number in range(page.js("document.querySelectorAll('.plot').length")):
        plot = f"document.querySelectorAll('.plot')[{number}]"
        page.js(f"{plot}.scrollIntoView()")
        page.until(f"{plot}.querySelector('svg') !== null")


def column(page: Page, number: int) -> list[str]:
    rows = page.js(f"[...document.querySelectorAll('#grid-table-3 tbody tr')].map(r => r.children[{number}].innerText)")
    return [text.split("\n")[0] for text in rows]


def test_nothing_is_loaded_and_nothing_goes_wrong(page: Page, file: Path) -> None:
    show_all(page)
    assert page.js("document.querySelectorAll('.plot svg').length") == page.js("window.byzmesh.plots.size") >= 5
    assert page.requests == [file.absolute().as_uri()]
    assert page.problems == []
    text = file.read_text("utf-8")
    assert "secret-machine" not in text and str(file.parent) not in text


def test_a_heading_sorts_the_table(page: Page) -> None:
    before = column(page, 0)
    assert before[:3] == ["NoComm", "WeiMean", "CooMed"]
    heading = "document.querySelectorAll('#grid-table-3 thead button')[2]"
    page.click(heading)
    down = column(page, 2)
    numbers = [float(text) for text in down if text.replace(".", "").isdigit()]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 10
    assert down[-2:] in (["", "to run"], ["to run", ""])
    page.click(heading)
    up = [float(text) for text in column(page, 2) if text.replace(".", "").isdigit()]
    assert up == sorted(up)
    assert page.js("document.querySelectorAll('#grid-table-3 th')[2].getAttribute('aria-sort')") == "ascending"
    page.click("document.querySelectorAll('#grid-table-3 thead button')[0]")
    assert column(page, 0) == sorted(before, key=str.lower, reverse=True)


def test_hovering_shows_the_published_number(page: Page) -> None:
    rows = "[...document.querySelectorAll('#grid-table-3 tbody tr')]"
    cell = f"{rows}.find(row => row.children[0].innerText === 'IOS').children[6]"
    assert "pub. 82.78" in page.js(f"({cell}).innerText")
    assert page.js("document.getElementById('tip').hidden")
    page.move(cell)
    page.until("!document.getElementById('tip').hidden")
    tip = page.js("document.getElementById('tip').innerText")
    assert "published 82.78%" in tip and "CE published 6e-07" in tip and "IOS, alie" in tip
    page.move("document.querySelector('h1')")
    page.until("document.getElementById('tip').hidden")


def test_a_legend_entry_toggles_its_curve(page: Page) -> None:
    page.js("document.querySelector('.plot.chart').scrollIntoView()")
    page.until("document.querySelector('.plot.chart svg') !== null")
    word = (
        "[...document.querySelectorAll('.plot.chart')[0].querySelectorAll('text')].find(t => t.textContent === 'IOS')"
    )
    drawn = "document.querySelectorAll('.plot.chart')[0].querySelectorAll('svg path').length"
    chart = "echarts.getInstanceByDom(document.querySelectorAll('.plot.chart')[0])"
    with_curve = page.js(drawn)
    page.click(word)
    page.until(f"{chart}.getOption().legend[0].selected.IOS === false")
    page.until(f"{drawn} < {with_curve}")
    page.click(word)
    page.until(f"{chart}.getOption().legend[0].selected.IOS === true")
    page.until(f"{drawn} === {with_curve}")


def test_another_attack_can_be_chosen(page: Page) -> None:
    show_all(page)
    chosen = page.js("[...document.querySelector('select[data-for]').options].map(o => o.text)")
    assert chosen == ["none", "gaussian", "sign-flipping", "isolation", "sample-duplicating", "alie"]
    chart = "echarts.getInstanceByDom(document.querySelectorAll('.plot.chart')[0]).getOption().series"
    assert "NoComm" in page.js(f"{chart}.map(s => s.name)")
    page.js("(() => { const s = document.querySelector('select[data-for]'); s.value = 'alie';"
            "s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert "NoComm" not in page.js(f"{chart}.map(s => s.name)")


def test_light_and_dark(page: Page, file: Path, tmp_path: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.js(ground) == "rgb(255, 255, 255)"
    page.click("document.getElementById('theme')")
    assert page.js(ground) == "rgb(20, 23, 27)"
    page.click("document.getElementById('theme')")
    with Page(file, dark=True) as dark:
        assert dark.js(ground) == "rgb(20, 23, 27)"
        assert dark.problems == []
        picture = dark.screenshot(tmp_path / "dark.png")
        assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("width", [360, 390])
def test_it_fits_a_phone(file: Path, width: int) -> None:
    with Page(file, width, 800) as phone:
        show_all(phone)
        assert phone.js("document.documentElement.scrollWidth") <= width
        assert phone.js("Math.max(...[...document.querySelectorAll('.plot')].map(p => p.offsetWidth))") < width
        assert phone.problems == []


def test_report_of_a_sweep(tmp_path: Path) -> None:
    made_up(tmp_path / "runs.db", rules=("IOS", "Krum", "DRSA"), seeds=2)
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        path = write_report(sweep_report(store, pivot(store)), tmp_path / "report.html")
    with Page(path) as page:
        assert page.js("document.querySelectorAll('#grid-sweep tbody tr').length") == 3
        cells = page.js("[...document.querySelectorAll('#grid-sweep td')].map(c => c.innerText)")
        assert "2 diverged" in cells and "2 infeasible" in cells and any("±" in cell for cell in cells)
        assert "over 2 seeds" in page.js("document.querySelector('#table .note').innerText")
        assert "95% interval" in page.js("document.querySelector('#table figcaption').innerText")
        show_all(page)
        kinds = page.js("[...byzmesh.plots.values()].map(plot => plot.getOption().series.map(series => series.type))")
        assert any("custom" in curves and "line" in curves for curves in kinds), "a band beside its curve"
        assert page.js("document.querySelectorAll('.plot.heatmap').length") == 1
        assert page.problems == []
        shots = os.environ.get("BYZMESH_SHOTS")
        if shots:
            page.screenshot(Path(shots) / "sweep.png", full=True)

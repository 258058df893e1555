"""The documentation site: it builds without a warning, has every part and every public name, and needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import byzmesh as bm
from byzmesh.catalogue import registries
from tests.reports.browser import Page

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("site")  # one build for all of them


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a broken link, a page that is missing or a docstring that cannot be read ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_it_is_built_once(request: pytest.FixtureRequest) -> None:
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@site")


def test_every_registered_part_is_in_the_reference(site: Path) -> None:
    for kind, registry in registries().items():
        page = (site / "reference" / f"{kind}.html").read_text()
        anchors = set(re.findall(r'<h2 id="([^"]+)"', page))
        ours = [entry for entry in registry.entries() if entry.factory.__module__.startswith("byzmesh.")]  # no test's
        assert len(anchors) == len(ours), kind
        for entry in ours:
            assert f">{entry.name}<" in page, f"{kind}: {entry.name}"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text()
    for name in set(bm.__all__) - {"__version__", "torch"}:
        assert f'id="byzmesh.{name}"' in page, name
    assert "__version__" in page and 'id="byzmesh.torch.aggregate"' in page


def test_examples_and_formulas_are_blocks_of_code(site: Path) -> None:
    rules = (site / "reference" / "rules.html").read_text()
    assert not re.search(r"<p>[^<]*(&gt;){3}", rules)
    assert not re.search(r"<blockquote>", rules)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        if "reports" not in page.relative_to(site).parts:  # reports are one file each and tested there
            loaded = re.findall(
                r'<(?:script|link|img|source|iframe)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text()
            )
            assert not loaded, (page.name, loaded)


@pytest.mark.parametrize("name", ["index", "learn/first-simulation", "reference/rules", "peers"])
def test_pages_on_a_phone_in_the_dark(site: Path, name: str) -> None:
    with Page(site / f"{name}.html", 390, 844, dark=True, ready="document.querySelector('h1') !== null") as page:
        assert page.js("document.documentElement.scrollWidth <= innerWidth")
        assert page.js("document.body.getAttribute('data-md-color-scheme')") == "slate"
        assert page.problems == []
        assert all(address.startswith(("file:", "data:", "blob:")) for address in page.requests)


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    """On a site of one page, with the same rules."""
    settings = re.search(r"^validation:\n(?:  .*\n)+", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert settings is not None
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[away](gone.md) [down](#nowhere)\n")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\nstrict: true\n{settings[0]}")
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "gone.md" in done.stderr and "nowhere" in done.stderr


def test_formulas_in_sentences_are_no_emphasis(site: Path) -> None:
    """x_n, rho* and **options stay as they are written."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        article = re.sub(
            r"<(pre|code)\b.*?</\1>", "", text[text.find("<article") : text.find("</article>")], flags=re.DOTALL
        )
        for words in re.findall(r"<em>(.*?)</em>", article, re.DOTALL):
            assert "_" not in words and "^" not in words, (page.name, words)
        # sum_{B_n} gives an emphasis attributes, <X, LX> is a tag that no browser shows
        assert not re.search(r"<em [^>]*>|<\w+,", article), page.name


def test_lists_are_lists(site: Path) -> None:
    """Without a blank line before it, a list becomes a part of the sentence before it."""
    for page in site.rglob("*.html"):
        for sentence in re.findall(r"<p>(.*?)</p>", page.read_text(), re.DOTALL):
            assert not re.search(r"\n[-*] [A-Z`<]", sentence), (page.name, sentence)


def test_every_rule_stage_and_process_has_an_example_that_was_run(site: Path) -> None:
    for kind, needs_more in (("rules", {}), ("stages", {"pair-noise"}), ("weights", {}), ("processes", {})):
        page = (site / "reference" / f"{kind}.html").read_text()
        for section in page.split("<h2 id=")[1:]:
            name = section.split('"')[1]
            assert "&gt;&gt;&gt; " in re.sub(r"</?span[^>]*>", "", section) or name in needs_more, (kind, name)

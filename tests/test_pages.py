"""Every block of Python in the tutorials, the how-to pages and the pages about extending byzmesh runs."""

from __future__ import annotations

import re
from contextlib import ExitStack, chdir
from pathlib import Path

import pytest

from byzmesh.catalogue import registries

ROOT = Path(__file__).parents[1]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in (ROOT / "docs" / "extending.md", ROOT / "CONTRIBUTING.md")
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_python_block_of_the_pages_runs(block: str) -> None:
    with ExitStack() as stack:
        for registry in registries().values():
            stack.enter_context(registry.temporary())
        exec(compile(block, "page", "exec"), {"__name__": "page"})


def test_the_pages_have_python_blocks() -> None:
    assert len(BLOCKS) > 10


PAGES = [
    ROOT / "docs" / "index.md",
    *sorted((ROOT / "docs").glob("learn/*.md")),
    *sorted((ROOT / "docs").glob("how-to/*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_its_first_block_to_its_last(page: Path, tmp_path: Path) -> None:
    """Later blocks use what earlier ones defined, as a reader who types them would."""
    namespace: dict[str, object] = {"__name__": "page"}
    with ExitStack() as stack:
        stack.enter_context(chdir(tmp_path))
        for registry in registries().values():
            stack.enter_context(registry.temporary())
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            exec(compile(block, str(page), "exec"), namespace)

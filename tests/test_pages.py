"""Every block of Python in the pages about extending byzmesh runs."""

from __future__ import annotations

import re
from contextlib import ExitStack
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

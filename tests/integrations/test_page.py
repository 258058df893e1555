"""Every block of Python in docs/integrations.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_python_block_runs(number: int) -> None:
    exec(compile(BLOCKS[number], "page", "exec"), {"__name__": "page"})


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 4

"""The table of adversaries names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_table_names_exists() -> None:
    text = (ROOT / "reports" / "soak" / "adversaries.md").read_text()
    named = re.findall(r"([\w/]+\.py)::(test_\w+)", text)
    assert len(named) > 30
    for file, name in named:
        path = ROOT / file if file.startswith("tests/") else Path(__file__).parent / file
        assert f"def {name}(" in path.read_text(), f"{file}::{name}"

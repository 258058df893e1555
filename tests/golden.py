"""Golden files: texts that must match exactly and that a person read before committing.

`BYZMESH_GOLDEN=write pytest tests/...` writes them anew; then read the difference.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console

from byzmesh.reports.text_table import Grid, to_rich


def check(path: Path, text: str) -> None:
    """The file has this text."""
    if os.environ.get("BYZMESH_GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def terminal(grid: Grid) -> str:
    """The grid as a terminal of 150 columns shows it."""
    out = io.StringIO()
    Console(file=out, width=150, force_terminal=False).print(to_rich(grid))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

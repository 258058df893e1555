"""For mkdocstrings: docstrings of byzmesh become Markdown before they are shown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import markdown_of
from named_pages import linked


class Markdown(griffe.Extension):
    """Rewrites every docstring once, when its object is collected."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """An object was made."""
        if obj.docstring:
            obj.docstring.value = linked(markdown_of(obj.docstring.value), "docs/reference/api.md")

"""Pages that sentences name by their path, as docstrings do (docs/theory.md, "The first wrong cut"), become links."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
NO_SENTENCE = re.compile(r"(^```.*?^```+$|^````.*?^````$|`[^`\n]*`|\[[^\]]*\]\([^)]*\))", re.MULTILINE | re.DOTALL)
"""Blocks of code, code in sentences, links."""
NAMED = re.compile(r"(?<![\w/])((?:docs|reports)/[\w/-]+)\.md(?:,\s\"([^\"]+)\")?")


def linked(text: str, page: str) -> str:
    """The text of a page with such links; `page` is its path in the repository.

    >>> linked('See docs/theory.md, "The first wrong cut", or `docs/theory.md`.', "docs/rules.md")
    'See [theory, "The first wrong cut"](theory.md#the-first-wrong-cut), or `docs/theory.md`.'
    """
    folder = posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        if not (ROOT / f"{found[1]}.md").is_file():
            return found[0]
        path, words, anchor = posixpath.relpath(f"{found[1]}.md", folder), PurePosixPath(found[1]).name, ""
        if found[2]:
            heading = " ".join(found[2].split())
            words += f', "{heading}"'
            anchor = "#" + re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
        return f"[{words}]({path}{anchor})"

    return "".join(part if place % 2 else NAMED.sub(link, part) for place, part in enumerate(NO_SENTENCE.split(text)))

"""Docstrings of byzmesh as Markdown.

They are plain text with four kinds of blocks between blank lines: paragraphs, indented blocks (formulas, tables of
words), examples that start with `>>>`, and definitions:

    name   what it means, perhaps on
           several lines

Markdown would fold the last two into paragraphs.
"""

from __future__ import annotations

import inspect
import re

DEFINED = re.compile(r"^(\S+(?: \S+)*?) {2,}(\S.*)$")
WIDEST = 94
"""Characters that fit into a line of code."""
LISTED = re.compile(r"^(?:[-*] |\d+\. |\|)")


def markdown_of(text: str | None) -> str:
    """The docstring as Markdown.

    >>> print(markdown_of("Sum.\\n\\nn  how many\\n   there are\\n\\n>>> 1 + 1\\n2"))
    Sum.
    <BLANKLINE>
    - **n**: how many there are
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return rendered(blocks_of(text))


def rendered(blocks: list[str]) -> str:
    """Blocks of a docstring as Markdown."""
    return "\n\n".join(_block(block) for block in blocks)


def blocks_of(text: str | None) -> list[str]:
    """Blocks between blank lines; indented ones that follow each other are one, and an example begins its own."""
    blocks: list[str] = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        before, example = part, ""
        found = re.search(r"^>>> ", part, re.MULTILINE)
        if found and not part.startswith("    "):
            before, example = part[: found.start()].rstrip("\n"), part[found.start() :]
        for block in filter(None, (before, example)):
            if blocks and is_code(block) and is_code(blocks[-1]):
                blocks[-1] += "\n\n" + block
            else:
                blocks.append(block)
    return blocks


def is_code(block: str) -> bool:
    """Whether every line is indented."""
    return all(line.startswith("    ") or not line.strip() for line in block.split("\n"))


def formula(text: str) -> str:
    """Lines of a formula as a page shows them: without backticks, and the last column of a long line on a line below.

    >>> print(formula("z <- x + clip(y - x), " + "and so on, " * 6 + "   z the mean"))
    z <- x + clip(y - x), and so on, and so on, and so on, and so on, and so on, and so on,
        z the mean
    """
    text = text.replace("`", "")
    if re.search(r"^ {8}", text, re.MULTILINE):  # a table whose cells have several lines
        return text
    return "\n".join(
        re.sub(rf"^(.{{30,{WIDEST}}}\S) {{3,}}(\S.*)$", r"\1\n    \2", line) if len(line) > WIDEST else line
        for line in text.split("\n")
    )


def escaped(text: str) -> str:
    """Text in which `<` is no tag and `_` no emphasis, except inside backticks, where nothing needs it.

    >>> print(escaped("w'_nm < `w'_nn`"))
    w'\\_nm &lt; `w'_nn`
    """
    parts = text.split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;").replace("_", "\\_") for number, part in enumerate(parts)
    )


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    if is_code(block):
        return f"```text\n{formula(inspect.cleandoc(block))}\n```"
    lines = block.split("\n")
    if LISTED.match(lines[0]):
        return escaped(block)
    if DEFINED.match(lines[0]):
        return _definitions(lines)
    return escaped(block)


def _definitions(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        found = DEFINED.match(line)
        if found and not line.startswith(" "):
            name = escaped(found[1]).replace("*", "\\*")  # **options
            items.append(f"- **{name}**: {escaped(found[2])}")
        else:
            items[-1] += " " + escaped(line.strip())
    return "\n".join(items)

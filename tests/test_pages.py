"""Python in the tutorials, the how-to pages and the pages about extending byzmesh runs; commands in all pages parse;
what pages count is counted."""

from __future__ import annotations

import functools
import re
import shlex
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any

import pytest
import typer.main

from byzmesh.attacks.adaptive import CANDIDATES
from byzmesh.catalogue import registries
from byzmesh.studies.audit.lies import FAMILIES
from tests.cli.commands import app

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


DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    """Lines of fenced and indented blocks that start `byzmesh`; a line that ends in a backslash goes on."""
    text = re.sub(r"\\\n\s*", " ", page.read_text())
    fenced = "\n".join(re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    indented = "\n".join(re.findall(r"^ {4}.*$", text, re.MULTILINE))
    return re.findall(r"^ *(?:\$ )?(byzmesh [^\n]*)$", f"{fenced}\n{indented}", re.MULTILINE)


COMMANDS = [
    pytest.param(line, id=f"{page.stem}-{number}") for page in DOCS for number, line in enumerate(commands(page))
]


@functools.cache
def program() -> Any:
    """All commands, which take a tenth of a second to put together."""
    return typer.main.get_command(app)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_pages_has_these_options(line: str) -> None:
    """It is parsed, not run: words of the shell end it, and its variables are numbers."""
    words = shlex.split(line.replace("$id", "0"), comments=True)[1:]
    ends = [words.index(sign) for sign in ("&", "||", "|", ">", "2>", "&&", ";") if sign in words]
    words = words[: min(ends, default=len(words))]
    command = program()
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("byzmesh", words)


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 90


def test_pages_count_attacks_as_the_code_does() -> None:
    audits, rules = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("audit.md", "rules.md"))
    assert f"| {len(FAMILIES)} families of lies and the config's own attack" in audits
    spelled = {21: "twenty-one"}[len(CANDIDATES)]
    assert f"The set of `adaptive` has {spelled}:" in audits and f"plays {spelled} attacks ahead" in rules

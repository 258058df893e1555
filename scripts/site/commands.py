"""The commands as a page, from their own help."""

from __future__ import annotations

import re
from typing import Any

from docstrings import escaped

BAR = "\\|"
"""A bar inside a table."""


def commands_page() -> str:
    """`byzmesh` and all its verbs."""
    import typer.main

    from byzmesh.cli import commands

    group = typer.main.get_command(commands())
    lines = ["# Commands", "", escaped(group.help or ""), "", "| command | what it does |", "| --- | --- |"]
    whole = dict(_commands("byzmesh", group))
    lines += [f"| [`{name}`](#{_anchor(name)}) | {_cell(_first(command))} |" for name, command in whole.items()]
    for name, command in whole.items():
        lines += ["", _section(name, command)]
    return "\n".join(lines) + "\n"


def _commands(name: str, group: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for word, command in group.commands.items():
        inner = getattr(command, "commands", None)
        found += _commands(f"{name} {word}", command) if inner else [(f"{name} {word}", command)]
    return found


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _first(command: Any) -> str:
    return str(command.help or "").split("\n\n")[0].replace("\n", " ")


def _cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")


def _section(name: str, command: Any) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = re.sub(r"\s+", " ", command.get_usage(context)).removeprefix("Usage: ")
    paragraphs = [part.replace("\n", " ") for part in str(command.help or "").split("\n\n")]
    blocks = [f"## {name} {{#{_anchor(name)}}}", f"```text\n{usage}\n```"]
    for text in paragraphs:
        example = re.match(r"Examples?: (.*)", text)
        blocks.append(f"```sh\n{example[1]}\n```" if example else escaped(text))
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if records:
        rows = "\n".join(f"| `{option.replace('|', BAR)}` | {_cell(told)} |" for option, told in records)
        blocks.append("| option | meaning |\n| --- | --- |\n" + rows)
    return "\n\n".join(blocks)

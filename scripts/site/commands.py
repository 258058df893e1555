"""The commands as a page, from their own help."""

from __future__ import annotations

import re
from typing import Any

from docstrings import escaped


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
    paragraphs = str(command.help or "").split("\n\n")
    blocks = [f"## {name} {{#{_anchor(name)}}}", f"```text\n{usage}\n```"]
    for text in paragraphs:
        examples = "\n".join(re.findall(r"^Example: (.*)", text, re.MULTILINE))
        blocks.append(f"```sh\n{examples}\n```" if examples else escaped(text.replace("\n", " ")))
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if records:
        blocks.append("\n".join(["| option | meaning |", "| --- | --- |", *(_row(*record) for record in records)]))
    return "\n\n".join(blocks)


def _row(option: str, told: str) -> str:
    """An option and its meaning; what it may be is part of the meaning, and a repeatable one is given one by one."""
    choices = re.search(r" <([\w-]+(?:\|[\w-]+)+)>", option)
    if choices:
        option, told = option.replace(choices[0], ""), f"{told} One of {choices[1].replace('|', ', ')}."
    return f"| `{re.sub(r'<list.(.*?).>', _lower, option)}` | {_cell(told)} |"


def _lower(found: re.Match[str]) -> str:
    return f"<{found[1].lower()}>"

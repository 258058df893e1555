"""The command line in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from byzmesh.cli import commands

app = commands()


def run(*arguments: object, **options: Any) -> Result:
    """Runs a command and returns what it printed; user errors are raised as they reach `main`."""
    words = [str(argument) for argument in arguments]
    told = CliRunner().invoke(commands(*words[:1]), words, **options)  # of the named verb, as `main` does
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told


def as_json(*arguments: object) -> Any:
    """What a command prints as JSON."""
    told = run(*arguments, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)

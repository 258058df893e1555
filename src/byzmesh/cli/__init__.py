"""The command line: one file per verb, no logic. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from byzmesh._version import __version__
from byzmesh.errors import ByzmeshError

VERBS = (
    "run",
    "show",
    "draw",
    "export",
    "list",
    "sweep",
    "table",
    "plot",
    "report",
    "reproduce",
    "arena",
    "certify",
    "design",
    "suspects",
    "keygen",
    "peer",
    "bench",
)
GROUPS = ("runs", "peers")

app = typer.Typer(
    name="byzmesh",
    help="Byzantine-resilient decentralized training: simulate it, sweep it, certify it, run it between machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"byzmesh {__version__}")
        raise typer.Exit


for _verb in VERBS:
    app.command(_verb)(import_module(f"byzmesh.cli.{_verb}").command)
for _group in GROUPS:
    app.add_typer(import_module(f"byzmesh.cli.{_group}").app, name=_group)


def main() -> None:
    """Entry point of the `byzmesh` command."""
    try:
        app()
    except ByzmeshError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)

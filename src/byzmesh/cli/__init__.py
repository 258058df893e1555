"""The command line: one file per verb, no logic. A user's mistake is one line on stderr and exit code 2.

No other error has exit code 1 either, which means "does not hold" or "failed": a defect ends with 2 and its traceback.

A module of this room without a leading underscore in its name is a verb of that name: it defines `command`, or an `app`
with subcommands, and `ORDER`, its position in `byzmesh --help`. All of them are imported at every start, so they import
heavy modules inside their functions.
"""

from __future__ import annotations

import gc
import logging
import pkgutil
import sys
import traceback
from importlib import import_module
from types import ModuleType

import typer

from byzmesh._version import __version__
from byzmesh.errors import ByzmeshError

app = typer.Typer(
    name="byzmesh",
    help="Byzantine-resilient decentralized training: simulate it, sweep it, certify it, run it between machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Notes(logging.Handler):
    """What takes long, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"note: {record.getMessage()}", err=True)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if context.invoked_subcommand != "peer":  # its log is JSON
        log = logging.getLogger("byzmesh")
        log.setLevel(logging.INFO)
        log.addHandler(_Notes())
    if version:
        typer.echo(f"byzmesh {__version__}")
        raise typer.Exit


def verbs() -> dict[str, ModuleType]:
    """The modules of the verbs by name, in the order of `byzmesh --help`."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda item: item[1].ORDER))


for _name, _module in verbs().items():
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_name)
    else:
        app.command(_name)(_module.command)


STARTED = 250_000
"""Objects that Python's collector tracks when the imports of a command are over: 200,000 for `byzmesh run`."""


def look_for_garbage_later() -> None:
    """Let Python look for garbage only once the imports are over: they create none, and it takes a seventh of them."""
    usual = gc.get_threshold()
    if usual[0] >= STARTED:  # told already
        return

    def first(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(first)
        gc.set_threshold(*usual)

    gc.callbacks.append(first)
    gc.set_threshold(STARTED)


def main() -> None:
    """Entry point of the `byzmesh` command."""
    look_for_garbage_later()
    try:
        app()
    except ByzmeshError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        sys.exit(2)

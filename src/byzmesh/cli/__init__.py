"""The command line: one file per verb, no logic. A user's mistake is one line on stderr and exit code 2.

No other error has exit code 1 either, which means "does not hold" or "failed": a defect ends with 3 and its traceback.

A module of this room without a leading underscore in its name is a verb of that name: it defines `command`, or an `app`
with subcommands, and `ORDER`, its position in `byzmesh --help`. All of them are imported for help, so they import heavy
modules inside their functions.
"""

from __future__ import annotations

import atexit
import gc
import logging
import pkgutil
import re
import sys
import traceback
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import typer

from byzmesh._version import __version__
from byzmesh.errors import ByzmeshError


class _Notes(logging.Handler):
    """What takes long, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"note: {record.getMessage()}", err=True)


def _before_any_verb(
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


def verbs(named: str | None = None) -> dict[str, ModuleType]:
    """The modules of the verbs by name, in the order of `byzmesh --help`; only the one that is named, if it is one."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = {name: import_module(f"{__name__}.{name}") for name in ([named] if named in names else names)}
    return dict(sorted(modules.items(), key=lambda item: item[1].ORDER))


def commands(named: str | None = None) -> typer.Typer:
    """The command line: with every verb, or with the named one alone, since the others take a tenth of a second."""
    made = typer.Typer(
        name="byzmesh",
        help="Byzantine-resilient decentralized training: simulate it, sweep it, certify it, run it between machines.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(_before_any_verb)
    for name, module in verbs(named).items():
        if hasattr(module, "app"):
            made.add_typer(module.app, name=name)
        else:
            made.command(name)(module.command)
    return made


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
    atexit.register(gc.freeze)  # what is left then ends with the process: to look for garbage in it takes 0.3 s
    try:
        code = typer.main.get_command(commands(*sys.argv[1:2]))(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except ByzmeshError as error:
        _end(str(error), error.exit_code)
    except BrokenPipeError:
        sys.exit(2)
    except Exception as error:  # typer's own errors have classes of their own in each of its versions
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        elif type(error).__name__ == "Abort":
            _end("stopped", 1)
        elif hasattr(error, "format_message"):
            _end(_misused(error), 2)
        else:
            traceback.print_exc()
            sys.exit(3)
        sys.exit(2)


def _end(told: str, code: int) -> NoReturn:
    typer.secho(f"error: {told}", fg=typer.colors.RED, err=True)
    sys.exit(code)


def _misused(error: Any) -> str:
    """A mistake in the words of a command, in one line; for a config's key taken for an option, how to set it."""
    from byzmesh.config.schema import KEYS

    verb = error.ctx.command_path if error.ctx else "byzmesh"
    key = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
    settable = error.ctx and any("--set" in known.opts for known in error.ctx.command.params)
    if settable and key.split(".")[0] in KEYS:
        return f"{verb} has no option --{key}, a key of configs: write --set {key}=VALUE"
    told = re.sub(r"( Did you mean [^?]*\?)\1+", r"\1", " ".join(error.format_message().split()))
    return f"{told.rstrip('.')} ({verb} -h shows how it is used)"

"""What `byzmesh peers` prints and parses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
import yaml
from rich.console import Console
from rich.live import Live
from rich.table import Table

from byzmesh.errors import ConfigError
from byzmesh.peers.drill.drill import Drill
from byzmesh.peers.network_file import NetworkFile


def parse_names(text: str) -> list[str]:
    """Words between commas.

    >>> parse_names("kill, pause"), parse_names("")
    (['kill', 'pause'], [])
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def parse_ids(text: str) -> list[int]:
    """Peer ids between commas.

    >>> parse_ids("7,9")
    [7, 9]
    """
    words = parse_names(text)
    for word in words:
        if not word.isdigit():
            raise ConfigError(f"--byzantine must be ids between commas, e.g. 7,9, got {word!r}")
    return [int(word) for word in words]


def parse_attack(text: str) -> dict[str, Any]:
    """An attack with its options.

    >>> parse_attack("gaussian:std=30,mean=plain")
    {'name': 'gaussian', 'std': 30, 'mean': 'plain'}
    """
    name, _, rest = text.partition(":")
    pairs = [word.partition("=") for word in parse_names(rest)]
    for key, sign, _ in pairs:
        if not sign:
            raise ConfigError(f"--attack options must be key=value, got {key!r}")
    return {"name": name, **{key: yaml.safe_load(value) for key, _, value in pairs}}


def require_local(local: bool) -> None:
    """Only drills on this machine can be launched."""
    if not local:
        raise ConfigError("launch starts peers on this machine only: add --local, or run byzmesh peer on each machine")


def rows(status: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Cells of the table, one line per honest peer."""
    for peer, said in status.items():
        accuracy = f"{100 * said['accuracy']:.2f}" if "accuracy" in said else "-"
        suspects = " ".join(str(suspect) for suspect in said.get("suspects", []))
        numbers = [str(said.get(name, 0)) for name in ("silent", "late", "refused", "moved_up")]
        yield str(peer), str(said["round"]), accuracy, *numbers, suspects


def status_table(drill: Drill) -> Table:
    """The drill as it stands."""
    lying = f", lying: {', '.join(map(str, drill.byzantine))} ({drill.attack['name']})" if drill.byzantine else ""
    made = Table(title=f"{drill.file.name}: {drill.file.made_rule.name}{lying}")
    for column in ("peer", "round", "accuracy %", "silent", "late", "refused", "moved up", "suspects"):
        made.add_column(column, justify="right")
    for cells in rows(drill.status()):
        made.add_row(*cells)
    return made


@contextmanager
def table() -> Iterator[Callable[[Drill], None]]:
    """A live table; in a pipe it is printed once, at the end."""
    console = Console()
    last: list[Table] = []
    with Live(console=console, auto_refresh=False, transient=not console.is_terminal) as live:

        def watch(drill: Drill) -> None:
            last[:] = [status_table(drill)]
            if console.is_terminal:
                live.update(last[0], refresh=True)

        yield watch
    if last and not console.is_terminal:
        console.print(last[0])


def print_drill(result: Mapping[str, Any]) -> None:
    """The end of a drill in a few lines."""
    metrics = result["metrics"]
    for kind, peers in result["events"]:
        typer.echo(f"chaos: {kind} {', '.join(map(str, peers))}")
    if "accuracy" in metrics and len(metrics["accuracy"]):
        worst = metrics["worst_accuracy"][-1]
        typer.echo(f"honest accuracy {100 * metrics['accuracy'][-1]:.2f}%, worst {100 * worst:.2f}%")
    typer.echo(f"{result['seconds']:.1f} s" + (f", stored as {result['key'][:12]}" if result["key"] else ""))


def print_plan(file: NetworkFile, path: Path) -> None:
    """What was planned."""
    typer.echo(f"{path}: {len(file.peers)} peers, rule {file.made_rule.name}, {file.rounds} rounds")

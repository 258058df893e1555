"""`byzmesh peers`: plan a network of peers, and drill it on this machine."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.cli._members import change, parse_ids, sign
from byzmesh.cli._options import Plugins, Settings, names
from byzmesh.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from byzmesh.peers.drill.drill import Drill
    from byzmesh.peers.network_file import NetworkFile

ORDER = 190

app = typer.Typer(help="Plan a network of peers, and drill it on this machine.", no_args_is_help=True)


@app.command()
def plan(
    config: Annotated[Path, typer.Argument(help="YAML file of a simulation.", show_default=False)],
    host_map: Annotated[
        str, typer.Option(help="host:port of peer 0 (the others use the next ports), or a YAML file of id: host:port.")
    ],
    keys: Annotated[Path, typer.Option(help="Folder written by byzmesh keygen.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Network file to write.")] = Path("network.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file: a new run of its peers.")] = False,
    settings: Settings = None,
    plugin: Plugins = None,
) -> None:
    """Make a network file from the config of a simulation.

    Example: byzmesh peers plan examples/two-castle.yaml --host-map 127.0.0.1:7000 --keys keys
    """
    from byzmesh.config.overrides import load_config
    from byzmesh.networks import Network
    from byzmesh.networks.fault_bounds import WEIGHT
    from byzmesh.peers.identity import load_public
    from byzmesh.peers.network_file import save_network
    from byzmesh.peers.plan import addresses, plan_network
    from byzmesh.plugins import load_plugins

    if out.exists() and not force:
        raise ConfigError(
            f"{out} exists; its peers would no longer understand each other: give another --out, or --force"
        )
    run = load_config(config, settings, load_plugins(plugin or ()))
    public = load_public(keys)
    graph = Network.from_spec(run["network"])
    where = addresses(host_map, len(public))
    file = plan_network(run, graph, where, public, out.parent, nonce=secrets.token_hex(8))
    print_plan(file, save_network(file, out))
    if isinstance(run["f"], dict) and WEIGHT in run["f"]:
        typer.echo("peers count: f of each is the most neighbours that can weigh as little as b says")
    if run["attack"]["name"] != "none":
        words = drill_words(run["attack"], graph.byzantine.tolist())
        typer.echo(f"the file does not say who lies, nor how: for a drill, add {words} to byzmesh peers launch")


app.command()(sign)
app.command()(change)


@app.command()
def launch(
    network: Annotated[Path, typer.Argument(help="Network file.", show_default=False)],
    local: Annotated[bool, typer.Option("--local", help="Start all peers as processes on this machine.")] = False,
    byzantine: Annotated[str, typer.Option(help="Ids of lying peers, e.g. 7,9.")] = "",
    attack: Annotated[
        str | None, typer.Option(help="What the liars do (default: silent); options as name:key=value,key=value.")
    ] = None,
    chaos: Annotated[str, typer.Option(help="Faults to inject into honest peers: kill, pause, slow, partition.")] = "",
    keys: Annotated[
        Path | None, typer.Option(help="Folder of the key files (default: beside the network file).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for logs, checkpoints and results.")] = Path("drill"),
    store: Annotated[Path | None, typer.Option(help="Store of runs to add the result to.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the chaos.")] = 0,
    plugin: Plugins = None,
) -> None:
    """Drill a network: start all its peers here, some of them lying, and disturb them.

    Example: byzmesh peers launch network.yaml --local --byzantine 7,9 --attack isolation --chaos kill,pause
    """
    from byzmesh.peers.drill.launch import launch as run_drill

    require_local(local)
    with live_table() as watch:
        result = run_drill(
            network,
            out,
            byzantine=parse_ids(byzantine),
            attack=None if attack is None else parse_attack(attack),
            chaos=names(chaos),
            keys=keys,
            store=store,
            seed=seed,
            watch=watch,
            plugins=plugin or (),
        )
    print_drill(result)


def parse_attack(text: str) -> dict[str, Any]:
    """Read an attack with its options.

    >>> parse_attack("gaussian:std=30,mean=plain")
    {'name': 'gaussian', 'std': 30, 'mean': 'plain'}
    """
    from byzmesh.config.yaml import parse_settings

    name, _, rest = text.partition(":")
    return {"name": name, **parse_settings("--attack", names(rest))}


def drill_words(attack: Mapping[str, Any], liars: Sequence[int]) -> str:
    """Options of `peers launch` for an attack.

    >>> drill_words({"name": "gaussian", "std": 45, "mean": "plain"}, [7, 9])
    '--byzantine 7,9 --attack gaussian:std=45,mean=plain'
    """
    from byzmesh.attacks.base import attacks

    usual = attacks.entry(attack["name"]).options
    chosen = {key: value for key, value in attack.items() if key in usual and value != usual[key]}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in chosen.items()}
    options = ",".join(f"{key}={text}" for key, text in texts.items())
    ids = ",".join(map(str, liars))
    return f"--byzantine {ids} --attack {attack['name']}" + (f":{options}" if options else "")


def require_local(local: bool) -> None:
    """Raise unless --local is given: only drills on this machine can be launched."""
    if not local:
        raise ConfigError("launch starts peers on this machine only: add --local, or run byzmesh peer on each machine")


def series_of(status: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The metrics with a column in the table: accuracy and those that were asked for."""
    from byzmesh.peers.node import COUNTERS
    from byzmesh.training.metrics import UNASKED

    reported = dict.fromkeys(name for latest in status.values() for name in latest)
    return ["accuracy", *(name for name in reported if name not in (*UNASKED, *COUNTERS, "edges"))]


def rows(status: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The rows of the table, one per honest peer."""
    from byzmesh.training.metrics import metric_of

    shown = [metric_of(name) for name in series_of(status)]
    for peer, latest in status.items():
        values = [m.number(latest[m.name] * m.factor) if m.name in latest else "-" for m in shown]
        suspects = " ".join(str(suspect) for suspect in latest.get("suspects", []))
        numbers = [str(latest.get(name, 0)) for name in ("silent", "late", "refused", "moved_up")]
        yield str(peer), str(latest["round"]), *values, *numbers, suspects


def status_table(drill: Drill) -> Table:
    """The current state of the drill as a table."""
    from rich.table import Table

    from byzmesh.training.metrics import metric_of

    lying = f", lying: {', '.join(map(str, drill.byzantine))} ({drill.attack['name']})" if drill.byzantine else ""
    table = Table(title=f"{drill.file.name}: {drill.file.made_rule.name}{lying}")
    status = drill.status()
    measured = [metric_of(name).words + metric_of(name).suffix for name in series_of(status)]
    for column in ("peer", "round", *measured, "silent", "late", "refused", "moved up", "suspects"):
        table.add_column(column, justify="right")
    for cells in rows(status):
        table.add_row(*cells)
    return table


@contextmanager
def live_table() -> Iterator[Callable[[Drill], None]]:
    """A live table; outside a terminal it is printed once, at the end."""
    from rich.console import Console
    from rich.live import Live

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
    """Print the result of a drill in a few lines."""
    from byzmesh.training.metrics import UNASKED, metric_of

    metrics = result["metrics"]
    for fault, peers in result["events"]:
        typer.echo(f"chaos: {fault} {', '.join(map(str, peers))}")
    final = {name: metric_of(name).text(values[-1]) for name, values in metrics.items() if len(values)}
    if "accuracy" in final:
        typer.echo(f"honest accuracy {final['accuracy']}, worst {final['worst_accuracy']}")
    for name in (name for name in final if name not in UNASKED):
        typer.echo(f"honest {metric_of(name).words} {final[name]}")
    typer.echo(f"{result['seconds']:.1f} s" + (f", stored as {result['key'][:12]}" if result["key"] else ""))


def print_plan(file: NetworkFile, path: Path) -> None:
    """Print what was planned."""
    typer.echo(f"{path}: {len(file.peers)} peers, rule {file.made_rule.name}, {file.rounds} rounds")

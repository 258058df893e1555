"""Options that several verbs share, each defined once, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.errors import ConfigError

if TYPE_CHECKING:
    from byzmesh.networks import Network

STORE = Path("runs.db")
"""The store that verbs read and write unless told otherwise."""

Config = Annotated[Path, typer.Argument(help="YAML file of the run; see examples/.", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key, e.g. --set rule.tau=0.1 (repeatable).")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="Script or module with your own rules, attacks, ..., e.g. mine.py; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]

StorePath = Annotated[Path, typer.Option("--store", help="Store of runs.")]
NewStorePath = Annotated[Path, typer.Option("--store", help="Store of runs; created if missing.")]
Key = Annotated[str, typer.Argument(help="Key of a run, or a unique beginning of it.", show_default=False)]
Keys = Annotated[list[str], typer.Argument(help="Keys of runs, or unique beginnings.", show_default=False)]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only runs with this value, e.g. rule=IOS or seed=3; repeatable."),
]
Status = Annotated[
    str | None,
    typer.Option("--status", help="Only runs that are planned, running, finished, diverged, failed or interrupted."),
]

Rows = Annotated[str, typer.Option("--rows", help="Fields of the rows, e.g. rule or rule,rule.tau.")]
Columns = Annotated[str, typer.Option("--columns", help="Fields of the columns, e.g. attack, network or case.")]
Metric = Annotated[str, typer.Option("--metric", help="What to show; see byzmesh list metrics.")]
Last = Annotated[
    int | None,
    typer.Option(
        "--last",
        help="Take the mean over this many last evaluations as a run's value (default: those in the last tenth of its "
        "rounds, at most 10).",
    ),
]

Workers = Annotated[int | None, typer.Option("--workers", help="Processes on this machine (default: one per core).")]
Dask = Annotated[str | None, typer.Option("--dask", help="Scheduler of a Dask cluster, e.g. tcp://host:8786.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Compute failed runs again.")]
Recompute = Annotated[
    bool, typer.Option("--recompute", help="Compute all runs again; old results stay until new ones replace them.")
]
CheckpointSeconds = Annotated[
    float, typer.Option("--checkpoint-seconds", help="How often to write a checkpoint of a run, to continue from.")
]
KeepModels = Annotated[
    str,
    typer.Option(
        "--keep-models", help="Models to keep beside the store: none, final, or all (also those of each evaluation)."
    ),
]
Compute = Annotated[bool, typer.Option("--run/--no-run", help="--no-run: only show what is in the store.")]

Param = Annotated[list[str] | None, typer.Option("--param", help="Parameter of the topology, e.g. k=6; repeatable.")]
Byzantine = Annotated[
    str | None,
    typer.Option("--byzantine", help="Who lies: none, or nodes by number or name, as 7,9 or H03-Dub,H07-Ham."),
]
ByzantineCount = Annotated[
    int | None, typer.Option("--byzantine-count", help="How many lie, placed at random by --seed.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of random topologies, placements and the search.")]


def names(text: str) -> list[str]:
    """Split names at commas.

    >>> names("IOS, FABA"), names("")
    (['IOS', 'FABA'], [])
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def network_of(
    source: str | Network,
    params: list[str] | None,
    byzantine: str | None,
    count: int | None,
    weights: str | None,
    seed: int | None,
) -> Network:
    """Build the network of a config, a graph file or a topology with these options; or modify a given network."""
    from byzmesh.config.overrides import read_config
    from byzmesh.config.yaml import parse_settings
    from byzmesh.networks import Network
    from byzmesh.peers.network_file import is_network_file, load_network
    from byzmesh.plugins import load_plugins

    is_config = isinstance(source, str) and source.endswith((".yaml", ".yml"))
    if is_config and is_network_file(str(source)):
        source, is_config = load_network(str(source)).network, False
    written: dict[str, Any] = read_config(str(source)) if is_config else {"network": source}
    load_plugins(written.get("plugins") or ())
    chosen: dict[str, Any] = {"weights": weights, "seed": seed}
    net = Network.from_spec(written.get("network"), **chosen, **parse_settings("--param", params))
    if byzantine is not None and count is not None:
        raise ConfigError("give --byzantine, who lies, or --byzantine-count, how many: one of the two")
    if count is not None:
        return net.with_byzantine(count, seed=seed or 0)
    if byzantine is None:
        return net
    return net.with_byzantine("none" if byzantine == "none" else [net.node(name) for name in names(byzantine)])


def weight_of(text: str, network: Network) -> Any:
    """A bound on the weight of lies as written: a number, or one per node as in H03=0.3,*=0.2.

    >>> from byzmesh.networks import network
    >>> weight_of("1=0.25,*=0.1", network("ring", n=3))
    {0: 0.1, 1: 0.25, 2: 0.1}
    """
    if "=" in text:
        return _by_node(text, network, "--b", float)
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--b must be a weight below 1, or by node as H03=0.3,*=0.2, got {text!r}") from None


def bound_of(text: str, network: Network, option: str = "--f") -> Any:
    """A bound as written: a number, exact, max, or one per node as in H03=2,*=1, where * stands for all others.

    >>> from byzmesh.networks import network
    >>> net = network("ring", n=3)
    >>> bound_of("2", net), bound_of("max", net), bound_of("1=2,*=0", net)
    (2, 'max', {0: 0, 1: 2, 2: 0})
    """
    if "=" not in text:
        return int(text) if text.removeprefix("-").isdecimal() else text
    return _by_node(text, network, option, int)


def _by_node(text: str, network: Network, option: str, number: type[int] | type[float]) -> dict[int, Any]:
    bounds: dict[int, Any] = {}
    others: Any = None
    for part in names(text):
        name, _, value = part.rpartition("=")
        # a point only in weights, and no sign, exponent or digit of another script
        if not name or not (value if number is int else value.replace(".", "", 1)).isdecimal():
            raise ConfigError(f"{option} takes NAME=NUMBER between commas, and *=NUMBER for all others, got {part!r}")
        if name == "*":
            others = number(value)
        else:
            bounds[network.node(name)] = number(value)
    if others is None:
        missing = next((node for node in network.honest.tolist() if node not in bounds), None)
        if missing is not None:
            raise ConfigError(f"{option} says nothing about {network.label(missing)}; add *=NUMBER for all others")
        return bounds
    return {node: bounds.get(node, others) for node in range(network.n)}

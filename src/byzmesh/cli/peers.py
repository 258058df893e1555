"""`byzmesh peers`: plan a network of peers, and drill it on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Plan a network of peers, and drill it on this machine.", no_args_is_help=True)


@app.command()
def plan(
    config: Annotated[Path, typer.Argument(help="YAML file of a simulation.", show_default=False)],
    host_map: Annotated[
        str, typer.Option(help="host:port of peer 0 (the others follow), or a YAML file id: host:port.")
    ],
    keys: Annotated[Path, typer.Option(help="Folder made by byzmesh keygen.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Network file to write.")] = Path("network.yaml"),
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of the config, e.g. --set rounds=500 (repeatable)."),
    ] = None,
) -> None:
    """Make a network file from the config of a simulation.

    Example: byzmesh peers plan examples/two-castle.yaml --host-map 127.0.0.1:7000 --keys keys
    """
    from byzmesh.cli.show_peers import print_plan
    from byzmesh.config.overrides import load_config
    from byzmesh.networks import Network
    from byzmesh.peers.identity import load_public
    from byzmesh.peers.network_file import save_network
    from byzmesh.peers.plan import addresses, plan_network

    run = load_config(config, settings or ())
    public = load_public(keys)
    file = plan_network(run, Network.from_spec(run["network"]), addresses(host_map, len(public)), public)
    print_plan(file, save_network(file, out))


@app.command()
def launch(
    network: Annotated[Path, typer.Argument(help="Network file.", show_default=False)],
    local: Annotated[bool, typer.Option("--local", help="All peers as processes on this machine.")] = False,
    byzantine: Annotated[str, typer.Option(help="Ids of lying peers, e.g. 7,9.")] = "",
    attack: Annotated[str, typer.Option(help="What the liars do; options as name:key=value,key=value.")] = "silent",
    chaos: Annotated[str, typer.Option(help="Faults of honest peers: kill, pause, slow, partition.")] = "",
    keys: Annotated[
        Path | None, typer.Option(help="Folder of the key files (default: beside the network file).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for logs, checkpoints and results.")] = Path("drill"),
    store: Annotated[Path | None, typer.Option(help="Store of runs to add the result to.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the chaos.")] = 0,
) -> None:
    """Drill a network: start all its peers here, some of them lying, and disturb them.

    Example: byzmesh peers launch network.yaml --local --byzantine 7,9 --attack isolation --chaos kill,pause
    """
    from byzmesh.cli.show_peers import parse_attack, parse_ids, parse_names, print_drill, require_local, table
    from byzmesh.peers.drill.launch import launch as run_drill

    require_local(local)
    with table() as watch:
        result = run_drill(
            network,
            out,
            byzantine=parse_ids(byzantine),
            attack=parse_attack(attack),
            chaos=parse_names(chaos),
            keys=keys,
            store=store,
            seed=seed,
            watch=watch,
        )
    print_drill(result)

"""`byzmesh design`: links and weights with which a network tolerates f liars."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from byzmesh.cli._options import Json, Param, Plugins, Seed, network_of

ORDER = 130


def command(
    network: Annotated[str | None, typer.Argument(metavar="[NETWORK]", help="Network to improve.")] = None,
    f: Annotated[int, typer.Option("--f", help="How many liars per neighbourhood, at any position, to tolerate.")] = 1,
    nodes: Annotated[int | None, typer.Option(help="Without a network: link this many nodes from scratch.")] = None,
    rule: Annotated[str, typer.Option(help="Rule to certify.")] = "ios",
    guarantee: Annotated[str, typer.Option(help="What must hold: bounded, fair or agrees.")] = "fair",
    rho: Annotated[
        float, typer.Option("--rho", help="Lies may move a worker by at most this many honest spreads.")
    ] = 1.0,
    fastest: Annotated[bool, typer.Option("--fastest", help="Also compare the fastest mixing weights.")] = False,
    param: Param = None,
    seed: Seed = None,
    plugin: Plugins = None,
    save: Annotated[Path | None, typer.Option(help="Save the network to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Suggest links and weights, cheapest first; the exit code is 1 if no design was found.

    Example: byzmesh design --nodes 30 --f 3
    """
    from byzmesh.plugins import load_plugins
    from byzmesh.theory.design import SCHEMES, suggest

    load_plugins(plugin or ())
    start = None if network is None else network_of(network, param, None, None, None, seed)
    schemes = SCHEMES if fastest else SCHEMES[:2]
    plan = suggest(start, f=f, nodes=nodes, rule=rule, guarantee=guarantee, rho=rho, schemes=schemes)
    if save is not None:
        plan.network.save(save)
    if as_json:
        import json

        typer.echo(json.dumps(plan.to_dict(), indent=2, allow_nan=False))
    else:
        typer.echo(str(plan))
    raise typer.Exit(0 if plan.after.holds else 1)

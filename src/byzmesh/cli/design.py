"""`byzmesh design`: links and weights with which a network tolerates f liars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byzmesh.cli._options import Json, Param, Plugins, Seed, bound_of, network_of
from byzmesh.errors import ConfigError

if TYPE_CHECKING:
    from byzmesh.networks import Network

ORDER = 130


def command(
    network: Annotated[str | None, typer.Argument(metavar="NETWORK", help="Network to improve.")] = None,
    f: Annotated[
        str,
        typer.Option(
            "--f", help="How many liars per neighbourhood, at any position, to tolerate: a number, or H03=2,*=1."
        ),
    ] = "1",
    nodes: Annotated[int | None, typer.Option(help="Without a network: link this many nodes from scratch.")] = None,
    rule: Annotated[str, typer.Option(help="Rule to certify.")] = "ios",
    guarantee: Annotated[str, typer.Option(help="What must hold: bounded, fair or agrees.")] = "fair",
    rho: Annotated[
        float, typer.Option("--rho", help="Lies may move a worker by at most this many honest spreads.")
    ] = 1.0,
    scale: Annotated[
        float,
        typer.Option(
            help="Weights of links may be multiplied by a number down to this before links are added; 1: not."
        ),
    ] = 0.5,
    cost: Annotated[
        Path | None,
        typer.Option(help="CSV file with what new links cost: a header, then A,B,12.5 per line; * is any site."),
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="A link that must not be added, as A--B, or A--* for a site; repeatable.")
    ] = None,
    most_links: Annotated[
        str | None, typer.Option(help="How many links a site may have: a number, or by site as H03=4,*=8.")
    ] = None,
    fastest: Annotated[bool, typer.Option("--fastest", help="Also compare the fastest mixing weights.")] = False,
    param: Param = None,
    seed: Seed = None,
    plugin: Plugins = None,
    save: Annotated[Path | None, typer.Option(help="Save the network to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Suggest weights, and links where weights do not suffice; the exit code is 1 if no design was found.

    Links are chosen greedily: each is needed, but another choice may be cheaper.

    Example: byzmesh design --nodes 30 --f 3
    Example: byzmesh design sites.graphml --f H03=2,*=1 --cost fibre.csv --forbid H03--H07 --save safe.json
    """
    from byzmesh.cli._status import status
    from byzmesh.networks.graph import DEFAULT_WEIGHTS
    from byzmesh.plugins import load_plugins
    from byzmesh.theory.design.prices import read_costs, split_link
    from byzmesh.theory.design.schemes import SCHEMES
    from byzmesh.theory.design.suggest import start_from, suggest

    load_plugins(plugin or ())
    given = None if network is None else network_of(network, param, None, None, None, seed)
    start = start_from(given, nodes, free=cost is not None or bool(forbid))
    bound = number_of(f, start, "--f")
    with status() as tell:
        plan = suggest(
            start,
            f=bound,
            rule=rule,
            guarantee=guarantee,
            rho=rho,
            schemes=SCHEMES if fastest else SCHEMES[:3],
            scale=scale,
            cost=None if cost is None else read_costs(cost, start),
            forbid=[split_link(link, start) for link in forbid or ()],
            most_links=None if most_links is None else number_of(most_links, start, "--most-links"),
            tell=tell,
        )
    if as_json:
        import json

        typer.echo(json.dumps(plan.to_dict(), indent=2, allow_nan=False))
    else:
        typer.echo(str(plan))
    if save is not None:
        if save.suffix.lower() != ".json" and plan.network.weights != DEFAULT_WEIGHTS:
            better = save.with_suffix(".json")
            raise ConfigError(f"{save}: only a .json file keeps the weights of this design; give --save {better}")
        plan.network.save(save)
    raise typer.Exit(0 if plan.reason is None else 1)


def number_of(text: str, network: Network, option: str) -> Any:
    """A number for all sites, or one per site."""
    bound = bound_of(text, network, option)
    if isinstance(bound, str):
        raise ConfigError(f"{option} takes a number, or one per site as H03=2,*=1, got {text!r}")
    return bound

"""`byzmesh certify`: can this network tolerate these liars under this rule?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from byzmesh.networks import Network
    from byzmesh.theory.certificate import Certificate

Named = Annotated[str, typer.Argument(metavar="NETWORK", help="Topology name, graph file, or config with a network.")]
Params = Annotated[list[str] | None, typer.Option("--param", help="Parameter of the topology, e.g. k=6; repeatable.")]
Liars = Annotated[str | None, typer.Option(help="Who lies: none, ids as 7,9, or how many.")]
Weights = Annotated[str | None, typer.Option(help="Weight scheme, e.g. metropolis-hastings or equal.")]
Seed = Annotated[int | None, typer.Option(help="Of random topologies, placements and the search.")]
Guarantee = Annotated[str, typer.Option(help="What must hold: rdsa, rca, both, gossip or connected.")]


def command(
    network: Named,
    rule: Annotated[str, typer.Option(help="Rule to certify.")] = "ios",
    option: Annotated[list[str] | None, typer.Option(help="Option of the rule, e.g. tau=0.1; repeatable.")] = None,
    f: Annotated[str, typer.Option("--f", help="Bound on lying neighbours: exact, max or a number.")] = "exact",
    guarantee: Guarantee = "rdsa",
    search: Annotated[int | None, typer.Option(help="Inputs to try per kind of neighbourhood; 0: none.")] = None,
    witness: Annotated[Path | None, typer.Option(help="Save the worst input found to this .npz file.")] = None,
    param: Params = None,
    byzantine: Liars = None,
    weights: Weights = None,
    seed: Seed = None,
    L: Annotated[float | None, typer.Option("--L", help="Smoothness of the problem.")] = None,
    delta_in: Annotated[float | None, typer.Option(help="Inner variation of the gradients.")] = None,
    delta_out: Annotated[float | None, typer.Option(help="Outer variation of the gradients.")] = None,
    step: Annotated[float | None, typer.Option(help="Step size.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    gap: Annotated[float | None, typer.Option(help="f(x^0) - f*.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Can this network tolerate these liars? The exit code is 1 if the guarantee asked for is not proved.

    Example: byzmesh certify paper/two-castle --rule ios --f exact
    """
    from byzmesh.theory.certificate import certify
    from byzmesh.theory.search.climb import default_budget

    net = network_of(network, param, byzantine, weights, seed)
    told = certify(
        net,
        rule,
        bound_of(f),
        guarantee=guarantee,
        search=default_budget(net) if search is None else search,
        seed=seed or 0,
        L=L,
        delta_in=delta_in,
        delta_out=delta_out,
        step=step,
        rounds=rounds,
        gap=gap,
        **values_of(option),
    )
    if witness is not None and told.search is not None and told.search.witness is not None:
        told.search.witness.save(witness)
    if as_json:
        typer.echo(json.dumps(told.to_dict(), indent=2, allow_nan=False))
    else:
        show(told)
    raise typer.Exit(0 if told.holds else 1)


def values_of(pairs: list[str] | None) -> dict[str, Any]:
    """Options written as name=value; values are read as YAML, so that 6 is a number.

    >>> values_of(["k=6", "centre=own"])
    {'k': 6, 'centre': 'own'}
    """
    import yaml

    from byzmesh.errors import ConfigError

    found = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"an option must be written name=value, got {pair!r}")
        found[name.strip()] = yaml.safe_load(value)
    return found


def bound_of(text: str) -> Any:
    """f as written: a number, or exact or max.

    >>> bound_of("2"), bound_of("max")
    (2, 'max')
    """
    return int(text) if text.lstrip("-").isdigit() else text


def liars_of(text: str | None) -> Any:
    """Liars as written: none, a number of them, or ids with commas.

    >>> liars_of("7,9"), liars_of("2"), liars_of("none")
    ([7, 9], 2, 'none')
    """
    from byzmesh.errors import ConfigError

    if text is None or text == "none":
        return text
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise ConfigError(f"byzantine must be none, ids as 7,9, or a number of liars, got {text!r}")
    ids = [int(part) for part in parts]
    return ids if "," in text else ids[0]


def network_of(
    text: str, params: list[str] | None, byzantine: str | None, weights: str | None, seed: int | None
) -> Network:
    """The network that the arguments name: a config's, a graph file's or a topology's."""
    from byzmesh.config.yaml import read_yaml
    from byzmesh.networks import Network

    config = text.endswith((".yaml", ".yml"))
    spec: Any = read_yaml(text).get("network") if config else text
    folder = Path(text).parent if config else Path()
    chosen = {"byzantine": liars_of(byzantine), "weights": weights, "seed": seed}
    return Network.from_spec(spec, folder=folder, **chosen, **values_of(params))


def show(certificate: Certificate) -> None:
    """Print a certificate: words, numbers and, for small networks, the workers."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(str(certificate), markup=False, soft_wrap=True)
    if len(certificate.workers) > 64:
        return
    table = Table("worker", "links", "lying", "f", "h", "rho <=", "bears", "bears, RCA")
    for worker in certificate.workers:
        bound = "-" if worker.rho_bound is None else f"{worker.rho_bound:.3g}"
        counts = (worker.worker, worker.neighbours, worker.lying, worker.f)
        table.add_row(*map(str, counts), f"{worker.h:.4f}", bound, str(worker.bears), str(worker.bears_rca))
    console.print(table)

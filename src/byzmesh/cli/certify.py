"""`byzmesh certify`: can this network tolerate these liars under this rule?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from byzmesh.cli._options import (
    STORE,
    Byzantine,
    ByzantineCount,
    Json,
    Param,
    Plugins,
    Seed,
    StorePath,
    bound_of,
    network_of,
    weight_of,
)
from byzmesh.errors import ConfigError

if TYPE_CHECKING:
    from byzmesh.theory.certificate import Certificate

ORDER = 120

Named = Annotated[
    str | None,
    typer.Argument(
        metavar="NETWORK", help="Topology name, graph file, config with a network, or network file of peers."
    ),
]
Weights = Annotated[str | None, typer.Option(help="Weight scheme, e.g. metropolis-hastings or equal.")]
Guarantee = Annotated[
    str | None,
    typer.Option(
        help="What must hold: bounded (default), fair, agrees or connected; the paper's rdsa or rca; with --run also "
        "theorems (default), theorem-1, theorem-2 or corollary-1."
    ),
]
Total = Annotated[
    int | None,
    typer.Option(help="Liars anywhere, at most this many in the whole network (with --f also per neighbourhood)."),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--rho", help="Bounded and fair: lies may move a worker by at most this many honest spreads (default: 1)."
    ),
]
THEOREMS = {"theorems": None, "theorem-1": "Theorem 1", "theorem-2": "Theorem 2", "corollary-1": "Corollary 1"}
"""Guarantees that are about a run."""


def command(
    network: Named = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="Instead of a network: key of a stored run, to hold the paper's theorems against; with another "
            "--guarantee its network, rule and f are certified."
        ),
    ] = None,
    store: StorePath = STORE,
    rule: Annotated[str | None, typer.Option(help="Rule to certify (default: the run's or config's, or ios).")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of the rule, e.g. tau=0.1; repeatable.")] = None,
    f: Annotated[
        str | None,
        typer.Option(
            "--f",
            help="Bound on lying neighbours: a number, exact, max, "
            "or by node as H03=2,*=1 (default: the run's or config's). On a network "
            "without liars: any liars, at most this many in the neighbourhood of a worker.",
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Option(
            "--b",
            help="Liars anywhere, of at most this mixing weight in the neighbourhood of a worker: a number, or by node "
            "as H03=0.3,*=0.2 (with --f also at most that many).",
        ),
    ] = None,
    total: Total = None,
    guarantee: Guarantee = None,
    rho: Limit = None,
    search: Annotated[int | None, typer.Option(help="Inputs to try per distinct neighbourhood; 0: none.")] = None,
    witness: Annotated[Path | None, typer.Option(help="Save the worst input found to this .npz file.")] = None,
    param: Param = None,
    byzantine: Byzantine = None,
    byzantine_count: ByzantineCount = None,
    weights: Weights = None,
    seed: Seed = None,
    L: Annotated[float | None, typer.Option("--L", help="Smoothness of the problem.")] = None,
    delta_in: Annotated[float | None, typer.Option(help="Inner variation of the gradients.")] = None,
    delta_out: Annotated[float | None, typer.Option(help="Outer variation of the gradients.")] = None,
    step: Annotated[float | None, typer.Option(help="Step size.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    gap: Annotated[float | None, typer.Option(help="f(x^0) - f*.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            help="Theorems along a run: take means over this many draws of the gradients' noise (default: 1)."
        ),
    ] = None,
    plugin: Plugins = None,
    as_json: Json = False,
) -> None:
    """Check whether a network tolerates its liars. Exit code 0: it does, 1: it does not, 2: usage error, 3: unknown.

    Example: byzmesh certify paper/two-castle --rule ios
    Example: byzmesh certify two-castle --param k=6 --f 2 --guarantee fair
    Example: byzmesh certify sites.graphml --b H03=0.3,*=0.2
    Example: byzmesh certify --run 3fa8
    """
    from byzmesh.config.yaml import parse_settings
    from byzmesh.plugins import load_plugins
    from byzmesh.sweeps.build import network_as_run
    from byzmesh.theory.certify import certify

    load_plugins(plugin or ())
    if (network is None) == (run is None):
        raise ConfigError("give either a network or a stored run (--run KEY)")
    if run is not None and (guarantee is None or guarantee in THEOREMS):
        other: dict[str, Any] = {
            "rule": rule,
            "option": option,
            "f": f,
            "b": b,
            "total": total,
            "rho": rho,
            "search": search,
            "step": step,
        }
        other |= {"witness": witness, "param": param, "byzantine": byzantine, "byzantine-count": byzantine_count}
        other |= {"weights": weights, "seed": seed, "rounds": rounds}
        constants = {"L": L, "delta_in": delta_in, "delta_out": delta_out, "gap": gap}
        theorems(store, run, THEOREMS[guarantee or "theorems"], draws or 1, constants, other, as_json)
    if draws is not None:
        raise ConfigError("--draws goes with the theorems along a run: --run KEY, and no other --guarantee")
    config = config_of(store, run) if run is not None else config_in(str(network))
    source: Any = network_as_run(config) if run is not None else network
    net = network_of(source, param, byzantine, byzantine_count, weights, seed)
    if run is None and config.get("objective") == "samples":
        from byzmesh.problems.base import problems
        from byzmesh.training.objective import weighed

        net = weighed(problems.build(config["problem"]), net, config["seed"])
    wanted = config.get("f") if f is None else bound_of(f, net)
    if isinstance(wanted, dict) and "name" in wanted:  # quantile: about the rounds of a process, printed below
        wanted = "exact"
    if f is None and (total is not None or b is not None) and wanted in ("exact", "max"):
        wanted = None  # the liars that they would count are those of the total, or those that b allows
    certificate = certify(
        net,
        rule or config.get("rule", "ios"),
        wanted,
        total=total,
        b=None if b is None else weight_of(b, net),
        guarantee=guarantee or "bounded",
        rho=1.0 if rho is None else rho,
        search=search,
        seed=seed or 0,
        L=L,
        delta_in=delta_in,
        delta_out=delta_out,
        step=step,
        rounds=rounds,
        gap=gap,
        channel=config.get("channel"),
        **parse_settings("--option", option),
    )
    changing = process_statements(net, config, rounds) if config.get("process") else []
    if as_json:
        print_json(certificate, **({"process": changing} if changing else {}))
    else:
        show(certificate)
        if changing:
            named = ", ".join(part["name"] for part in config["process"])
            typer.echo("\n  ".join((f"The certificate above is of the network itself. Under {named}:", *changing)))
    if witness is not None and certificate.search is not None and certificate.search.witness is not None:
        try:
            certificate.search.witness.save(witness)
        except OSError as error:
            raise ConfigError(f"{witness} cannot be written ({error.strerror}); give another --witness") from None
    raise typer.Exit(certificate.exit_code)


def process_statements(net: Any, config: dict[str, Any], rounds: int | None) -> list[str]:
    """What is known about a network that changes, in words."""
    from byzmesh.networks.processes import process
    from byzmesh.theory.processes import statements

    chosen = process(config["process"])
    return statements(net, chosen, rounds=rounds or config["rounds"], seed=config["seed"])


def theorems(
    store: Path,
    run: str,
    asked: str | None,
    draws: int,
    constants: dict[str, float | None],
    other: dict[str, Any],
    as_json: bool,
) -> NoReturn:
    """Hold the theorems against a stored run, print how far apart the sides are, and exit."""
    from byzmesh.store import open_store
    from byzmesh.sweeps.theorems import EXIT_CODES, check_stored

    given = [name for name, value in other.items() if value is not None]
    if given:
        raise ConfigError(f"--{given[0]} does not go with a run's theorems; give a --guarantee such as bounded with it")
    with open_store(store, readonly=True) as opened:
        report = check_stored(opened, run, draws=draws, **constants)
    if as_json:
        print_json(report)
    else:
        typer.echo(str(report))
    raise typer.Exit(EXIT_CODES[report.status if asked is None else report[asked].status])


def print_json(told: Any, **more: Any) -> None:
    """Print a certificate or a report for programs."""
    import json

    typer.echo(json.dumps({**told.to_dict(), **more}, indent=2, allow_nan=False))


def config_in(source: str) -> dict[str, Any]:
    """The canonical config of a YAML file, or rule and f of a network file of peers; empty for other sources."""
    if not source.endswith((".yaml", ".yml")):
        return {}
    from byzmesh.peers.network_file import is_network_file, load_network

    if is_network_file(source):
        file = load_network(source)
        return {"rule": file.rule, "f": file.f if isinstance(file.f, int) else [file.f[i] for i in sorted(file.f)]}
    from byzmesh.config.overrides import read_config
    from byzmesh.config.schema import resolve

    return resolve(read_config(source))


def config_of(store: Path, key: str) -> dict[str, Any]:
    """The config of a stored run."""
    from byzmesh.store import open_store

    with open_store(store, readonly=True) as opened:
        return opened.get(key).config


def show(certificate: Certificate) -> None:
    """Print a certificate: text, numbers and, for small networks, a table of the workers."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)  # names of sites may contain brackets
    console.print(str(certificate), soft_wrap=True)
    if len(certificate.workers) > 64:
        return
    table = Table(
        "worker", "links", "may lie" if certificate.question.anywhere else "lying", "f", "h", "rho <=", "bears"
    )
    for worker in certificate.workers:
        bound = "-" if worker.rho_bound is None else f"{worker.rho_bound:.3g}"
        bears = "-" if worker.bears is None else str(max(0, worker.bears))
        counts = (worker.neighbours, worker.lying, worker.f)
        name = certificate.network.label(worker.worker)
        table.add_row(name, *map(str, counts), f"{worker.h:.4f}", bound, bears)
    console.print(table)

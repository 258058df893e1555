"""From a simulator's config to a network file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from byzmesh.checks import is_number
from byzmesh.config.paths import problem_seen_from
from byzmesh.config.schema import TRAINING
from byzmesh.config.yaml import read_yaml
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks.fault_bounds import WEIGHT
from byzmesh.networks.processes import Process, process
from byzmesh.networks.processes.quantile import Quantile
from byzmesh.networks.weights import schemes
from byzmesh.peers.network_file import NetworkFile, network_file
from byzmesh.plugins import seen_from
from byzmesh.problems.base import problems
from byzmesh.rules.base import rules
from byzmesh.training.objective import sites_of, weighed


def addresses(host_map: str, peers: int) -> dict[int, str]:
    """Address of each peer: from "host:port" (peer i listens at port + i) or a YAML file that maps ids to addresses.

    >>> addresses("127.0.0.1:7000", 3)
    {0: '127.0.0.1:7000', 1: '127.0.0.1:7001', 2: '127.0.0.1:7002'}
    """
    if Path(host_map).is_file():
        content = read_yaml(host_map, ids=True)
        if sorted(content, key=str) != sorted(range(peers), key=str):
            raise ConfigError(f"host map {host_map} must map each id from 0 to {peers - 1} to host:port")
        return {int(peer): str(address) for peer, address in content.items()}
    host, _, port = host_map.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"host map must be host:port of peer 0 or a YAML file of addresses, got {host_map!r}")
    return {peer: f"{host}:{int(port) + peer}" for peer in range(peers)}


def plan_network(
    config: Mapping[str, Any],
    graph: Network,
    where: Mapping[int, str],
    public_keys: Mapping[int, str],
    folder: str | Path = ".",
    **more: Any,
) -> NetworkFile:
    """The network file of a simulator's canonical config and its graph.

    The peers train as the simulated workers would: the data are shared out among the honest ones, in their order, and
    f is resolved. A lying worker gets the same part as some honest one, so the file does not reveal who lies, and the
    attack is not in it. If the data are divided by sites (objective: samples, partition sizes), every peer has its
    site's part, and weights by samples are in the file as numbers.

    folder  where the file will be: files in or below it are named by their relative path, so that the folder can be
            copied to other machines
    more    further keys of the file (wire, timeouts, checkpoint_seconds)
    """
    changing = process(config.get("process"))
    problem = problems.build(config["problem"])
    everybody = graph.with_byzantine("none")
    by_site = sites_of(config.get("objective", "workers"), problem, everybody) is not None
    if by_site and config["attack"]["name"] == "none" and len(graph.byzantine):
        raise ConfigError("peers of a plan by sites are all of them; leave out byzantine, or name the attack")
    if config.get("objective") == "samples":
        graph = weighed(problem, graph, config["seed"])
    if config["attack"]["name"] == "none":
        changing = [one.among(graph.honest, graph.n) if one.among else one for one in changing]
        graph = graph.honest_only()
    n, honest = graph.n, graph.honest.tolist()
    missing = [peer for peer in range(n) if peer not in public_keys or peer not in where]
    if missing:
        raise ConfigError(
            f"peer {missing[0]} of {n} has no key or no address; make keys with byzmesh keygen --peers {n}"
        )
    share = {peer: place for place, peer in enumerate(honest)}
    share |= {peer: place % len(honest) for place, peer in enumerate(graph.byzantine.tolist())}
    if by_site:
        share = {peer: peer for peer in range(n)}
    by_name = graph.weights in schemes.names() and graph.samples is None
    return network_file(
        {
            "name": graph.name,
            "peers": [
                {"id": peer, "address": where[peer], "public_key": public_keys[peer], "share": share[peer]}
                for peer in range(n)
            ],
            "edges": graph.links.edges().tolist(),
            **({"directed": True} if graph.directed else {}),
            "weights": graph.weights if by_name else graph.mixing.tolist(),
            "f": _bounds(config["f"], graph, changing, config["rounds"], rules.build(config["rule"]).largest_f),
            "shares": n if by_site else len(honest),
            **{key: config[key] for key in TRAINING if key in config},
            **({"process": [{"name": one.name, **one.options} for one in changing]} if changing else {}),
            "problem": problem_seen_from(folder, config["problem"]),
            "plugins": seen_from(folder, config.get("plugins", ())),
            **more,
        },
        folder,
    )


def _bounds(
    f: Any, graph: Network, changing: Sequence[Process], rounds: int, largest: Callable[[int], int]
) -> int | dict[int, int]:
    """f of every peer, of a lying one what an honest one in its place would have: the file must not show who lies."""
    if isinstance(f, int):
        return f
    quantile = Quantile.of(f)
    if quantile is not None:
        return quantile.bound(changing, graph, rounds)
    if changing and isinstance(f, (str, Mapping)):
        if len(graph.byzantine) == 0:
            return 0
        raise ConfigError(
            f"f {f} differs from round to round, and peers do not know who lies; give a number or quantile"
        )
    bounds = graph.links.count(graph.lies)
    if f == "max":
        return int(graph.bounds("max")[0])
    if f == "tolerable" or (isinstance(f, Mapping) and is_number(f.get(WEIGHT))):  # whoever lies
        return dict(enumerate(graph.with_byzantine("none").bounds(f, largest).tolist()))
    bounds[graph.honest] = graph.bounds(f, largest)
    return {peer: int(bound) for peer, bound in enumerate(bounds)}

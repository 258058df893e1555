"""Graphs by name: the registry of topologies and `network`, which makes one of them a Network.

A topology is a plain function with keyword options that returns a networkx graph on the nodes 0 to n - 1. A node
attribute `byzantine` (true) marks the topology's own liars, a node attribute `pos` says where to draw the node. Random
topologies take an option `seed`. A new one needs one file and one decorator:

    @topologies.register("wheel")
    def wheel(n: int) -> networkx.Graph:
        "A hub joined to every node of a ring."
        return networkx.wheel_graph(n)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byzmesh.errors import ConfigError
from byzmesh.network.byzantine import is_whole
from byzmesh.network.graph import Network
from byzmesh.registry import Registry

if TYPE_CHECKING:
    import networkx

topologies: Registry[networkx.Graph[int]] = Registry(
    "topology",
    "byzmesh.topologies",
    ("byzmesh.network.families", "byzmesh.network.random_families", "byzmesh.studies.paper.graphs"),
)


def network(name: str, *, byzantine: Any = None, weights: Any = None, seed: int = 0, **parameters: Any) -> Network:
    """The network of that topology with these parameters.

    byzantine  None: the topology's own liars (the published graphs have some, the others none); "none"; a list of node
               ids; or how many, placed at random by `seed`
    weights    a scheme of `byzmesh.network.weights` (default Metropolis-Hastings) or an (n, n) array
    seed       of a random topology and of a random placement

    >>> network("two-castle", k=3, byzantine=[4])
    Network('two-castle', n=6, byzantine=[4], weights='metropolis-hastings')
    >>> network("paper/octopus").byzantine
    array([6, 7])
    """
    if not is_whole(seed):
        raise ConfigError(f"seed must be a whole number, got {seed!r}")
    if "seed" in topologies.entry(name).options:
        parameters["seed"] = int(seed)
    entry = topologies.check_options(name, parameters)
    graph = entry.factory(**parameters)
    chosen = {option: parameters.get(option, default) for option, default in entry.options.items()}
    return Network.from_networkx(
        graph, byzantine=byzantine, weights=weights, seed=seed, name=entry.name, parameters=chosen
    )

"""Graphs by name: the registry of topologies.

A topology is a plain function with keyword options that returns a networkx graph on the nodes 0 to n - 1, or `Parts`
(the links as arrays: `families.graph_of`), as the built-in ones do. In a networkx graph a node attribute `byzantine`
(true) marks the topology's own liars, and a node attribute `pos` says where to draw the node. Random topologies take an
option `seed`. A new one needs one file and one decorator:

    @topologies.register("wheel")
    def wheel(n: int) -> networkx.Graph:
        "A hub joined to every node of a ring."
        return networkx.wheel_graph(n)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from byzmesh.networks.adjacency import Parts
from byzmesh.registry import Registry

if TYPE_CHECKING:
    import networkx

topologies: Registry[networkx.Graph[int] | Parts] = Registry(
    "topology", "byzmesh.topologies", ("byzmesh.networks.families", "byzmesh.networks.random_families")
)

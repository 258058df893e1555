"""The exact graphs and liars of Wu, Chen and Ling's published runs, by name.

The Erdos-Renyi graphs are kept as lists in `data/published.json` (for each node its neighbours with a larger id), so
that no version of networkx can change them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

from byzmesh.networks.adjacency import Parts
from byzmesh.networks.families import graph_of, octopus, two_castle
from byzmesh.networks.topologies import topologies


def _stored(name: str) -> Parts:
    kept = json.loads(files("byzmesh.studies.paper").joinpath("graphs.json").read_text("utf-8"))[name]
    larger = kept["larger_neighbours"]
    edges = [(node, other) for node, others in enumerate(larger) for other in others]
    return graph_of(len(larger), edges, byzantine=kept["byzantine"])


@topologies.register("paper/two-castle")
def paper_two_castle() -> Parts:
    """The published two-castle graph: k = 6, liars 7 and 9."""
    return replace(two_castle(6), byzantine=[7, 9])


@topologies.register("paper/two-castle-3")
def paper_two_castle_3() -> Parts:
    """The two-castle graph of the paper's disagreement example: k = 3, nobody lies."""
    return two_castle(3)


@topologies.register("paper/octopus")
def paper_octopus() -> Parts:
    """The published octopus graph: head 6, liars 6 and 7."""
    return replace(octopus(6), byzantine=[6, 7])


@topologies.register("paper/er-12")
def paper_er_12() -> Parts:
    """The published Erdos-Renyi graph: 12 nodes, p = 0.7, liars 6 and 7."""
    return _stored("er-12")


@topologies.register("paper/er-20-b2")
def paper_er_20_b2() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 2 liars."""
    return _stored("er-20-b2")


@topologies.register("paper/er-20-b4")
def paper_er_20_b4() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 4 liars."""
    return _stored("er-20-b4")


@topologies.register("paper/er-20-b6")
def paper_er_20_b6() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 6 liars."""
    return _stored("er-20-b6")


@topologies.register("paper/er-20-b7")
def paper_er_20_b7() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 7 liars."""
    return _stored("er-20-b7")


@topologies.register("paper/er-20-b8")
def paper_er_20_b8() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 8 liars."""
    return _stored("er-20-b8")


@topologies.register("paper/er-20-b10")
def paper_er_20_b10() -> Parts:
    """Figure 4's Erdos-Renyi graph, p = 0.7, with 20 honest workers and 10 liars."""
    return _stored("er-20-b10")

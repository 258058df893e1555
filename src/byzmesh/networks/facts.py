"""What is known of a network: who hears whom, who lies, how much each message counts, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks.adjacency import checked_node
from byzmesh.networks.fault_bounds import by_weight, resolve_bounds, unlimited, weight_bounds
from byzmesh.networks.layout import Layout, inbox_layout
from byzmesh.networks.links import Links, check_dense
from byzmesh.sparse import frozen, row_sums
from byzmesh.types import Booleans, Floats, Integers

SHOWN = 20
"""How many liars a network's `repr` names."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Facts:
    """The links of n workers as sparse rows, their weights, the liars, and what follows.

    Dense (n, n) arrays (`adjacency`, `mixing`) are made on demand, for networks of at most 4,096 nodes.
    """

    links: Links
    """Who hears whom, as sparse rows."""
    byzantine: Integers
    """(B,) ids of the liars, ascending."""
    link_weight: Floats
    """(E,) W' on the links, in the order of `links.sender`."""
    own_weight: Floats
    """(n,) W' on the diagonal."""
    weights: str = "metropolis-hastings"
    """Name of the weight scheme, or `explicit`."""
    name: str = "adjacency"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positions: Floats | None = None
    """(n, 2) where to draw the nodes, if the topology says."""
    names: tuple[str, ...] | None = None
    """The user's names of the nodes, if they have any."""
    samples: Floats | None = None
    """(n,) how many samples each node has, if these count instead of the nodes: the target of the weights."""

    def __repr__(self) -> str:
        liars = self.byzantine.tolist()
        shown = (
            str(liars) if len(liars) <= SHOWN else f"[{', '.join(map(str, liars[:SHOWN]))}, ... {len(liars)} in all]"
        )
        return f"Network({self.name!r}, n={self.n}, byzantine={shown}, weights={self.weights!r})"

    def label(self, node: int) -> str:
        """The user's name of a node, or its number.

        >>> import byzmesh as bm
        >>> bm.network("chain", n=2).label(1)
        '1'
        """
        return str(node) if self.names is None else self.names[node]

    def node(self, name: str) -> int:
        """The number of a node that the user calls by its name or number.

        >>> import byzmesh as bm
        >>> bm.network("chain", n=2).node("1")
        1
        """
        if self.names is not None and name in self.names:
            return self.names.index(name)
        if name.isdigit() and int(name) < self.n:
            return int(name)
        known = f"0 to {self.n - 1}" if self.names is None else ", ".join(self.names[:8])
        raise ConfigError(f"no node {name!r} in network {self.name}; its nodes are {known}")

    @property
    def n(self) -> int:
        """Number of workers, liars included."""
        return self.links.n

    @cached_property
    def adjacency(self) -> Booleans:
        """(n, n) who (row) hears whom (column), False on the diagonal; for networks of at most 4,096 nodes."""
        return frozen(self.links.dense())

    @cached_property
    def mixing(self) -> Floats:
        """(n, n) W', the weights of all n workers; for networks of at most 4,096 nodes."""
        check_dense(self.n, "mixing")
        matrix = np.diag(self.own_weight)
        matrix[self.links.receiver, self.links.sender] = self.link_weight
        return frozen(matrix)

    def sparse_mixing(self, nodes: Integers | None = None) -> Any:
        """W', or its block of these nodes (ascending ids), as a SciPy matrix in rows.

        >>> import byzmesh as bm
        >>> bm.network("chain", n=3).sparse_mixing(np.array([1, 2])).toarray().round(3)
        array([[0.333, 0.333],
               [0.333, 0.667]])
        """
        if nodes is None:
            return self.links.matrix(self.link_weight, self.own_weight)
        block, kept = self.links.among(nodes)
        return block.matrix(self.link_weight[kept], self.own_weight[nodes])

    @cached_property
    def honest(self) -> Integers:
        """(N,) ids of the honest workers, ascending: row r of the honest models belongs to worker honest[r]."""
        return frozen(np.setdiff1d(np.arange(self.n, dtype=np.int64), self.byzantine))

    @property
    def degree(self) -> Integers:
        """(n,) number of neighbours that each worker hears."""
        return self.links.degree

    @cached_property
    def lying_neighbours(self) -> Integers:
        """(N,) number of lying neighbours of each honest worker: what f="exact" means."""
        return frozen(self.links.count(self.lies)[self.honest])

    @cached_property
    def lies(self) -> Booleans:
        """(n,) whether each worker lies."""
        chosen = np.zeros(self.n, bool)
        chosen[self.byzantine] = True
        return frozen(chosen)

    @cached_property
    def lying_weight(self) -> Floats:
        """(N,) total weight that each honest worker gives to its lying neighbours."""
        links, lies = self.links, self.lies
        told = np.flatnonzero(~lies[links.receiver] & lies[links.sender])
        row = np.searchsorted(self.honest, links.receiver[told])
        column = np.searchsorted(self.byzantine, links.sender[told])
        return frozen(row_sums(row, column, self.link_weight[told], (len(self.honest), len(self.byzantine))))

    @cached_property
    def target(self) -> Floats:
        """(N,) how much each honest worker should count in the average of them all: 1 / N, or by its samples.

        >>> import byzmesh as bm
        >>> bm.network("chain", n=3, samples=[10, 30, 60], byzantine=[2]).target
        array([0.25, 0.75])
        """
        if self.samples is None:
            return frozen(np.full(len(self.honest), 1.0 / len(self.honest)))
        own = self.samples[self.honest]
        return frozen(own / own.sum())

    @cached_property
    def honest_links(self) -> Links:
        """The links between honest workers, renumbered 0 to N - 1 in order."""
        return self.links.among(self.honest)[0]

    @cached_property
    def honest_mixing(self) -> Floats:
        """(N, N) the honest block of `mixing`; what a row lacks to 1 is the weight of lying neighbours."""
        return frozen(self.mixing[np.ix_(self.honest, self.honest)])

    @cached_property
    def honest_connected(self) -> bool:
        """Whether the honest workers reach each other without a liar in between: strongly, if links go one way."""
        links = self.honest_links
        return bool(links.reach().all() and (not links.directed or links.reversed().reach().all()))

    @property
    def directed(self) -> bool:
        """Whether some link goes one way only."""
        return self.links.directed

    @cached_property
    def layout(self) -> Layout:
        """Inboxes of the honest workers."""
        return inbox_layout(self.links, self.link_weight, self.own_weight, self.honest)

    def neighbours(self, worker: int) -> Integers:
        """Ids of the neighbours that a worker hears, ascending."""
        return self.links.of(checked_node(worker, self.n))

    def neighbour_weights(self, worker: int) -> Floats:
        """W' of a worker's neighbours, in their order."""
        node = checked_node(worker, self.n)
        return self.link_weight[self.links.start[node] : self.links.start[node + 1]]

    def bounds(self, f: Any, largest: Callable[[int], int] = unlimited) -> Integers:
        """(N,) the bound on lying neighbours per honest worker; `f` as in `networks/fault_bounds.py`.

        largest  neighbours -> the largest f that the rule allows: it limits a bound that follows from the weights

        >>> import byzmesh as bm
        >>> bm.network("chain", n=3, byzantine=[2]).bounds("exact")
        array([0, 1])
        """
        tolerated = by_weight(f, self.layout, largest)
        if tolerated is not None:
            return tolerated
        return resolve_bounds(f, self.honest, self.lying_neighbours, self.n)

    def weight_bounds(self, f: Any) -> Floats | None:
        """(N,) what the lying neighbours of each honest worker weigh at most; None if `f` counts them.

        >>> import byzmesh as bm
        >>> bm.network("chain", n=3).weight_bounds({"weight": 0.2})
        array([0.2, 0.2, 0.2])
        """
        return weight_bounds(f, len(self.honest))

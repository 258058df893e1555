"""Network: who is linked with whom, who lies, and how much each message counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byzmesh.network import adjacency as convert
from byzmesh.network.byzantine import place
from byzmesh.network.fault_bounds import resolve_bounds
from byzmesh.network.layout import Layout, inbox_layout
from byzmesh.network.weights import EXPLICIT, mixing_matrix

if TYPE_CHECKING:
    import networkx

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

DEFAULT_WEIGHTS = "metropolis-hastings"


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """An undirected graph of n workers, some of which lie. Made by `byzmesh.network` or by a `from_` method.

    Arrays are read-only; a change is a new network (`with_byzantine`, `with_weights`, `honest_only`).

    >>> net = Network.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], byzantine=[3])
    >>> net
    Network('edges', n=4, byzantine=[3], weights='metropolis-hastings')
    >>> net.neighbours(2), net.lying_neighbours, net.honest_connected
    (array([0, 1, 3]), array([0, 0, 1]), True)
    """

    adjacency: Booleans
    """(n, n) symmetric, False on the diagonal."""
    byzantine: Integers
    """(B,) ids of the liars, ascending."""
    mixing: Floats
    """(n, n) W', the weights of all n workers."""
    weights: str = DEFAULT_WEIGHTS
    """Name of the weight scheme, or `explicit`."""
    name: str = "adjacency"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positions: Floats | None = None
    """(n, 2) where to draw the nodes, if the topology says."""

    @classmethod
    def from_adjacency(
        cls,
        adjacency: Any,
        *,
        byzantine: Any = None,
        weights: Any = None,
        seed: int = 0,
        name: str = "adjacency",
        parameters: Mapping[str, Any] | None = None,
        positions: Any = None,
    ) -> Network:
        """From an (n, n) matrix of 0 and 1 (or bool). The other arguments are as in `byzmesh.network`.

        >>> Network.from_adjacency([[0, 1], [1, 0]], weights="equal").mixing
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        links = convert.checked_adjacency(adjacency)
        scheme, mixing = mixing_matrix(links, DEFAULT_WEIGHTS if weights is None else weights)
        liars = place("none" if byzantine is None else byzantine, len(links), seed)
        spots = None if positions is None else convert.checked_positions(positions, len(links))
        for array in (links, mixing, liars):
            array.setflags(write=False)
        return cls(links, liars, mixing, scheme, name, dict(parameters or {}), spots)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int, int]],
        n: int | None = None,
        *,
        byzantine: Any = None,
        weights: Any = None,
        seed: int = 0,
        name: str = "edges",
    ) -> Network:
        """From pairs of node ids. Ids are 0 to n - 1; without `n` every id must occur in an edge.

        >>> Network.from_edges([(0, 1)], n=3).degree
        array([1, 1, 0])
        """
        return cls.from_adjacency(
            convert.adjacency_of_edges(edges, n), byzantine=byzantine, weights=weights, seed=seed, name=name
        )

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph[Any],
        *,
        byzantine: Any = None,
        weights: Any = None,
        seed: int = 0,
        name: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Network:
        """From a networkx graph with any node labels: sorted, they become 0 to n - 1 (`n2` before `n10`).

        A list of liars holds labels of `graph`. Without `byzantine` the nodes with a true attribute `byzantine` lie.
        Node attributes `pos` (networkx's convention) say where to draw. Edge attributes are ignored.

        >>> import networkx
        >>> Network.from_networkx(networkx.path_graph(["a", "b", "c"]), byzantine=["c"]).byzantine
        array([2])
        """
        parts = convert.parts_of_networkx(graph, byzantine)
        return cls.from_adjacency(
            parts.adjacency,
            byzantine=parts.byzantine,
            weights=weights,
            seed=seed,
            name=name or str(graph.graph.get("name") or "networkx"),
            parameters=parameters,
            positions=parts.positions,
        )

    @classmethod
    def from_file(cls, path: str | Path, *, byzantine: Any = None, weights: Any = None, seed: int = 0) -> Network:
        """From `.json` (everything), `.graphml` (graph and liars), `.edges`/`.txt` or adjacency `.csv` (the graph).

        `byzantine` and `weights`, if given, take the place of what the file says. See `byzmesh.network.io`.
        """
        from byzmesh.network.io import read

        return read(Path(path), byzantine=byzantine, weights=weights, seed=seed)

    def save(self, path: str | Path) -> Path:
        """Write to a file of a kind that `from_file` reads; only `.json` holds everything. Returns the path."""
        from byzmesh.network.io import write

        return write(self, Path(path))

    def draw(self, path: str | Path, cut: Floats | None = None) -> Path:
        """Draw to a PNG, SVG or PDF file (by suffix): honest workers blue circles, liars red squares.

        `cut` (n, n) colours the links by how often the row's worker cut the column's.
        """
        from byzmesh.network.drawing import draw

        return draw(self, Path(path), cut)

    def __repr__(self) -> str:
        return f"Network({self.name!r}, n={self.n}, byzantine={self.byzantine.tolist()}, weights={self.weights!r})"

    @property
    def n(self) -> int:
        """Number of workers, liars included."""
        return len(self.adjacency)

    @cached_property
    def honest(self) -> Integers:
        """(N,) ids of the honest workers, ascending: row r of the honest models belongs to worker honest[r]."""
        return _frozen(np.setdiff1d(np.arange(self.n, dtype=np.int64), self.byzantine))

    @cached_property
    def degree(self) -> Integers:
        """(n,) number of neighbours."""
        return _frozen(self.adjacency.sum(axis=1, dtype=np.int64))

    @cached_property
    def lying_neighbours(self) -> Integers:
        """(N,) number of lying neighbours of each honest worker: what f="exact" means."""
        return _frozen(self.adjacency[np.ix_(self.honest, self.byzantine)].sum(axis=1, dtype=np.int64))

    @cached_property
    def honest_mixing(self) -> Floats:
        """(N, N) the honest block of W'; a row's missing weight is what lying neighbours hold."""
        block: Floats = self.mixing[np.ix_(self.honest, self.honest)]
        block.setflags(write=False)
        return block

    @cached_property
    def honest_connected(self) -> bool:
        """Whether the honest workers reach each other without a liar in between."""
        links = self.adjacency[np.ix_(self.honest, self.honest)]
        reached = np.zeros(len(links), bool)
        front = reached.copy()
        front[0] = True
        while front.any():
            reached |= front
            front = links[front].any(axis=0) & ~reached
        return bool(reached.all())

    @cached_property
    def layout(self) -> Layout:
        """Inboxes of the honest workers."""
        return inbox_layout(self.adjacency, self.mixing, self.honest)

    def neighbours(self, worker: int) -> Integers:
        """Ids of a worker's neighbours, ascending."""
        return np.flatnonzero(self.adjacency[convert.checked_node(worker, self.n)]).astype(np.int64)

    def bounds(self, f: Any) -> Integers:
        """(N,) the bound on lying neighbours per honest worker; `f` as in `byzmesh.network.fault_bounds.resolve_bounds`.

        >>> Network.from_edges([(0, 1), (1, 2)], byzantine=[2]).bounds("exact")
        array([0, 1])
        """
        return resolve_bounds(f, self.honest, self.lying_neighbours, self.n)

    def with_byzantine(self, byzantine: Any, *, seed: int = 0) -> Network:
        """The same graph and weights with other liars: "none", a list of ids or a number placed by `seed`."""
        liars = place(byzantine, self.n, seed)
        return replace(self, byzantine=_frozen(liars))

    def with_weights(self, weights: Any) -> Network:
        """The same graph and liars with another weight scheme or an explicit (n, n) array."""
        scheme, mixing = mixing_matrix(self.adjacency, weights)
        mixing.setflags(write=False)
        return replace(self, weights=scheme, mixing=mixing)

    def honest_only(self) -> Network:
        """The graph of the honest workers, renumbered 0 to N - 1 in order, weights recomputed: the paper's "no attack".

        Explicit weights cannot be recomputed: there the liars' weight goes to the receiver itself.

        >>> Network.from_edges([(0, 1), (1, 2), (2, 0)], byzantine=[1]).honest_only().mixing
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        weights: Any = self.weights
        if self.weights == EXPLICIT:
            weights = self.honest_mixing + np.diag(self.mixing[np.ix_(self.honest, self.byzantine)].sum(axis=1))
        return Network.from_adjacency(
            self.adjacency[np.ix_(self.honest, self.honest)],
            weights=weights,
            name=self.name if len(self.byzantine) == 0 else f"{self.name}, honest only",
            parameters=self.parameters,
            positions=None if self.positions is None else self.positions[self.honest],
        )


def _frozen(array: Integers) -> Integers:
    array.setflags(write=False)
    return array

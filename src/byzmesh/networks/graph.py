"""Network: who is linked to whom, who lies, and how much each message counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.networks import adjacency as convert
from byzmesh.networks import drawing, io
from byzmesh.networks.adjacency import Parts
from byzmesh.networks.byzantine import place
from byzmesh.networks.fault_bounds import resolve_bounds
from byzmesh.networks.layout import Layout, inbox_layout
from byzmesh.networks.topologies import topologies
from byzmesh.networks.weights import EXPLICIT, mixing_matrix
from byzmesh.types import Booleans, Floats, Integers

if TYPE_CHECKING:
    import networkx


DEFAULT_WEIGHTS = "metropolis-hastings"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Network:
    """An undirected graph of n workers, some of which lie. Created by `bm.network` or a `from_` method.

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
    names: tuple[str, ...] | None = None
    """The user's names of the nodes, if they have any."""

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
        names: tuple[str, ...] | None = None,
    ) -> Network:
        """From an (n, n) matrix of 0 and 1 (or bool). The other arguments are as in `from_spec`.

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
        if names is not None and (len(names) != len(links) or len(set(names)) < len(names)):
            raise ConfigError(f"names must be {len(links)} different names, one per node, got {len(names)}")
        return cls(
            adjacency=links,
            byzantine=liars,
            mixing=mixing,
            weights=scheme,
            name=name,
            parameters=dict(parameters or {}),
            positions=spots,
            names=names,
        )

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

        A list of liars has labels of `graph`. Without `byzantine`, the nodes with a true attribute `byzantine` lie.
        Node attributes `pos` (networkx's convention) say where to draw. Edge attributes are ignored.

        >>> import networkx
        >>> Network.from_networkx(networkx.path_graph(["a", "b", "c"]), byzantine=["c"]).byzantine
        array([2])
        """
        parts = convert.parts_of_networkx(graph, byzantine)
        changed = {"name": name or parts.name, "parameters": parameters}
        return cls._of(parts, weights=weights, seed=seed, **changed)

    @classmethod
    def from_file(cls, path: str | Path, *, byzantine: Any = None, weights: Any = None, seed: int = 0) -> Network:
        """From `.json` (everything), `.graphml` (graph and liars), `.edges`/`.txt` or adjacency `.csv` (the graph).

        `byzantine` and `weights`, if given, replace those of the file. See `byzmesh.networks.io`.
        """
        parts = io.read(Path(path), byzantine)
        try:
            return cls._of(parts, weights=weights, seed=seed)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def from_spec(
        cls,
        spec: Any,
        /,
        *,
        byzantine: Any = None,
        weights: Any = None,
        seed: int | None = None,
        folder: str | Path = ".",
        **parameters: Any,
    ) -> Network:
        """The network that a spec describes; these options replace those of the spec.

        spec        the name of a topology or a file (by its suffix), a `Network`, or a mapping with `name` and the
                    topology's parameters, with `file`, or with `edges` (and `n`, `label`), and the options below
        byzantine   None: the topology's own liars (the published graphs have some, the others none); "none"; a list of
                    node ids; or how many, placed at random by `seed`
        weights     a scheme of `byzmesh.networks.weights` (default Metropolis-Hastings) or an (n, n) array
        seed        of a random topology and of a random placement (default 0)
        folder      what a relative file name is relative to
        parameters  of the topology

        >>> Network.from_spec("two-castle", k=3, byzantine=[4])
        Network('two-castle', n=6, byzantine=[4], weights='metropolis-hastings')
        >>> Network.from_spec({"name": "ring", "n": 5, "weights": "lazy"}, byzantine=1).byzantine
        array([3])
        """
        if isinstance(spec, Network):
            return spec._changed(byzantine, weights, 0 if seed is None else seed, parameters)
        options = {"byzantine": byzantine, "weights": weights, "seed": seed, **parameters}
        given = {**as_mapping(spec), **{key: value for key, value in options.items() if value is not None}}
        rest = {key: given.pop(key, None) for key in ("byzantine", "weights")}
        start = given.pop("seed", None)
        start = 0 if start is None else whole("network seed", start, -(2**63))
        if "file" in given:
            _only(given, "file")
            return cls.from_file(Path(folder) / str(given["file"]), **rest, seed=start)
        if "edges" in given:
            _only(given, "edges", "n", "label")
            pairs = [tuple(edge) for edge in given["edges"]]
            return cls.from_edges(pairs, given.get("n"), **rest, seed=start, name=given.get("label", "edges"))
        entry = topologies.entry(given["name"])
        if "seed" in entry.options:
            given["seed"] = start
        entry, chosen = topologies.options_of(given, {})
        shown = {option: chosen.get(option, default) for option, default in entry.options.items()}
        graph = entry.factory(**chosen)
        return cls.from_networkx(graph, **rest, seed=start, name=entry.name, parameters=shown)

    @classmethod
    def _of(cls, parts: Parts, *, weights: Any, seed: int, **changed: Any) -> Network:
        return cls.from_adjacency(
            parts.adjacency,
            byzantine=parts.byzantine,
            weights=parts.weights if weights is None else weights,
            seed=seed,
            **{
                "name": parts.name,
                "parameters": parts.parameters,
                "positions": parts.positions,
                "names": parts.names,
                **changed,
            },
        )

    def _changed(self, byzantine: Any, weights: Any, seed: int, parameters: Mapping[str, Any]) -> Network:
        if parameters:
            given = ", ".join(sorted(parameters))
            raise UnknownOption(f"network {self.name} is already built; give its options ({given}) when you create it")
        changed = self if weights is None else self.with_weights(weights)
        return changed if byzantine is None else changed.with_byzantine(byzantine, seed=seed)

    def save(self, path: str | Path) -> Path:
        """Write to a file that `from_file` can read; only `.json` keeps everything. Returns the path."""
        return io.write(self, Path(path))

    def draw(self, path: str | Path, cut: Floats | None = None) -> Path:
        """Draw to a PNG, SVG or PDF file (by suffix): honest workers blue circles, liars red squares.

        `cut` (n, n) colours the links by how often the row's worker cut the column's.
        """
        return drawing.draw(self, Path(path), cut)

    def __repr__(self) -> str:
        return f"Network({self.name!r}, n={self.n}, byzantine={self.byzantine.tolist()}, weights={self.weights!r})"

    def label(self, node: int) -> str:
        """The user's name of a node, or its number.

        >>> Network.from_edges([(0, 1)]).label(1)
        '1'
        """
        return str(node) if self.names is None else self.names[node]

    def node(self, name: str) -> int:
        """The number of a node that the user calls by its name or number.

        >>> Network.from_edges([(0, 1)]).node("1")
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
        """(N, N) the honest block of W'; what a row lacks to 1 is the weight of lying neighbours."""
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
        """(N,) the bound on lying neighbours per honest worker; `f` as in `fault_bounds.resolve_bounds`.

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

        Explicit weights cannot be recomputed: for these, the liars' weight goes to the receiver itself.

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
            names=None if self.names is None else tuple(self.names[node] for node in self.honest.tolist()),
        )


def as_mapping(spec: Any) -> dict[str, Any]:
    """A spec as a mapping with `name`, `file` or `edges`.

    >>> as_mapping("ring"), as_mapping("peers.edges")
    ({'name': 'ring'}, {'file': 'peers.edges'})
    """
    if isinstance(spec, str):
        return {"file" if spec.lower().endswith(io.KINDS) else "name": spec}
    if not isinstance(spec, Mapping):
        raise ConfigError(f"network must be a name, a file or a mapping, got {spec!r}")
    if not {"name", "file", "edges"} & set(spec):
        keys = ", ".join(map(str, spec)) or "none"
        raise ConfigError(f"a network given as a mapping needs 'name', 'file' or 'edges', got the keys {keys}")
    return dict(spec)


def _only(given: Mapping[str, Any], *known: str) -> None:
    for key in given:
        if key not in known:
            raise UnknownOption(f"network has no key {key!r} beside {known[0]!r}: {nearest(str(key), known)}")


def _frozen(array: Integers) -> Integers:
    array.setflags(write=False)
    return array

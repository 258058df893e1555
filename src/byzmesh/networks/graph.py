"""Network: built from a name, a matrix, edges, a graph or a file, and changed into other networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byzmesh.checks import flag, whole
from byzmesh.errors import ConfigError, UnknownOption
from byzmesh.networks import adjacency as convert
from byzmesh.networks import drawing, io, specs
from byzmesh.networks.adjacency import Parts
from byzmesh.networks.byzantine import place
from byzmesh.networks.facts import Facts
from byzmesh.networks.weights import EXPLICIT, mixing_weights
from byzmesh.sparse import frozen
from byzmesh.types import Floats

if TYPE_CHECKING:
    import networkx

DEFAULT_WEIGHTS = "metropolis-hastings"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Network(Facts):
    """A graph of n workers, some of which lie, undirected or directed. Created by `bm.network` or a `from_` method.

    Arrays are read-only; a change is a new network (`with_byzantine`, `with_weights`, `honest_only`).

    >>> net = Network.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], byzantine=[3])
    >>> net
    Network('edges', n=4, byzantine=[3], weights='metropolis-hastings')
    >>> net.neighbours(2), net.lying_neighbours, net.honest_connected
    (array([0, 1, 3]), array([0, 0, 1]), True)
    """

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
        directed: bool = False,
    ) -> Network:
        """From an (n, n) matrix of 0 and 1 (or bool), dense or SciPy's; `directed`: row i hears column j.

        The other arguments are as in `from_spec`.

        >>> Network.from_adjacency([[0, 1], [1, 0]], weights="equal").mixing
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        return cls.from_parts(
            Parts(
                links=convert.links_of_matrix(adjacency, directed),
                byzantine=byzantine,
                weights=weights,
                name=name,
                parameters=parameters or {},
                positions=positions,
                names=names,
            ),
            seed=seed,
        )

    @classmethod
    def from_parts(cls, parts: Parts, *, weights: Any = None, seed: int = 0) -> Network:
        """From checked links and what else is known of them; `weights`, if given, replace those of the parts."""
        links, names = parts.links, parts.names
        chosen = parts.weights if weights is None else weights
        samples = None if parts.samples is None else frozen(convert.checked_samples(parts.samples, links.n))
        made = mixing_weights(links, DEFAULT_WEIGHTS if chosen is None else chosen, samples)
        liars = place("none" if parts.byzantine is None else parts.byzantine, links.n, seed)
        spots = None if parts.positions is None else convert.checked_positions(parts.positions, links.n)
        if names is not None and (len(names) != links.n or len(set(names)) < len(names)):
            raise ConfigError(f"names must be {links.n} different names, one per node, got {len(names)}")
        return cls(
            links=links,
            byzantine=frozen(liars),
            link_weight=made.link,
            own_weight=made.own,
            weights=made.name,
            name=parts.name,
            parameters=dict(parts.parameters),
            positions=spots,
            names=names,
            samples=samples,
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
        directed: bool = False,
    ) -> Network:
        """From pairs of node ids. Ids are 0 to n - 1; without `n` every id must occur in an edge.

        Links go both ways; with `directed`, (a, b) means that a sends to b.

        >>> Network.from_edges([(0, 1)], n=3).degree
        array([1, 1, 0])
        """
        links = convert.links_of_edges(edges, n, directed)
        return cls.from_parts(Parts(links=links, byzantine=byzantine, weights=weights, name=name), seed=seed)

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
        In a directed graph an edge (a, b) means that a sends to b. Node attributes `pos` (networkx's convention) say
        where to draw. Edge attributes are ignored.

        >>> import networkx
        >>> Network.from_networkx(networkx.path_graph(["a", "b", "c"]), byzantine=["c"]).byzantine
        array([2])
        """
        parts = convert.parts_of_networkx(graph, byzantine)
        named = replace(parts, name=name or parts.name, parameters=parameters or {})
        return cls.from_parts(named, weights=weights, seed=seed)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        byzantine: Any = None,
        weights: Any = None,
        seed: int = 0,
        directed: bool = False,
    ) -> Network:
        """From `.json` (everything), `.graphml` (graph and liars), `.edges`/`.txt` or adjacency `.csv` (the graph).

        `byzantine` and `weights`, if given, replace those of the file. With `directed`, a line "a b" of an edge list
        means that a sends to b. See `byzmesh.networks.io`.
        """
        parts = io.read(Path(path), byzantine, directed)
        try:
            return cls.from_parts(parts, weights=weights, seed=seed)
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
        samples: Any = None,
        seed: int | None = None,
        folder: str | Path = ".",
        **parameters: Any,
    ) -> Network:
        """The network that a spec describes; these options replace those of the spec.

        spec        the name of a topology or a file (by its suffix), a `Network`, or a mapping with `name` and the
                    topology's parameters, with `file` (`directed`) or `edges` (`n`, `label`, `names`, `directed`),
                    and the options below
        byzantine   None: the topology's own liars (the published graphs have some, the others none); "none"; a list of
                    node ids; or how many, placed at random by `seed`
        weights     a scheme of `byzmesh.networks.weights` (default Metropolis-Hastings) or an (n, n) array
        samples     how many samples each node has, if these are to count the same, not the nodes: a list of n numbers
        seed        of a random topology and of a random placement (default 0)
        folder      what a relative file name is relative to
        parameters  of the topology

        >>> Network.from_spec("two-castle", k=3, byzantine=[4])
        Network('two-castle', n=6, byzantine=[4], weights='metropolis-hastings')
        >>> Network.from_spec({"name": "ring", "n": 5, "weights": "lazy"}, byzantine=1).byzantine
        array([3])
        """
        if isinstance(spec, Network):
            changed = spec if samples is None else spec.with_samples(samples)
            return changed._changed(byzantine, weights, 0 if seed is None else seed, parameters)
        options = {"byzantine": byzantine, "weights": weights, "samples": samples, "seed": seed, **parameters}
        given = {**specs.as_mapping(spec), **{key: value for key, value in options.items() if value is not None}}
        counted = given.pop("samples", None)
        if counted is not None:
            return cls.from_spec(given, folder=folder).with_samples(counted)
        rest = {key: given.pop(key, None) for key in ("byzantine", "weights")}
        start = given.pop("seed", None)
        start = 0 if start is None else whole("network seed", start, -(2**63))
        if "file" in given:
            specs.only(given, "file", "directed")
            one_way = flag("network directed", given.get("directed", False))
            return cls.from_file(Path(folder) / str(given["file"]), **rest, seed=start, directed=one_way)
        if "edges" in given:
            return cls.from_parts(replace(specs.of_edges(given), byzantine=rest.pop("byzantine")), **rest, seed=start)
        return cls.from_parts(specs.of_topology(given, start, rest["byzantine"]), weights=rest["weights"], seed=start)

    def _changed(self, byzantine: Any, weights: Any, seed: int, parameters: Mapping[str, Any]) -> Network:
        if parameters:
            given = ", ".join(sorted(parameters))
            raise UnknownOption(f"network {self.name} is already built; give its options ({given}) when you create it")
        changed = self if weights is None else self.with_weights(weights)
        return changed if byzantine is None else changed.with_byzantine(byzantine, seed=seed)

    def save(self, path: str | Path) -> Path:
        """Write to a file that `from_file` can read; only `.json` keeps everything. Returns the path."""
        return io.write(self, Path(path))

    def draw(self, path: str | Path | None = None, cut: Floats | None = None) -> Any:
        """Draw to a PNG, SVG or PDF file (by suffix) and return its path; without one, return a matplotlib figure.

        Honest workers are blue circles, liars red squares. `cut` (n, n) colours the links by how often the row's worker
        cut the column's (`run.edges.cut_rates(n)`). At most 2,000 nodes.
        """
        return drawing.figure_of(self, cut) if path is None else drawing.draw(self, Path(path), cut)

    def _repr_html_(self) -> str:
        from byzmesh.networks.svg import network_html

        return network_html(self)

    def with_byzantine(self, byzantine: Any, *, seed: int = 0) -> Network:
        """The same graph and weights with other liars: "none", a list of ids or a number placed by `seed`."""
        liars = place(byzantine, self.n, seed)
        return replace(self, byzantine=frozen(liars))

    def with_weights(self, weights: Any) -> Network:
        """The same graph and liars with another weight scheme or an explicit (n, n) matrix, dense or SciPy's."""
        made = mixing_weights(self.links, weights, self.samples)
        return replace(self, weights=made.name, link_weight=made.link, own_weight=made.own)

    def with_samples(self, samples: Any) -> Network:
        """The same graph with weights under which every sample counts the same; explicit ones stay.

        samples  (n,) how many samples each node has, or numbers in proportion to that; None: every node counts the same

        >>> (Network.from_edges([(0, 1), (1, 2)]).with_samples([1, 3, 6]).mixing.T @ [1.0, 3.0, 6.0]).round(9)
        array([1., 3., 6.])
        """
        target = None if samples is None else frozen(convert.checked_samples(samples, self.n))
        made = mixing_weights(self.links, self.mixing if self.weights == EXPLICIT else self.weights, target)
        return replace(self, samples=target, link_weight=made.link, own_weight=made.own)

    def honest_only(self) -> Network:
        """The graph of the honest workers, renumbered 0 to N - 1 in order, weights recomputed: the paper's "no attack".

        Explicit weights cannot be recomputed: for these, the liars' weight goes to the receiver itself.

        >>> Network.from_edges([(0, 1), (1, 2), (2, 0)], byzantine=[1]).honest_only().mixing
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        weights: Any = self.weights
        if self.weights == EXPLICIT:
            inner, kept = self.links.among(self.honest)
            weights = inner.matrix(self.link_weight[kept], self.own_weight[self.honest] + self.lying_weight)
        return Network.from_parts(
            Parts(
                links=self.honest_links,
                weights=weights,
                name=self.name if len(self.byzantine) == 0 else f"{self.name}, honest only",
                parameters=self.parameters,
                positions=None if self.positions is None else self.positions[self.honest],
                names=None if self.names is None else tuple(self.names[node] for node in self.honest.tolist()),
                samples=None if self.samples is None else self.samples[self.honest],
            )
        )

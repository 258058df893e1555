"""Design: weights and links that turn a failing certificate into a passing one.

Links are added one at a time, where they help most: between the two most endangered workers (largest h) that are not
linked yet, among equals the pair that connects the graph best, until every h is small enough for the rule's bound; then
across cuts until no liars in question can separate the honest workers; then, if the honest workers must agree, between
the two workers with the least in common. Weights compared on the result: Metropolis-Hastings, best constant, and
fastest mixing by the FDLA semidefinite programme (the extra `design`),

    minimise ||W - 11^T/n||_2   such that   W = W^T, W 1 = 1, W >= 0, w_nm = 0 where there is no link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import choice, whole
from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.networks import Network, fiedler_vector
from byzmesh.networks import network as make_network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.rules.contraction import Contraction
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.certify import RHO, certify
from byzmesh.theory.connectivity import connectivity
from byzmesh.theory.consensus import LARGE
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.question import Question, ask
from byzmesh.theory.verdict import ANSWERS
from byzmesh.types import Booleans, Floats

Edge = tuple[int, int]

SCHEMES = ("metropolis-hastings", "best-constant", "fastest")


@dataclass(frozen=True)
class Option:
    """A weight scheme on the designed graph and its certificate."""

    weights: str
    certificate: Certificate


@dataclass(frozen=True, kw_only=True)
class Design:
    """A suggestion.

    before, after  certificates of the start and of the result with the best weights
    added          the links that were added, in order
    options        the weight schemes compared on the result, the best first
    reason         why it is not possible, or None
    """

    before: Certificate
    after: Certificate
    added: tuple[Edge, ...]
    options: tuple[Option, ...]
    reason: str | None

    @property
    def network(self) -> Network:
        """The designed network, with its weights and without liars."""
        return self.after.network.with_byzantine("none")

    def __str__(self) -> str:
        lines = ["Before", str(self.before), ""]
        if self.added:
            lines.append(
                f"Add {len(self.added)} links, in this order: " + ", ".join(self._link(edge) for edge in self.added)
            )
        lines.append("Weights on the result, the best first:")
        for option in self.options:
            told = option.certificate
            rate = "" if told.rate is None else f", lambda at least {told.rate:.4f}"
            lines.append(f"  {option.weights}: {ANSWERS[told.verdict.status]}, h at most {told.h_max:.4f}{rate}")
        if self.reason is not None:
            lines.append(f"Not possible: {self.reason}.")
        return "\n".join([*lines, "", f"After, with {self.options[0].weights} weights", str(self.after)])

    def _link(self, edge: Edge) -> str:
        return "-".join(self.before.network.label(node) for node in edge)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "added": [list(edge) for edge in self.added],
            "options": [
                {"weights": option.weights, "holds": told.holds, "h_max": told.h_max, "lambda": told.rate}
                for option in self.options
                for told in [option.certificate]
            ],
            "possible": self.after.holds,
            "reason": self.reason,
        }


def suggest(
    network: Network | None = None,
    *,
    f: int,
    nodes: int | None = None,
    rule: str = "ios",
    guarantee: str = "fair",
    rho: float = RHO,
    schemes: tuple[str, ...] = ("metropolis-hastings", "best-constant"),
) -> Design:
    """Links and weights with which `rule` tolerates any f liars per neighbourhood; from a network or a ring of `nodes`.

    guarantee  "bounded", "fair" or "agrees"
    rho        the limit on the contraction constant
    schemes    weights to compare: "metropolis-hastings", "best-constant", "fastest" (needs byzmesh[design])

    >>> plan = suggest(nodes=10, f=1)
    >>> plan.before.holds, plan.after.holds, len(plan.added)
    (False, True, 14)
    """
    start = _start(network, nodes)
    whole("f", f, 1, start.n - 2, f"liars among {start.n} nodes")
    choice("guarantee", guarantee, ("bounded", "fair", "agrees"))
    for scheme in schemes:
        choice("scheme", scheme, SCHEMES)
    wanted = Wanted(make_rule(rule), f, guarantee, rho)
    before = wanted.certificate(start)
    reason = wanted.impossible(start.n)
    grown = start
    added: tuple[Edge, ...] = ()
    options = [Option(scheme, wanted.certificate(_weighted(start, scheme))) for scheme in schemes]
    if reason is None and not before.holds and not any(option.certificate.holds for option in options):
        grown, added = _grown(start, wanted)  # other weights are cheaper than links
        options = [Option(scheme, wanted.certificate(_weighted(grown, scheme))) for scheme in schemes]
    options.sort(key=_preference)
    if reason is None and not options[0].certificate.holds:
        reason = "no such links were found; the rule's certificate still fails"
    return Design(before=before, after=options[0].certificate, added=added, options=tuple(options), reason=reason)


@dataclass(frozen=True)
class Wanted:
    """The guarantee that the network must have."""

    rule: Rule
    f: int
    guarantee: str
    rho: float

    @property
    def declared(self) -> Contraction:
        """The rule's bound in terms of h."""
        if self.rule.contraction is None or self.rule.contraction.of_h is None:
            raise ConfigError(
                f"rule {self.rule.name} declares no bound in terms of the weight of lies; design for ios, for example"
            )
        return self.rule.contraction

    def certificate(self, network: Network) -> Certificate:
        """The certificate of a network, without a search."""
        return certify(network, self.rule, self.f, guarantee=self.guarantee, rho=self.rho, search=0)

    def moved(self, h: Floats) -> Floats:
        """The most that lies of weight h move a worker; infinite where nothing is proved."""
        if self.declared.of_h is None:
            return np.full(len(h), np.inf)
        bound = self.declared.of_h(h)
        return np.where(np.isnan(bound), np.inf, bound)

    def impossible(self, n: int) -> str | None:
        """Why even the complete graph, which gives every link its smallest weight, fails; None if it does not."""
        if self._complete(n):
            return None
        least = n
        while not self._complete(least):
            least += max(1, least // 8) if least > 10 * n else 1
        return f"even the complete graph of {n} nodes fails with {self.f} liars; about {least:,} nodes are needed"

    def _complete(self, n: int) -> bool:
        """Whether equal weights on all links suffice: h = f / n, and two rows of W differ by as much."""
        h = self.f / n
        moved = float(self.moved(np.array([h]))[0])
        return moved <= self.rho and (self.guarantee != "agrees" or h + 2.0 * moved < 1.0)


def _preference(option: Option) -> tuple[bool, float, float]:
    """Those that hold first, then the smallest bound on rho, then the fastest mixing."""
    told = option.certificate
    rate = 0.0 if told.rate is None else told.rate
    return not told.holds, math.inf if told.rho_bound is None else told.rho_bound, -rate


def _start(network: Network | None, nodes: int | None) -> Network:
    if (network is None) == (nodes is None):
        raise ConfigError("give either a network to improve or nodes, how many to link")
    if network is None:
        return make_network("ring", n=nodes)
    return network.with_byzantine("none")


def _grown(start: Network, wanted: Wanted) -> tuple[Network, tuple[Edge, ...]]:
    """The graph with links added until the certificate holds or nothing is left to link."""
    links = start.adjacency.copy()
    added: list[Edge] = []
    while True:
        network = Network.from_adjacency(links, name=start.name, names=start.names)
        edge = _next(network, wanted)
        if edge is None:
            return network, tuple(added)
        links[edge], links[edge[::-1]] = True, True
        added.append(edge)


def _next(network: Network, wanted: Wanted) -> Edge | None:
    """The next link to add; None if none is needed or possible."""
    h = cut_weight(network, np.full(network.n, wanted.f), wanted.declared.equal)
    poor = network.degree <= wanted.f  # a rule must keep at least one neighbour
    if poor.any() or (wanted.moved(h) > wanted.rho).any():
        return _between(network.adjacency, np.where(poor, 2.0 + wanted.f - network.degree, h))
    if wanted.guarantee == "bounded":
        return None
    question = ask(network, wanted.f)
    cut = connectivity(question).cut
    if cut is not None:
        return _across(network.adjacency, cut.tolist())
    if wanted.guarantee == "agrees" and network.n <= LARGE and not wanted.certificate(network).holds:
        return _in_common(question)
    return None


def _in_common(question: Question) -> Edge | None:
    """The two unlinked workers whose neighbourhoods have the least in common."""
    network = question.network
    near = (network.adjacency | np.eye(network.n, dtype=bool)).astype(np.int64)
    common = near @ near
    common[near.astype(bool)] = network.n + 1
    i, j = np.unravel_index(int(common.argmin()), common.shape)
    return None if common[i, j] > network.n else (int(min(i, j)), int(max(i, j)))


def _between(links: Booleans, danger: Floats) -> Edge | None:
    """A new link at the most endangered node, to the most endangered node not linked to it.

    Among equals the one farthest along the Fiedler vector: the link that raises the connectivity most, to first order.
    """
    open_ends = ~links & ~np.eye(len(links), dtype=bool)
    free = np.flatnonzero(open_ends.any(axis=1))
    if len(free) == 0:
        return None
    node = int(free[np.argmax(danger[free])])
    others = np.flatnonzero(open_ends[node])
    vector = fiedler_vector(links.astype(np.float64))
    apart = np.abs(vector[others] - vector[node]).round(9)
    other = int(others[np.lexsort((others, -apart, -danger[others].round(9)))[0]])
    return min(node, other), max(node, other)


def _across(links: Booleans, cut: list[int]) -> Edge | None:
    """A link across a node cut, between the poorest nodes of two sides."""
    import networkx

    graph = networkx.from_numpy_array(links)
    graph.remove_nodes_from(cut)
    sides = [
        sorted(side, key=lambda node: (int(links[node].sum()), node)) for side in networkx.connected_components(graph)
    ]
    first, second = sides[0][0], sides[1][0]
    return min(first, second), max(first, second)


def _weighted(network: Network, scheme: str) -> Network:
    return network.with_weights(fastest_mixing(network.adjacency) if scheme == "fastest" else scheme)


def fastest_mixing(adjacency: Booleans) -> Floats:
    """(n, n) the symmetric nonnegative weights that mix fastest, by the FDLA semidefinite programme through cvxpy."""
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra("design", "fastest mixing by FDLA") from None
    n = len(adjacency)
    matrix: Any = cvxpy.Variable((n, n), symmetric=True)
    absent = (~adjacency & ~np.eye(n, dtype=bool)).astype(np.float64)
    rules = [matrix @ np.ones(n) == np.ones(n), matrix >= 0.0, cvxpy.multiply(absent, matrix) == 0.0]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sigma_max(matrix - np.full((n, n), 1.0 / n))), rules).solve()
    if matrix.value is None:
        raise ConfigError(f"the solver found no fastest weights for this graph of {n} nodes; choose another scheme")
    weight = np.where(adjacency, np.maximum((matrix.value + matrix.value.T) / 2.0, 0.0), 0.0)
    # the solver's rounding must not make a worker's own weight negative
    weight /= max(1.0, float(weight.sum(axis=1).max()))
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    return np.asarray(weight, np.float64)

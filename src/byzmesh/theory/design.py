"""Design: weights and links that turn a failing certificate into a passing one.

Links are added one at a time, the cheapest way to help: between the two most endangered workers (largest h) that are
not linked yet, of equals the pair that connects the graph best; then across smallest cuts until no f liars can separate
the honest. Under Metropolis-Hastings weights a worker with 3 f neighbours or more always has h < 1/3, so n nodes never
need more than about 3 f n / 2 links. Weights compared on the result: Metropolis-Hastings, best constant, and fastest
mixing by the FDLA semidefinite programme (the extra `design`),

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
from byzmesh.rules.contraction import THIRD, below
from byzmesh.rules.ios import theorem_3
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.certify import certify
from byzmesh.theory.contraction import cut_weight, first_size, rca_limit
from byzmesh.theory.mixing import mixing_rate, rho_star, to_own
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

    before, after  certificates of the start and of the result with the best weights; f liars in the worst places
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
            lines.append(f"Add {len(self.added)} links, in this order: " + ", ".join(f"{i}-{j}" for i, j in self.added))
        lines.append("Weights on the result, the best first:")
        for option in self.options:
            told = option.certificate
            state = "holds" if told.holds else "fails"
            lines.append(f"  {option.weights}: {state}, h at most {told.h_max:.4f}, lambda {told.rate:.4f}")
        if self.reason is not None:
            lines.append(f"Not possible: {self.reason}.")
        return "\n".join([*lines, "", f"After, with {self.options[0].weights} weights", str(self.after)])

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
    guarantee: str = "rdsa",
    schemes: tuple[str, ...] = ("metropolis-hastings", "best-constant"),
) -> Design:
    """Links and weights with which `rule` bears f liars anywhere; start from a network, or from a ring of `nodes`.

    guarantee  "rdsa" or "rca"
    schemes    weights to compare: "metropolis-hastings", "best-constant", "fastest" (needs byzmesh[design])

    >>> plan = suggest(nodes=10, f=1)
    >>> plan.before.holds, plan.after.holds, len(plan.added)
    (False, True, 4)
    """
    start = _start(network, nodes)
    whole("f", f, 1, start.n - 2, f"liars among {start.n} nodes")
    choice("guarantee", guarantee, ("rdsa", "rca"))
    for scheme in schemes:
        choice("scheme", scheme, SCHEMES)
    before = certify(start, rule, f, guarantee=guarantee, search=0)
    reason = _impossible(start.n, f, guarantee)
    grown, added = (start, ()) if before.holds or reason is not None else _grown(start, f, guarantee)
    options = [
        Option(scheme, certify(_weighted(grown, scheme), rule, f, guarantee=guarantee, search=0)) for scheme in schemes
    ]
    options.sort(key=_preference)
    if reason is None and not options[0].certificate.holds:
        reason = "no such links were found; the rule's certificate still fails"
    return Design(before=before, after=options[0].certificate, added=added, options=tuple(options), reason=reason)


def _preference(option: Option) -> tuple[bool, float, float]:
    """Those that hold first, then the smallest bound on rho, then the fastest mixing."""
    told = option.certificate
    return not told.holds, math.inf if told.rho_bound is None else told.rho_bound, -told.rate


def _start(network: Network | None, nodes: int | None) -> Network:
    if (network is None) == (nodes is None):
        raise ConfigError("give either a network to improve or nodes, how many to link")
    if network is None:
        return make_network("ring", n=nodes)
    return network.with_byzantine("none")


def _impossible(n: int, f: int, guarantee: str) -> str | None:
    """Why even the complete graph fails, which gives every link its least weight; None if it does not."""
    h = f / n
    if h >= THIRD:
        return f"{f} liars among {n} nodes are a third or more; use at least {3 * f + 1} nodes"
    if guarantee == "rca" and theorem_3(np.array([h]))[0] >= rho_star(1.0, n - f):
        least = first_size(lambda each: float(theorem_3(np.array([f * each]))[0]), True)
        return f"even the complete graph of {n} nodes is not RCA with {f} liars; about {least:,} nodes are needed"
    return None


def _limit(network: Network, f: int, guarantee: str) -> float:
    if guarantee == "rdsa":
        return THIRD
    return rca_limit(rho_star(mixing_rate(to_own(network)), network.n - f))


def _grown(start: Network, f: int, guarantee: str) -> tuple[Network, tuple[Edge, ...]]:
    """The graph with links added until every h is below its limit and no f nodes separate the rest."""
    links = start.adjacency.copy()
    added: list[Edge] = []
    while True:
        network = Network.from_adjacency(links, name=start.name)
        h = cut_weight(network, np.full(network.n, f))
        poor = network.degree <= f  # a rule must keep at least one neighbour
        if (below(h, _limit(network, f, guarantee)) & ~poor).all():
            edge = _across(links, f)
        else:
            edge = _between(links, np.where(poor, 2.0 + f - network.degree, h))
        if edge is None:
            return network, tuple(added)
        links[edge], links[edge[::-1]] = True, True
        added.append(edge)


def _between(links: Booleans, danger: Floats) -> Edge | None:
    """A new link at the most endangered node, to the most endangered node not linked to it.

    Of equals the one farthest along the Fiedler vector: the link that raises the connectivity most, to first order.
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


def _across(links: Booleans, f: int) -> Edge | None:
    """A link across a smallest node cut of at most f nodes; None if there is no such cut."""
    import networkx

    graph = networkx.from_numpy_array(links)
    cut = networkx.minimum_node_cut(graph) if networkx.is_connected(graph) else set()
    if len(cut) > f or int(links.sum()) == len(links) * (len(links) - 1):
        return None
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
    weight /= max(1.0, float(weight.sum(axis=1).max()))  # the solver's rounding must not make own weights negative
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    return np.asarray(weight, np.float64)

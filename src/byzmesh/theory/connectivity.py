"""Do the honest workers stay connected, whoever lies?

Liars given: one traversal of the honest graph. Liars anywhere, k in total: the graph must be (k + 1)-connected, which
is decided by maximum flows (Menger's theorem, networkx) on a sparse certificate of the graph: k + 1 breadth-first
forests, each from the links that the previous ones left over, have the same cuts of at most k nodes (Cheriyan, Kao and
Thurimella 1993). Liars anywhere, f_n per neighbourhood: a 0/1 programme looks for honest camps S and T without a link
between them such that every honest worker has at most f_n of the rest as neighbours,

    s_i + t_i <= 1,   s_i + t_j <= 1 for linked i, j,   sum_{j in N_i} (1 - s_j - t_j) <= f_i + d_i (1 - s_i - t_i)

and HiGHS proves that there are none, finds some, or runs out of time: then the answer is unknown. Five cases are
decided first: a node whose neighbours may all lie is cut off; nobody is if every worker keeps so many honest neighbours
that two camps would need more nodes than there are, nor if any two nodes are linked or have more neighbours in common
than can lie, nor if mu_2 > max_n f_n, with mu_2 of the Laplacian L in which every link counts 1: for camps S and T the
vector y that is 1 / |S| on S, -1 / |T| on T and 0 at the liars has sum 0 and y^T L y = sum_n b_n y_n^2 <=
max_n f_n ||y||^2 with b_n lying neighbours of n, so mu_2 <= max_n f_n; nor if the graph is connected and has a detour
around every node (detours.py). Detours, flows and the programme are for networks of at most 4,096 nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.networks import Links, Network
from byzmesh.networks.spectrum import SLACK, extreme_eigenvalues
from byzmesh.sparse import DENSE
from byzmesh.theory.detours import without_detour
from byzmesh.theory.mixing import strongly_connected
from byzmesh.theory.question import Question
from byzmesh.theory.verdict import Verdict
from byzmesh.types import Booleans, Integers

QUICK = 64
"""On graphs of up to this many nodes flows are found at once."""


@dataclass(frozen=True)
class Connectivity:
    """The verdict and, if it is refuted, liars that disconnect the honest workers."""

    verdict: Verdict
    cut: Integers | None = None


def connectivity(question: Question, *, seconds: float = 10.0) -> Connectivity:
    """Whether the honest workers reach each other without a liar in between, in every placement in question.

    seconds  for the programme; 0: only what is decided at once

    >>> from byzmesh.networks import network
    >>> from byzmesh.theory.question import ask
    >>> connectivity(ask(network("two-castle", k=6), 3)).verdict.status
    'proved'
    >>> connectivity(ask(network("dumbbell", k=4, bridge=1), 1)).cut.tolist()
    [3]
    """
    network = question.network
    if not question.anywhere:
        if network.honest_connected:
            return Connectivity(Verdict("proved", "the honest workers reach each other without a liar in between"))
        reason = "the honest workers do not reach each other without a liar in between"
        return Connectivity(Verdict("refuted", reason), network.byzantine)
    if not network.honest_connected:
        return Connectivity(Verdict("refuted", "the graph is in pieces even if nobody lies"), network.byzantine)
    cut = _cut_off(question)
    if cut is None and _crowded(question):
        return Connectivity(Verdict("proved", "too many honest neighbours are left for two camps"))
    if cut is None and _close(question):
        return Connectivity(Verdict("proved", "any two workers are linked or have an honest neighbour in common"))
    if cut is None and (rigid := _rigid(question)):
        return Connectivity(Verdict("proved", rigid))
    if cut is None and network.n <= DENSE and not without_detour(question):
        return Connectivity(Verdict("proved", "there is a detour around every worker"))
    most = int(question.f.max()) if question.total is None else question.total
    if cut is None and network.n <= (QUICK if seconds == 0.0 else DENSE):
        found = smallest_cut(network.adjacency, most)
        if found is not None and question.admits(found):
            cut = found
        elif found is None and question.total is not None:
            return Connectivity(Verdict("proved", f"the graph is {most + 1}-connected"))
    if cut is not None:
        return _cut_by(network, np.array(sorted(cut), np.int64))
    if seconds == 0.0:
        return Connectivity(
            Verdict("unknown", "whether liars can cut the honest workers off is decided when asked for")
        )
    if network.n > DENSE:
        reason = f"whether liars can cut the honest workers off is decided for up to {DENSE} nodes, not {network.n}"
        return Connectivity(Verdict("unknown", reason))
    return _by_programme(question, seconds)


def _cut_by(network: Network, liars: Integers) -> Connectivity:
    names = ", ".join(network.label(node) for node in liars.tolist())
    return Connectivity(Verdict("refuted", f"liars at {names} leave the honest workers in pieces"), liars)


def _cut_off(question: Question) -> list[int] | None:
    """Neighbours of one node that may all lie and cut it off from honest workers elsewhere; None if there are none."""
    network = question.network
    for node in np.flatnonzero(question.most >= network.degree).tolist():
        near: list[int] = network.neighbours(node).tolist()
        if len(near) < network.n - 1 and question.admits(near):
            return near
    return None


def _crowded(question: Question) -> bool:
    """Whether two camps, each of a worker and its remaining honest neighbours, need more nodes than there are."""
    camp = int((question.network.degree - question.most).min()) + 1
    return 2 * camp > question.network.n


def _close(question: Question) -> bool:
    """Whether any two nodes are linked or have more neighbours in common than can lie next to one of them."""
    rows, n = question.network.links, question.network.n
    first = rows.of(0)
    if n > DENSE or 1 + len(first) + rows.degree[first].sum() < n:  # too few are near enough to node 0
        return False
    links = question.network.adjacency
    common = links.astype(np.float64) @ links
    close = links | (common > np.minimum.outer(question.most, question.most)) | np.eye(n, dtype=bool)
    return bool(close.all())


def _rigid(question: Question) -> str | None:
    """Why the links are too many for liars to cut, by their Laplacian; None if they may not be."""
    links, most = question.network.links, int(question.most.max())
    if links.n < 2 or links.n * int(links.degree.min()) <= (links.n - 1) * most:  # mu_2 <= n / (n - 1) min d
        return None
    low, _ = extreme_eigenvalues(links.matrix(np.full(len(links.sender), -1.0), links.degree.astype(np.float64)))
    enough = low > most + SLACK * int(links.degree.max())
    return f"mu_2 of the links is {low:.4g}, more than the {most} liars beside a worker" if enough else None


def sparse_certificate(adjacency: Booleans, count: int) -> Booleans:
    """(n, n) `count` breadth-first forests, each from the links left by the previous ones: at most count (n - 1) links.

    >>> int(sparse_certificate(~np.eye(6, dtype=bool), 2).sum()) // 2
    9
    """
    left = adjacency.copy()
    kept = np.zeros_like(left)
    n = len(left)
    for _ in range(count):
        seen = np.zeros(n, bool)
        for root in range(n):
            if seen[root]:
                continue
            seen[root] = True
            queue = [root]
            for node in queue:
                fresh = np.flatnonzero(left[node] & ~seen)
                seen[fresh] = True
                queue.extend(fresh.tolist())
                kept[node, fresh] = kept[fresh, node] = True
        left &= ~kept
    return kept


def smallest_cut(adjacency: Booleans, most: int) -> list[int] | None:
    """At most `most` nodes whose removal disconnects the others; None if there are none.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
    >>> smallest_cut(path, 1), smallest_cut(path, 0)
    ([1], None)
    """
    import networkx
    from networkx.algorithms.connectivity import build_auxiliary_node_connectivity, minimum_st_node_cut
    from networkx.algorithms.flow import build_residual_network, edmonds_karp

    n = len(adjacency)
    links = sparse_certificate(adjacency, most + 1)
    graph = networkx.from_numpy_array(links)
    if not networkx.is_connected(graph):
        return []
    auxiliary = build_auxiliary_node_connectivity(graph)
    residual = build_residual_network(auxiliary, "capacity")
    names = auxiliary.graph["mapping"]

    def separated(first: int, second: int) -> list[int] | None:
        flow = edmonds_karp(
            auxiliary, f"{names[first]}B", f"{names[second]}A", residual=residual, cutoff=most + 1
        ).graph["flow_value"]
        if flow > most:
            return None
        return sorted(minimum_st_node_cut(graph, first, second, auxiliary=auxiliary, residual=residual))

    # A smallest cut either excludes the first node and separates it from another, or contains it and separates two of
    # its neighbours (a smallest cut needs each of its nodes).
    first = int(links.sum(axis=1).argmin())
    near = np.flatnonzero(links[first]).tolist()
    pairs = [(first, other) for other in range(n) if other != first and not links[first, other]]
    pairs += [(i, j) for number, i in enumerate(near) for j in near[number + 1 :] if not links[i, j]]
    for i, j in pairs:
        if not adjacency[i, j]:
            cut = separated(i, j)
            if cut is not None:
                return cut
    return None


def _by_programme(question: Question, seconds: float) -> Connectivity:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, eye_array, hstack, vstack

    network = question.network
    n = network.n
    i, j = network.links.receiver, network.links.sender
    rows = np.arange(len(i))
    one = np.ones(len(i))
    apart = hstack([coo_array((one, (rows, i)), (len(i), n)), coo_array((one, (rows, j)), (len(i), n))])
    beyond = network.links.matrix(-one, network.degree.astype(np.float64))
    crowd = hstack([beyond, beyond])  # d_i (s_i + t_i) - sum_j (s_j + t_j) <= f_i
    both = hstack([eye_array(n), eye_array(n)])
    camps = coo_array(np.kron(-np.eye(2), np.ones((1, n))))
    parts = [both, apart, crowd, camps]
    upper = [np.ones(n), np.ones(len(i)), question.f.astype(np.float64), np.full(2, -1.0)]
    if question.total is not None:
        parts.append(coo_array(-np.ones((1, 2 * n))))
        upper.append(np.array([float(question.total - n)]))
    result = milp(
        np.zeros(2 * n),
        constraints=LinearConstraint(vstack(parts).tocsr(), -np.inf, np.concatenate(upper)),
        integrality=np.ones(2 * n),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": float(seconds)},
    )
    if result.x is not None:
        liars = np.flatnonzero(np.round(result.x[:n] + result.x[n:]) == 0)
        if question.admits(liars.tolist()) and not network.with_byzantine(liars.tolist()).honest_connected:
            return _cut_by(network, liars)
    if result.status == 2:  # proved infeasible
        return Connectivity(Verdict("proved", "no liars that f allows leave the honest workers in pieces"))
    return Connectivity(
        Verdict("unknown", f"whether liars can cut the honest workers off was not decided in {seconds:g} s")
    )


def leading_groups(links: Links) -> int:
    """How many groups of workers that all hear each other hear nobody else; a single one is in time heard by everybody.

    >>> leading_groups(Links.of_pairs([1, 2], [0, 1], n=3)), leading_groups(Links.of_pairs([1, 1], [0, 2], n=3))
    (1, 2)
    """
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(
        links.matrix(np.ones(len(links.sender)), np.zeros(links.n)), directed=True, connection="strong"
    )
    outward = group[links.receiver] != group[links.sender]
    return int(count) - len(np.unique(group[links.receiver[outward]]))


def weights_connect(question: Question) -> bool:
    """Whether every link has a positive weight in both directions, so that W uses every link."""
    network = question.network
    if not question.anywhere:
        return strongly_connected(network.sparse_mixing(network.honest))
    return bool((network.link_weight > 0.0).all())

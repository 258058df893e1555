"""Links, one at a time where they help most, and then without those that turned out not to be needed.

1. While a worker is in danger (`Wanted.danger`): a link from the one in most danger, to another in danger if possible.
2. While liars can cut the honest workers: a link across the cut. If no cut is known and none is excluded: a link that
   makes a detour around a worker.
3. If the honest workers must agree: a link between the two workers with the least in common.

Among candidates the cheapest per worker in danger that it helps comes first (`by="value"`), or simply the cheapest
(`by="price"`); among these, on small networks the one that connects the graph best to first order (Fiedler vector), on
large ones the one between nodes with the most neighbours in common, which makes detours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byzmesh.networks import Network, fiedler_vector
from byzmesh.theory.consensus import LARGE
from byzmesh.theory.design.prices import Prices
from byzmesh.theory.design.schemes import weighted
from byzmesh.theory.design.wanted import PROGRAMME, Wanted
from byzmesh.theory.detours import MOST_NEIGHBOURS, close_pairs, gap, pieces, without_detour
from byzmesh.theory.question import ask
from byzmesh.types import Booleans, Floats, Integers

Edge = tuple[int, int]
Tell = Callable[[str], None]

PRUNED = 64
"""On up to this many nodes every added link is tried without."""
EXCHANGED = 10
"""On up to this many nodes it is also tried whether another link would make more expensive ones superfluous."""
BY = ("value", "price")


class Stuck(Exception):
    """No allowed link helps."""


def grown(
    start: Network, wanted: Wanted, prices: Prices, schemes: tuple[str, ...], tell: Tell, by: str
) -> tuple[Edge, ...]:
    """The links with which the guarantee holds, in the order in which they were chosen; raises `Stuck`."""
    added: list[Edge] = []

    def tell_more(text: str) -> None:
        tell(f"{len(added)} links added, {text}")

    network = start
    while network.n > PRUNED or not holds(network, wanted, schemes):
        more = _next(network, wanted, prices, by, tell_more)
        if not more:
            break
        added.extend(more)
        network = with_links(start, added)
    return needed(start, added, wanted, prices, schemes, tell) if start.n <= PRUNED else tuple(added)


def with_links(network: Network, added: Sequence[Edge]) -> Network:
    """The network with more links, and Metropolis-Hastings weights."""
    links = network.adjacency.copy()
    for i, j in added:
        links[i, j] = links[j, i] = True
    return Network.from_adjacency(links, name=network.name, names=network.names, positions=network.positions)


def holds(network: Network, wanted: Wanted, schemes: tuple[str, ...]) -> bool:
    """Whether the guarantee holds with one of the schemes; `fastest` is only compared in the end."""
    tried = [weighted(network, scheme, wanted)[1] for scheme in schemes if scheme != "fastest"]
    if wanted.guarantee == "agrees":
        return any(wanted.certificate(each).holds for each in tried)
    if (wanted.danger(network) >= 1.0).any() or not any(wanted.fits(wanted.cut_weight(each)).all() for each in tried):
        return False
    return wanted.guarantee == "bounded" or wanted.connected(network).verdict.status == "proved"


def needed(
    start: Network, added: Sequence[Edge], wanted: Wanted, prices: Prices, schemes: tuple[str, ...], tell: Tell
) -> tuple[Edge, ...]:
    """The links without those that can be left out; on small networks also after cheaper ones replaced some of them."""
    kept = _pruned(start, added, wanted, prices, schemes, tell)
    if start.n > EXCHANGED:
        return kept
    for other in sorted(_pairs(np.isfinite(prices.cost) & ~with_links(start, kept).adjacency), key=prices.of):
        if other[0] != other[1] and prices.of(other) < max(map(prices.of, kept), default=0.0):
            changed = _pruned(start, [other, *kept], wanted, prices, schemes, tell)
            fits = (with_links(start, changed).degree <= prices.most).all()
            if fits and sum(map(prices.of, changed)) < sum(map(prices.of, kept)) * (1.0 - 1e-9):
                return needed(start, changed, wanted, prices, schemes, tell)
    return kept


def _pruned(
    start: Network, added: Sequence[Edge], wanted: Wanted, prices: Prices, schemes: tuple[str, ...], tell: Tell
) -> tuple[Edge, ...]:
    """The links without those that can be left out, the most expensive tried first, the latest of equal ones."""
    kept = list(added)
    order = sorted(range(len(added)), key=lambda place: (-prices.of(added[place]), -place))
    for tried, place in enumerate(order, 1):
        tell(f"{len(kept)} links suffice; trying without each, {tried} of {len(added)}")
        fewer = [edge for edge in kept if edge != added[place]]
        if holds(with_links(start, fewer), wanted, schemes):
            kept = fewer
    return tuple(kept)


def _next(network: Network, wanted: Wanted, prices: Prices, by: str, tell: Tell) -> list[Edge]:
    """The next links to add: one, or several that do not touch; none if nothing is missing."""
    links = network.adjacency
    allowed = prices.allowed(links)
    danger = wanted.danger(network)
    if danger.any():
        tell(f"{int((danger > 0.0).sum())} workers still in danger")
        for node in np.argsort(-danger, kind="stable")[: int((danger > 0.0).sum())].tolist():
            # a link of its own, or else one that makes a neighbour weigh less to it
            for ends in ([node], network.neighbours(node)):
                pairs = [(int(end), int(other)) for end in ends for other in np.flatnonzero(allowed[end])]
                if pairs:
                    return [_chosen(network, pairs, danger, prices, by)]
        raise Stuck(f"{network.label(int(danger.argmax()))} needs another link, and none is allowed")
    if wanted.guarantee == "bounded":
        return []
    told = wanted.connected(network)
    if told.cut is not None:
        tell(f"{len(told.cut)} liars can still cut the network")
        return [_across(network, told.cut, allowed, danger, prices, by)]
    if told.verdict.status != "proved":
        return _detours(network, wanted, allowed, danger, prices, by, tell)
    if wanted.guarantee == "fair":
        return []
    if network.n > LARGE:
        raise Stuck(f"agreement is not decided on more than {LARGE} nodes")
    tell("agreement is not proved yet")
    near = (links | np.eye(network.n, dtype=bool)).astype(np.int64)
    common = np.where(allowed, near @ near, network.n + 1)
    if common.min() > network.n:
        raise Stuck("no link is left that is allowed")
    return [_chosen(network, _pairs(common == common.min()), danger, prices, by)]


def _pairs(matrix: Booleans) -> list[Edge]:
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))]


def _across(network: Network, cut: Integers, allowed: Booleans, danger: Floats, prices: Prices, by: str) -> Edge:
    """A link between two of the pieces that a cut leaves."""
    left = np.setdiff1d(np.arange(network.n), cut)
    side = np.full(network.n, -1)
    for number, piece in enumerate(pieces(network.adjacency[np.ix_(left, left)])):
        side[left[piece]] = number
    apart = allowed & (side[:, None] != side[None, :]) & (side >= 0)[:, None] & (side >= 0)[None, :]
    pairs = _pairs(apart)
    if not pairs:
        names = ", ".join(network.label(node) for node in cut.tolist())
        raise Stuck(f"no link is allowed between the pieces that liars at {names or 'no node'} leave")
    return _chosen(network, pairs, danger, prices, by)


def _detours(
    network: Network, wanted: Wanted, allowed: Booleans, danger: Floats, prices: Prices, by: str, tell: Tell
) -> list[Edge]:
    """Links between neighbours of nodes without a detour; for nodes that no other of these links touches."""
    question = ask(network, wanted.f)
    bare, close = without_detour(question), close_pairs(question)
    tell(f"{len(bare)} workers without a detour around them")
    chosen: list[Edge] = []
    touched = np.zeros(network.n, bool)
    for node in bare:
        near = network.neighbours(node)
        if touched[node] or touched[near].any():
            continue
        among = np.ix_(near, near)
        helps = None if len(near) > MOST_NEIGHBOURS else gap(question, near)
        apart = np.zeros_like(allowed)
        apart[among] = allowed[among] & (~close[among] if helps is None else helps)
        pairs = _pairs(apart)
        if pairs:
            chosen.append(_chosen(network, pairs, danger, prices, by))
            touched[[node, *chosen[-1]]] = True
    if not chosen:
        raise Stuck(f"no link is allowed that would make a detour around {network.label(bare[0])}")
    return chosen


def _chosen(network: Network, pairs: list[Edge], danger: Floats, prices: Prices, by: str) -> Edge:
    """The best of the candidates."""
    first, second = np.array(pairs).T
    cost = prices.cost[first, second]
    helped = np.maximum((danger[first] > 0.0).astype(int) + (danger[second] > 0.0), 1)
    price = (cost if by == "price" else cost / helped).round(9)
    need = -(danger[first] + danger[second]).round(9)
    links = network.adjacency
    alike: Floats
    if network.n <= PROGRAMME:
        vector = fiedler_vector(links.astype(np.float64))
        alike = -np.abs(vector[first] - vector[second]).round(9)
    else:
        alike = -(links[first] & links[second]).sum(axis=1).astype(np.float64)
    degrees = network.degree[first] + network.degree[second]
    best = np.lexsort((second, first, degrees, alike, -helped, need, price))[0]
    return tuple(sorted(pairs[best]))

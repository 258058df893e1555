"""`suggest`: the weights and links with which a network tolerates its liars.

Weights come before links: if one of the schemes makes the certificate hold on the network as it is, no link is added.
Otherwise links are added greedily (growth.py) and then each is tried without. What is left is minimal, since no link of
it can be left out, but nobody has looked for the cheapest of all sets of links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import choice, fraction, whole
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks import network as make_network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.certify import RHO
from byzmesh.theory.design.growth import BY, PRUNED, Edge, Stuck, Tell, grown, with_links
from byzmesh.theory.design.prices import Pair, Prices, link_words, prices
from byzmesh.theory.design.schemes import SCHEMES, weighted
from byzmesh.theory.design.wanted import Wanted
from byzmesh.theory.verdict import ANSWERS

SCALE = 0.5
"""By default weights may be halved before links are added: lies then weigh half, and mixing takes twice as long."""


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
    costs          what each of them costs; None if no costs were given
    options        the weights compared on the result, the best first
    minimal        whether every added link was tried without, and is needed
    reason         why there is none, or None
    """

    before: Certificate
    after: Certificate
    added: tuple[Edge, ...]
    costs: tuple[float, ...] | None
    options: tuple[Option, ...]
    minimal: bool
    reason: str | None

    @property
    def network(self) -> Network:
        """The designed network, with its weights and without liars."""
        return self.after.network.with_byzantine("none")

    def __str__(self) -> str:
        lines = ["Before", str(self.before), ""]
        if self.added:
            links = self._links()
            if self.costs is not None:
                links = [f"{link} ({cost:g})" for link, cost in zip(links, self.costs, strict=True)]
            total = "" if self.costs is None else f" for {sum(self.costs):g}"
            claim = "each of them is needed; another choice may be cheaper" if self.minimal else "fewer may do"
            count = f"{len(links)} {'link' if len(links) == 1 else 'links'}"
            lines.append(f"Add {count}{total} (chosen greedily: {claim}): " + ", ".join(links))
        elif self.reason is None and not self.before.holds:
            lines.append("No link is needed: other weights suffice.")
        lines.append("Weights on the result, the best first:")
        for option in self.options:
            told = option.certificate
            rate = "" if told.rate is None or told.rate <= 0.0 else f", lambda at least {told.rate:.4f}"
            lines.append(f"  {option.weights}: {ANSWERS[told.verdict.status]}, h at most {told.h_max:.4f}{rate}")
        if self.reason is not None:
            lines.append(f"No design: {self.reason}.")
        return "\n".join([*lines, "", f"After, with {self.options[0].weights} weights", str(self.after)])

    def _links(self) -> list[str]:
        label = self.before.network.label
        return [link_words(label(i), label(j)) for i, j in self.added]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "added": [list(edge) for edge in self.added],
            "links": self._links(),
            "cost": None if self.costs is None else sum(self.costs),
            "minimal": self.minimal,
            "options": [
                {"weights": option.weights, "holds": told.holds, "h_max": told.h_max, "lambda": told.rate}
                for option in self.options
                for told in [option.certificate]
            ],
            "possible": self.reason is None,
            "reason": self.reason,
        }


def suggest(
    network: Network | None = None,
    *,
    f: Any,
    nodes: int | None = None,
    rule: str = "ios",
    guarantee: str = "fair",
    rho: float = RHO,
    schemes: tuple[str, ...] = SCHEMES[:3],
    scale: float = SCALE,
    cost: Mapping[Pair, float] | None = None,
    forbid: Iterable[Pair] = (),
    most_links: Any = None,
    tell: Tell = lambda text: None,
) -> Design:
    """Links and weights with which `rule` tolerates any f liars per neighbourhood; from a network or for `nodes`.

    f           liars per neighbourhood: one number, one per node or a mapping from nodes
    nodes       without a network: this many, linked in a ring; not linked at all if costs or forbidden links are given
    guarantee   "bounded", "fair" or "agrees"
    rho         the limit on the contraction constant
    schemes     weights to compare: "metropolis-hastings", "best-constant", "scaled", "fastest" (needs byzmesh[design])
    scale       of the weights "scaled": the smallest allowed
    cost        of new links by pairs of site names, "*" for any; infinite: forbidden (see prices.py). Default 1
    forbid      pairs that must not be linked
    most_links  how many links a node may have: one number, one per node or a mapping from nodes
    tell        is called with what goes on, before every step

    >>> plan = suggest(nodes=10, f=1)
    >>> plan.before.holds, plan.after.holds, len(plan.added)
    (False, True, 4)
    """
    forbid = list(forbid)
    start = start_from(network, nodes, free=cost is not None or bool(forbid))
    choice("guarantee", guarantee, ("bounded", "fair", "agrees"))
    for scheme in schemes:
        choice("scheme", scheme, SCHEMES)
    fraction("scale", scale, zero=False)
    bounds = start.bounds(f)
    whole("f", int(bounds.max()), 1, start.n - 2, f"liars among {start.n} nodes")
    least = scale if "scaled" in schemes else 1.0
    wanted = Wanted(rule=make_rule(rule), f=bounds, guarantee=guarantee, rho=rho, scale=least)
    priced = prices(start, cost, forbid, most_links)
    tell("certifying the network as it is")
    before = wanted.certificate(start)
    options: list[Option] = []
    if guarantee == "bounded" or before.connectivity.verdict:  # weights alone do not connect anybody
        options += [Option("its own", before)] if before.holds and start.weights not in schemes else []
        options += _options(start, wanted, schemes, tell)
    lonely = bool((wanted.danger(start) >= 1.0).any())  # a worker without neighbours holds, but is no use
    added: tuple[Edge, ...] = ()
    reason: str | None = None
    if lonely or not any(option.certificate.holds for option in options):
        reason = wanted.impossible(start.n)
        if reason is None:
            added, reason = _cheapest(start, wanted, priced, schemes, tell)
    if added or not options:
        options = _options(with_links(start, added), wanted, schemes, tell)
    options.sort(key=_preference)
    if reason is None and not options[0].certificate.holds:
        reason = "no such links were found; the rule's certificate still fails"
    return Design(
        before=before,
        after=options[0].certificate,
        added=added,
        costs=None if cost is None else tuple(priced.of(edge) for edge in added),
        options=tuple(options),
        minimal=reason is None and start.n <= PRUNED,
        reason=reason,
    )


def _options(network: Network, wanted: Wanted, schemes: tuple[str, ...], tell: Tell) -> list[Option]:
    """The schemes on a network; one that changes nothing about Metropolis-Hastings weights is left out."""
    made = dict(weighted(network, scheme, wanted) for scheme in schemes)
    made.pop("metropolis-hastings times 1", None)
    options = []
    for name, each in made.items():
        tell(f"certifying with {name} weights")
        options.append(Option(name, wanted.certificate(each)))
    return options


def _cheapest(
    start: Network, wanted: Wanted, priced: Prices, schemes: tuple[str, ...], tell: Tell
) -> tuple[tuple[Edge, ...], str | None]:
    """The cheapest of the greedy choices, or none and why."""
    plans: list[tuple[Edge, ...]] = []
    reasons: list[str] = []
    alike = len(np.unique(priced.cost[np.isfinite(priced.cost)])) <= 1
    for by in BY[:1] if alike else BY:
        try:
            plans.append(grown(start, wanted, priced, schemes, tell, by))
        except Stuck as stuck:
            reasons.append(str(stuck))
    if not plans:
        return (), reasons[0]
    return min(plans, key=lambda plan: (sum(map(priced.of, plan)), len(plan))), None


def _preference(option: Option) -> tuple[bool, float, float]:
    """Those that hold first, then the smallest bound on rho, then the fastest mixing."""
    told = option.certificate
    rate = 0.0 if told.rate is None else told.rate
    return not told.holds, math.inf if told.rho_bound is None else told.rho_bound, -rate


def start_from(network: Network | None, nodes: int | None, *, free: bool = False) -> Network:
    """The network to improve, without liars; for a number of nodes a ring, or with `free` nodes without links."""
    if (network is None) == (nodes is None):
        raise ConfigError("give either a network to improve or nodes, how many to link")
    if network is not None and network.directed:
        raise ConfigError("design is for links that go both ways, and this network is directed; link both")
    if network is not None:
        return network.with_byzantine("none")
    if not free:
        return make_network("ring", n=nodes)
    count = whole("nodes", nodes, 3)
    return Network.from_adjacency(np.zeros((count, count), bool), name=f"{count} nodes")

"""Designs hold, need each of their links, and keep to costs, forbidden links and limits."""

from __future__ import annotations

import importlib.util
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import rule
from byzmesh.theory.certify import certify
from byzmesh.theory.design.growth import holds, with_links
from byzmesh.theory.design.schemes import SCHEMES, fastest_mixing, scaled
from byzmesh.theory.design.suggest import Design, suggest
from byzmesh.theory.design.wanted import Wanted
from byzmesh.theory.mixing import doubly_stochastic, mixing_rate


def wanted_of(plan: Design, f: int = 1) -> Wanted:
    told = plan.before
    return Wanted(rule=rule("ios"), f=told.network.bounds(f), guarantee=told.guarantee, rho=told.limit, scale=0.5)


@pytest.mark.parametrize(("name", "f"), [("ring", 1), ("ring", 2), ("octopus", 1), ("dumbbell", 1), ("chain", 1)])
def test_a_failing_network_is_repaired(name: str, f: int) -> None:
    sizes: dict[str, dict[str, Any]] = {
        "ring": {"n": 9},
        "octopus": {"head": 5},
        "dumbbell": {"k": 5},
        "chain": {"n": 7},
    }
    start = network(name, **sizes[name])
    plan = suggest(start, f=f)
    assert not plan.before.holds
    assert plan.after.holds
    assert plan.reason is None
    assert not any(start.adjacency[edge] for edge in plan.added)
    np.testing.assert_array_equal(with_links(start, plan.added).adjacency, plan.network.adjacency)
    assert certify(plan.network, "ios", f, guarantee="fair", search=0).holds
    assert plan.minimal
    for edge in plan.added:
        rest = with_links(start, [other for other in plan.added if other != edge])
        assert not holds(rest, wanted_of(plan, f), SCHEMES[:3]), f"{edge} is not needed"


def test_weights_come_before_links() -> None:
    """A ring of 10 with chords to the third misses rho <= 1 by a little: no link is sold for that."""
    start = Network.from_edges([(i, (i + step) % 10) for i in range(10) for step in (1, 3)])
    plan = suggest(start, f=1)
    assert not plan.before.holds
    assert (plan.added, plan.after.holds) == ((), True)
    assert "No link is needed: other weights suffice." in str(plan)
    only = suggest(start, f=1, schemes=("metropolis-hastings", "scaled"))
    assert only.added == ()
    assert only.options[0].weights.startswith("metropolis-hastings times 0.9")
    assert only.after.rho_bound == pytest.approx(1.0)
    assert len(suggest(start, f=1, schemes=("metropolis-hastings",)).added) > 0


def test_own_weights_that_suffice_are_kept() -> None:
    start = scaled(network("complete", n=6), 0.4)
    plan = suggest(start, f=1, schemes=("metropolis-hastings",), rho=0.3)
    assert plan.before.holds
    assert (plan.added, plan.reason, plan.options[0].weights) == ((), None, "its own")


def test_a_passing_network_is_left_alone() -> None:
    plan = suggest(network("complete", n=11), f=2)
    assert plan.added == ()
    assert plan.before.holds
    assert {option.weights for option in plan.options} == {"metropolis-hastings", "best-constant"}


def test_what_no_graph_can_do() -> None:
    plan = suggest(nodes=9, f=3, scale=1.0)
    assert not plan.after.holds
    assert plan.reason == "even the complete graph of 9 nodes fails with 3 liars; about 16 nodes are needed"
    assert suggest(nodes=9, f=3).after.holds, "with smaller weights"
    plan = suggest(nodes=7, f=1, guarantee="agrees", scale=1.0)
    assert plan.reason == "even the complete graph of 7 nodes fails with 1 liars; about 10 nodes are needed"
    assert suggest(nodes=10, f=1, guarantee="agrees", schemes=("metropolis-hastings",)).after.holds


def prices_at_random(seed: int) -> tuple[Network, dict[tuple[str, str], float]]:
    draw = np.random.default_rng(seed)
    links = np.triu(draw.random((5, 5)) < 0.4, 1)
    cost = {(str(i), str(j)): float(draw.integers(1, 9)) for i, j in combinations(range(5), 2)}
    return Network.from_adjacency(links | links.T), cost


def cheapest(start: Network, cost: dict[tuple[str, str], float], wanted: Wanted) -> float:
    """The least that links cost with which the guarantee holds, by trying all sets."""
    pairs = [pair for pair in combinations(range(start.n), 2) if not start.adjacency[pair]]
    sets = chain.from_iterable(combinations(pairs, size) for size in range(len(pairs) + 1))
    priced = sorted((sum(cost[str(i), str(j)] for i, j in links), links) for links in sets)
    return next((total for total, links in priced if holds(with_links(start, links), wanted, SCHEMES[:3])), np.inf)


def test_greedy_is_never_below_the_cheapest_and_seldom_above() -> None:
    """By brute force over all sets of links."""
    ratios = []
    for seed in range(12):
        start, cost = prices_at_random(seed)
        plan = suggest(start, f=1, guarantee=("bounded", "fair")[seed % 2], cost=cost)
        least = cheapest(start, cost, wanted_of(plan))
        assert plan.after.holds
        assert sum(plan.costs or ()) >= least
        ratios.append(1.0 if least == 0.0 else sum(plan.costs or ()) / least)
    assert max(ratios) <= 1.5
    assert ratios.count(1.0) >= 8


def test_costs_forbidden_links_and_limits_are_kept() -> None:
    start = Network.from_edges([(i, (i + 1) % 8) for i in range(8)], name="sites")
    cost = {("*", "*"): 3.0, ("0", "*"): 50.0, ("2", "5"): 1.0}
    plan = suggest(start, f=1, cost=cost, forbid=[("1", "3"), ("7", "*")], most_links=dict.fromkeys(range(8), 4))
    assert plan.after.holds
    assert (1, 3) not in plan.added
    assert not any(7 in edge for edge in plan.added)
    assert plan.network.degree.max() <= 4
    assert plan.costs == tuple(50.0 if 0 in edge else 1.0 if edge == (2, 5) else 3.0 for edge in plan.added)
    assert f"for {sum(plan.costs):g} (chosen greedily: each of them is needed; another choice may be cheaper)" in str(
        plan
    )
    assert "cheapest" not in str(plan)
    told = plan.to_dict()
    assert (told["cost"], told["minimal"]) == (sum(plan.costs), True)


def test_what_cannot_be_built_is_said() -> None:
    plan = suggest(network("ring", n=6), f=1, forbid=[("3", "*")], most_links=2)
    assert not plan.after.holds
    assert plan.added == ()
    assert plan.reason == "no link is allowed between the pieces that liars at 0, 3 leave"
    assert f"No design: {plan.reason}." in str(plan)


def test_from_nothing_where_links_cost() -> None:
    plan = suggest(nodes=6, f=1, guarantee="bounded", cost={("0", "*"): 9.0, ("*", "*"): 1.0})
    assert plan.after.holds
    assert plan.network.degree.min() >= 2
    assert plan.costs == tuple(9.0 if 0 in edge else 1.0 for edge in plan.added)


def test_f_per_site() -> None:
    one, two = (suggest(nodes=9, f={node: (k if node == 4 else 1) for node in range(9)}) for k in (1, 3))
    assert one.after.holds and two.after.holds
    assert two.network.degree[4] >= 4
    assert len(two.added) > len(one.added)


@pytest.mark.parametrize(("f", "reach"), [(1, 2), (2, 3)])
def test_large_networks_are_proved_by_detours(f: int, reach: int) -> None:
    """A ring gets the chords with which it tolerates f liars, and says meanwhile what it does."""
    told: list[str] = []
    plan = suggest(nodes=90, f=f, tell=told.append)
    assert plan.after.holds
    assert not plan.minimal
    assert "(chosen greedily: fewer may do)" in str(plan)
    assert len(plan.added) <= 90 * reach
    assert told[0] == "certifying the network as it is"
    assert any("workers without a detour around them" in text for text in told)


def test_fastest_mixing_or_the_extra_it_needs() -> None:
    links = network("chain", n=4).adjacency
    if importlib.util.find_spec("cvxpy") is None:
        with pytest.raises(MissingExtra, match=r"byzmesh\[design\]"):
            fastest_mixing(links)
    else:
        weights = fastest_mixing(links)
        assert doubly_stochastic(weights)
        assert mixing_rate(weights) >= mixing_rate(network("chain", n=4).mixing) - 1e-6
        # the chain of 4 mixes fastest with 1/2 on every link: second eigenvalue cos(pi/4)
        assert mixing_rate(weights) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"f": 1}, "either a network to improve or nodes"),
        ({"f": 0, "nodes": 9}, "f must be a whole number from 1"),
        ({"f": 1, "nodes": 9, "guarantee": "rca"}, "guarantee must be"),
        ({"f": 1, "nodes": 9, "schemes": ("slowest",)}, "scheme must be"),
        ({"f": 1, "nodes": 9, "scale": 0.0}, r"scale must be a number in \(0, 1\]"),
        ({"f": 1, "nodes": 9, "rule": "krum"}, "declares no bound in terms of the weight of lies"),
    ],
)
def test_mistakes(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        suggest(**arguments)  # type: ignore[arg-type]

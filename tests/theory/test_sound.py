"""Certificates that used to be wrong: each said "holds", crashed or refuted too much."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import rule
from byzmesh.studies.paper import table1
from byzmesh.studies.paper.table1 import table_1
from byzmesh.theory.certify import certify
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.mixing import mixing_rate, to_own
from byzmesh.types import Floats
from tests.cli import commands


def drawn(seed: int, n: int) -> Network:
    """A connected random graph with Metropolis-Hastings weights."""
    draw = np.random.default_rng(seed)
    while True:
        links = np.triu(draw.random((n, n)) < draw.uniform(0.3, 0.9), 1)
        net = Network.from_adjacency(links | links.T)
        if net.honest_connected:
            return net


@pytest.mark.parametrize("seed", range(12))
def test_liars_anywhere_means_every_placement(seed: int) -> None:
    """Row 1: no placement has a worker with a larger bound; workers that the worst placement made liars count too."""
    net = drawn(seed, 8)
    for total in (1, 2):
        told = certify(net, "ios", total=total, search=0)
        by_worker = {worker.worker: worker.rho_bound for worker in told.workers}
        for liars in combinations(range(8), total):
            placed = net.with_byzantine(liars)
            bounds = np.minimum(total, placed.layout.degree)
            proof = proved_contraction(placed, rule("ios"), bounds)
            for worker, bound in zip(placed.honest.tolist(), proof.bound.tolist()):
                most = by_worker[worker]
                assert most is None or bound <= most + 1e-12
        if told.holds:
            worst = max(
                float(
                    proved_contraction(
                        net.with_byzantine(b), rule("ios"), np.minimum(total, net.with_byzantine(b).layout.degree)
                    ).rho
                )
                for b in combinations(range(8), total)
            )
            assert worst <= 1.0


def test_a_heavy_pair_of_neighbours_is_seen_wherever_lambda_is_least() -> None:
    """Row 1 with explicit weights: the liars that mix least are 0 and 1, but 1 and 2 weigh 0.58 at worker 0."""
    weights = np.full((11, 11), 0.03)
    weights[0], weights[:, 0] = 0.04, 0.04
    weights[0, [1, 2]] = weights[[1, 2], 0] = 0.29
    np.fill_diagonal(weights, 0.0)
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    net = Network.from_adjacency(~np.eye(11, dtype=bool), weights=weights)
    lies = np.zeros((10, 1))
    lies[:2] = 1e6
    moved = bm.aggregate("ios", np.zeros(1), lies, np.array([0.1, *weights[0, 1:]]), f=2)
    assert moved[0] > 6e5
    told = certify(net, "ios", 2)
    assert (told.bounded.status, told.exit_code) == ("refuted", 1)
    assert told.workers[0].h == pytest.approx(0.58)
    assert certify(net, "ios", 2, guarantee="rdsa", search=0).exit_code != 0


def two_blocks(k: int) -> Network:
    """Two complete blocks, and two nodes between them with a few links to each."""
    links = np.zeros((2 * k + 2, 2 * k + 2), bool)
    links[:k, :k] = links[k : 2 * k, k : 2 * k] = True
    for first in (0, k):
        links[2 * k :, first : first + 8] = True
    links |= links.T
    np.fill_diagonal(links, False)
    return Network.from_adjacency(links)


def test_liars_on_a_bridge_are_found_on_large_networks() -> None:
    """Row 2: a greedy placement missed the bridge and the certificate held."""
    net = two_blocks(100)
    for question in ({"f": 2}, {"total": 2}):
        told = certify(net, "ios", guarantee="fair", search=0, **question)
        assert (told.fair.status, told.exit_code) == ("refuted", 1)
        assert told.connectivity.cut is not None
        assert told.connectivity.cut.tolist() == [200, 201]
    assert certify(net, "ios", 1, search=0).fair.status != "refuted"
    assert certify(net, "ios", total=1, guarantee="fair", search=0).holds


def test_gossip_counts_what_the_rule_expects_and_the_largest_eigenvalue() -> None:
    """Row 3: f = 0 against two liars, and a bipartite graph that swaps its sides for ever."""
    lying = network("complete", n=40, byzantine=[0, 1])
    for name in ("gts", "cs+"):
        assert certify(lying, name, 0, guarantee="agrees", search=0).agrees.status != "proved"
        assert certify(lying, name, guarantee="agrees", search=0).holds
    swap = np.zeros((6, 6))
    swap[:3, 3:] = swap[3:, :3] = 1.0 / 3.0
    net = Network.from_adjacency(swap > 0.0, weights=swap)
    for name in ("gts", "cs+", "ios", "weimean"):
        assert certify(net, name, 0, guarantee="agrees", search=0).agrees.status != "proved"


def test_uneven_weights_drop_more_than_the_lies_weigh() -> None:
    """GTS drops neighbours whole, so 4 b does not bound what its lies and mistakes weigh; its own bound does."""
    weight = np.array([[0.0, 0.1, 0.4], [0.1, 0.0, 0.1], [0.4, 0.1, 0.0]])
    np.fill_diagonal(weight, 1.0 - weight.sum(axis=1))
    net = Network.from_adjacency(~np.eye(3, dtype=bool), weights=weight)
    told = certify(net, "gts", 1, rho=10.0)
    assert told.search is not None
    assert told.bounded.status == "proved"


@pytest.mark.parametrize(("n", "liars"), [(15, 2), (16, 3), (20, 1), (40, 7), (31, 0)])
def test_lambda_of_complete_graphs(n: int, liars: int) -> None:
    """Row 4: the search for one eigenvalue failed where it is multiple."""
    net = network("complete", n=n, byzantine=range(liars))
    assert mixing_rate(to_own(net)) == pytest.approx(1.0 - (liars / n) ** 2)


@pytest.mark.parametrize("name", ["octopus", "chain", "star"])
def test_leaves_are_no_contradiction(name: str) -> None:
    """Row 5: rounding at workers with rho = 0 was taken for one."""
    net = network("paper/octopus") if name == "octopus" else network(name, n=7, byzantine=[0])
    for seed in range(3):
        assert certify(net, "ios", search=5000, seed=seed).search is not None


def test_a_config_is_certified_with_its_own_rule_and_f(tmp_path: Path) -> None:
    """Row 6: a config with WeiMean and f = 0 was certified as IOS with f exact."""
    config = tmp_path / "run.yaml"
    config.write_text("network: paper/two-castle\nrule: weimean\nf: 0\nproblem: quadratic\n")
    told = commands.run("certify", config, "--search", 0, "--json")
    shown = json.loads(told.stdout)
    assert (told.exit_code, shown["rule"], {worker["f"] for worker in shown["workers"]}) == (1, "WeiMean", {0})
    config.write_text("network: {name: ring, n: 9}\nproblem: quadratic\n")
    with pytest.raises(ConfigError, match="nobody lies in this network"):
        commands.run("certify", config)


def test_a_bound_of_156_is_no_guarantee() -> None:
    """Row 7: the default asks for something that means something."""
    net = network("complete", n=13, byzantine=range(4))
    told = certify(net, "ios", search=0)
    assert told.proof.beside[0].rho == pytest.approx(48.0)
    assert not told.holds
    assert certify(net, "ios", search=0, rho=50.0).holds


def test_another_mixing_matrix_is_not_refuted() -> None:
    """Row 8: a fixed mean with own weight 0.6 is RCA with its true W, which is not the assumed one."""

    def fixed(block: bm.Block) -> Floats:
        others = block.present.copy()
        others[:, 0] = False
        share: Floats = 0.4 * others / np.maximum(1, others.sum(axis=1, keepdims=True))
        share[:, 0] = 1.0 - share.sum(axis=1)
        return share

    mean = bm.gram_rule("fixed", fixed)
    told = certify(network("complete", n=6), mean, 0)
    assert told.search is not None and told.search.rho > (told.rho_star or 0.0)
    assert told.rca.status == "unknown"
    assert certify(network("complete", n=6), "coomed", 0).rca.status == "refuted"
    assert table1.decide_rca(mean, table1.PUBLISHED["TriMean"], 6).status == "unknown"
    assert table1.decide_rca(rule("coomed"), table1.PUBLISHED["CooMed"], 6).status == "refuted"


def test_scc_is_one_thing_in_certificates_tables_and_docs() -> None:
    """Row 9: with a fixed radius there is no constant, so it is not RDSA."""
    row = next(row for row in table_1(10, [0, 1], budget=300) if row.rule == "SCC")
    told = certify(network("paper/octopus"), "scc", search=0)
    assert row.rdsa.status == told.rdsa.status == "refuted"
    text = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| SCC"))
    assert line.rstrip(" |").endswith("refuted for a fixed radius")


def test_exit_codes_tell_four_things_apart() -> None:
    codes = [
        commands.run("certify", "paper/two-castle", "--search", 0, *words).exit_code
        for words in ([], ["--rule", "weimean"], ["--guarantee", "agrees"])
    ]
    assert codes == [0, 1, 3]
    with pytest.raises(ConfigError):
        commands.run("certify", "paper/two-castle", "--rho", "-1")


def test_sites_may_expect_different_numbers() -> None:
    """What a per-node f allows is checked as it stands: nobody can lie beside a worker that expects nobody."""
    net = network("star", n=5)
    told = certify(net, "weimean", {0: 2, 1: 0, 2: 0, 3: 0, 4: 0}, search=0)
    assert told.question.alone.tolist() == [1, 2, 3, 4]
    assert told.bounded.status == "refuted"
    ring = certify(network("ring", n=6), "weimean", {0: 1, **dict.fromkeys(range(1, 6), 0)}, search=0)
    assert ring.question.alone.tolist() == []
    assert ring.bounded.status != "refuted"


def test_liars_that_can_only_lie_together_count() -> None:
    """Beside a worker that expects nobody one node cannot lie alone, but both can, and W' is not symmetric."""
    weights = np.zeros((4, 4))
    for first, second in ((0, 1), (1, 3), (3, 0), (0, 2), (2, 3), (3, 0)):
        weights[first, second] += 0.1
        weights[second, first] += 0.05
    weights[1, 2] = weights[2, 1] = 0.05
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    net = Network.from_adjacency((weights > 0.0) & ~np.eye(4, dtype=bool), weights=weights)
    told = certify(net, "lazyios", [2, 0, 0, 2], search=0, guarantee="fair")
    assert told.question.admits([1, 2]) and not told.question.alone.size
    assert to_own(net.with_byzantine([1, 2])).sum(axis=0) == pytest.approx([1.1, 0.9])
    assert told.bounded and told.fair.status == told.rdsa.status == "unknown"


def test_a_total_does_not_change_what_the_rule_is_given(tmp_path: Path) -> None:
    """FABA with f = 3 cuts three messages even if only one node of the network may lie."""
    net = network("complete", n=8)
    told = certify(net, "faba", 3, total=1, search=0)
    assert {worker.f for worker in told.workers} == {3} and {worker.lying for worker in told.workers} == {1}
    assert told.rho_bound == certify(net, "faba", 3, search=0).rho_bound == pytest.approx(3.0)
    config = tmp_path / "run.yaml"
    config.write_text("network: {name: complete, n: 8}\nrule: faba\nf: 3\nproblem: quadratic\n")
    for words in (["--total", 1], ["--total", 1, "--f", 3]):
        shown = json.loads(commands.run("certify", config, *words, "--search", 0, "--json").stdout)
        assert ({worker["f"] for worker in shown["workers"]}, shown["rho_bound"]) == ({3}, pytest.approx(3.0))


def test_a_rule_that_cannot_run_is_refuted() -> None:
    told = certify(network("star", n=5), replace(rule("ios")), 1, search=0)
    assert (told.bounded.status, told.agrees.status) == ("refuted", "refuted")


@pytest.mark.parametrize("name", ["gts", "cs+"])
def test_lies_over_very_light_links_are_dropped(name: str) -> None:
    """Weights below the tolerance for sums of weights: nothing was dropped, and a lie of 1e30 was followed."""
    links = ~np.eye(5, dtype=bool)
    light = 1e-13 * links + np.diag(np.full(5, 1.0 - 4e-13))
    told = certify(Network.from_adjacency(links, weights=light), name, 1, search=0)
    assert told.holds and told.rho_bound is not None
    moved = bm.aggregate(name, [0.0], [[1.0], [-1.0], [1.0], [1e30]], weights=light[0], f=1)
    assert abs(moved[0] - 1e-13) <= told.rho_bound  # the honest spread is 1, and xbar = 1e-13
    light[0, 1], light[0, 0] = 5e-13, 1.0 - 8e-13
    near = certify(Network.from_adjacency(links, weights=light, byzantine=[2]), name, search=0).workers[0]
    assert near.rho_bound == pytest.approx({"gts": 3e-12, "cs+": 1.6e-12}[name])  # uneven: more is dropped than 2 b


@pytest.mark.parametrize("liars", [[], [5]])
def test_very_light_links_do_not_make_everybody_count_the_same(liars: list[int]) -> None:
    """Columns sum to 1 to ten digits, and yet in the long run one worker counts for 99%."""
    links = ~np.eye(9, dtype=bool)
    weights = 1e-13 * links
    weights[1:, 0] = 1e-10
    net = Network.from_adjacency(links, weights=weights + np.diag(1.0 - weights.sum(axis=1)), byzantine=liars)
    told = certify(net, "ios", None if liars else 1, search=0, guarantee="fair")
    assert told.perron is not None and told.perron[0] > 0.99
    assert told.fair.status == told.rdsa.status == "unknown" and told.bounded


def test_rounding_is_not_shown_above_a_proved_bound() -> None:
    told = certify(network("star", n=5), "weimean", 0)
    assert told.search is not None and told.search.rho == told.rho_bound == 0.0


def followers(count: int) -> Network:
    """Each worker hears the one before it; a liar hears the first and is heard by nobody."""
    weights = np.zeros((count + 1, count + 1))
    weights[np.arange(1, count), np.arange(count - 1)] = weights[count, 0] = 0.1
    links = weights > 0.0
    np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
    return Network.from_adjacency(links, weights=weights, byzantine=[count], directed=True)


def test_workers_who_follow_one_need_not_reach_each_other() -> None:
    """Over links that go one way, "they do not reach each other" was taken for a proof that they never agree."""
    told = certify(followers(20), "ios", 0, guarantee="connected", search=0)
    assert (told.connectivity.verdict.status, told.agrees.status, told.rca.status) == ("refuted", "unknown", "unknown")
    left = np.linalg.matrix_power(to_own(followers(20)).toarray(), 2000)
    assert np.ptp(left, axis=0).max() < 1e-9  # they do agree: nobody lies to anybody
    two = certify(followers(2), "ios", 0, search=0)
    assert (two.agrees.status, two.rca.status) == ("proved", "proved")  # it was refuted beside the proof of it


def test_workers_who_follow_two_never_agree() -> None:
    weights = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.2, 0.2, 0.6, 0.0], [0.5, 0.0, 0.0, 0.5]])
    links = (weights > 0.0) & ~np.eye(4, dtype=bool)
    told = certify(Network.from_adjacency(links, weights=weights, byzantine=[3], directed=True), "ios", 0, search=0)
    assert told.agrees.status == told.rca.status == "refuted"


@pytest.mark.parametrize("name", ["weimean", "lazyios"])
def test_a_slow_move_is_no_standstill(name: str) -> None:
    """Links of 1e-13 moved two camps by less than a tolerance of 1e-12, so they "stayed where they are forever"."""
    links = ~np.eye(6, dtype=bool)
    light = Network.from_adjacency(links, weights=1e-13 * links + np.diag(np.full(6, 1.0 - 5e-13)))
    assert certify(light, name, 0, search=50).agrees.status == "unknown"
    assert certify(network("paper/two-castle-3"), "coomed", 0, search=50).agrees.status == "refuted"


def test_a_bound_of_no_weight_lets_nobody_lie() -> None:
    """b = 0 let all neighbours over links of 1e-13 lie, and then the rule could not run."""
    links = ~np.eye(6, dtype=bool)
    net = Network.from_adjacency(links, weights=1e-13 * links + np.diag(np.full(6, 1.0 - 5e-13)))
    assert certify(net, "nna", b=0.0, search=0).holds
    counted = certify(net, "nna", 1, b=0.0, search=0).question
    assert counted.most.max() == 0 and counted.alone.size == 0 and not counted.admits([0])
    assert certify(net, "nna", b=2e-13, search=0).question.most.tolist() == [2] * 6


@pytest.mark.parametrize("name", ["reprieve", "tether"])
def test_a_bound_too_large_for_a_float_refutes_nothing(name: str) -> None:
    told = certify(network("complete", n=5), name, 1, search=0, c=1.7e308)
    assert told.bounded.status == "unknown" and told.rdsa.status != "refuted"

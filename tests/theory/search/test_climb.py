"""Measured contraction: known witnesses are found, proved bounds are never contradicted."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.rules.aggregate import aggregate, rule
from byzmesh.rules.base import Block, rules
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.theory.contraction import ContradictedProof, Proof, proved_contraction
from byzmesh.theory.mixing import mixing_rate, rho_star, to_own, virtual_mixing
from byzmesh.theory.search.climb import Witness, default_budget, search_contraction
from byzmesh.theory.search.game import games_of, ratios, respond

NEEDS_MORE = {"SimRew", "UBAR", "Zeno", "ByRDiE", "push-sum"}


@pytest.mark.parametrize("name", [name for name in rules.names() if name not in NEEDS_MORE])
def test_many_inboxes_at_once_equal_one_at_a_time(name: str) -> None:
    net = network("paper/er-12")
    game = games_of(net, to_own(net), net.bounds(1))[0]
    points = np.random.default_rng(0).normal(size=(7, len(game.sender), 3))
    chosen = rule(name)
    together = respond(chosen, game, points)
    for inbox, model in zip(points, together):
        if chosen.name.startswith(("bucketing", "NNM")):  # bucketing draws by the receiver's id
            alone = respond(chosen, game, inbox[None])[0]
        else:
            alone = aggregate(chosen, inbox[0], inbox[1:], game.weight, f=game.f)
        np.testing.assert_allclose(model, alone, atol=1e-9)


def test_workers_alike_share_a_game() -> None:
    net = network("paper/two-castle")
    assert len(games_of(net, to_own(net), net.bounds("exact"))) == 2
    assert len(games_of(net, to_own(net), net.bounds("max"))) == 2  # one lying neighbour or two


def test_theorem_3_is_never_contradicted_on_300_networks() -> None:
    draw = np.random.default_rng(20)
    tried = 0
    largest = 0.0
    while tried < 300:  # before the 150th, both rules have met their bounds exactly
        n = int(draw.integers(5, 10))
        links = np.triu(draw.random((n, n)) < draw.uniform(0.5, 1.0), 1)
        links |= links.T
        liars = draw.choice(n, int(draw.integers(0, 3)), replace=False).tolist()
        weights = draw.choice(np.array(["mh", "equal", "lazy", "max-degree", "random"]))
        scheme: object = str(weights)
        if weights == "random":
            raw = (links | np.eye(n, dtype=bool)) * draw.random((n, n))
            scheme = raw / raw.sum(axis=1, keepdims=True)
        net = Network.from_adjacency(links, byzantine=liars, weights=scheme)
        f = net.lying_neighbours + draw.integers(0, 2, len(net.honest))
        chosen = rule("ios" if tried % 4 else "faba")
        proof = proved_contraction(net, chosen, f)
        if np.isnan(proof.bound).all():
            continue
        tried += 1
        found = search_contraction(
            net, chosen, f, budget=200, seed=tried, dimension=int(draw.integers(1, 4)), proof=proof
        )
        assert set(found.by_worker) <= set(net.honest.tolist())
        largest = max(largest, found.rho)
    assert largest > 0.5  # the search did find bad inputs


def test_a_witness_above_a_proof_fails_loudly() -> None:
    net = network("paper/two-castle")
    wrong = Proof(np.full(10, 0.01), "a wrong theorem")
    with pytest.raises(ContradictedProof, match=r"contradicts the proved bound 0.01 \(a wrong theorem\)"):
        search_contraction(net, "ios", budget=500, proof=wrong)


def test_example_1_no_liars_no_deviation() -> None:
    for name in ("ios", "faba", "trimean", "weimean"):
        assert search_contraction(network("paper/two-castle-3"), name, budget=2000).rho < 1e-12


def test_weimean_is_unbounded_with_one_liar() -> None:
    net = network("complete", n=6, byzantine=[5])
    found = search_contraction(net, "weimean", budget=500)
    assert math.isinf(found.rho)
    assert found.witness is not None
    assert math.isinf(found.witness.verify())


def test_clipping_with_a_fixed_radius_is_unbounded() -> None:
    net = network("paper/two-castle")
    assert math.isinf(search_contraction(net, "scc", budget=500).rho)
    # with the honest spread fixed at half the radius the lies' weight, at most 2/11, moves SCC by 2 b
    found = search_contraction(net, rule("scc", tau=2.0), budget=3000, spread=1.0)
    assert found.rho == pytest.approx(4 / 11, rel=1e-3)


@pytest.mark.parametrize("name", ["krum", "coomed", "geomed"])
def test_two_castle_example_with_two_liars_above_1(name: str) -> None:
    net = network("two-castle", k=3, byzantine=[3, 4])
    found = search_contraction(net, name, budget=10_000)
    assert found.witness is not None
    assert found.rho > 1.0
    assert found.witness.verify() == pytest.approx(found.rho)


def test_medians_well_above_1_on_the_large_castle() -> None:
    """With 5 liars among 11 the theory of GeoMed on a cross gives 5/sqrt(36 - 25) = 1.508."""
    net = network("two-castle", k=6, byzantine=[6, 7, 8, 9, 10])
    assert search_contraction(net, "geomed", budget=6000).rho == pytest.approx(5 / math.sqrt(11), rel=1e-3)
    assert search_contraction(net, "coomed", budget=6000).rho > 1.3


@pytest.mark.parametrize(("name", "least"), [("krum", 0.99), ("coomed", 0.66), ("geomed", 0.66)])
def test_two_castle_example_without_liars(name: str, least: float) -> None:
    """Nobody lies, rho* is tiny, and still they stay in their castles; above 1 is impossible without a liar."""
    net = network("paper/two-castle-3")
    found = search_contraction(net, name, budget=6000)
    star = rho_star(mixing_rate(virtual_mixing(net, rule(name)).matrix), 6)
    assert least <= found.rho <= 1.0 + 1e-9
    assert found.rho > 10 * star


def test_searched_rho_has_the_published_order_on_complete_graphs() -> None:
    """IOS between mu/(1 - 3 mu) and 12 times that."""
    for liars in (1, 2, 3):
        net = network("complete", n=12, byzantine=range(liars))
        mu = liars / 12
        found = search_contraction(net, "ios", budget=10_000).rho
        assert mu / (1 - 3 * mu) <= found <= 12 * mu / (1 - 3 * mu)


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    net = network("paper/er-12")
    first, second = (search_contraction(net, "ios", budget=1000, seed=5) for _ in range(2))
    assert first.rho == second.rho
    assert first.witness is not None
    assert second.witness is not None
    np.testing.assert_array_equal(first.witness.points, second.witness.points)
    other = search_contraction(net, "ios", budget=1000, seed=6)
    assert other.witness is not None
    assert not np.array_equal(first.witness.points, other.witness.points)


def test_witness_survives_a_file(tmp_path: Path) -> None:
    found = search_contraction(network("paper/two-castle"), rule("krum"), budget=2000).witness
    assert found is not None
    again = Witness.load(found.save(tmp_path / "witness.npz"))
    assert again.verify() == found.ratio
    assert (again.rule, again.network, again.game.worker) == ("Krum", "paper/two-castle", found.game.worker)
    (tmp_path / "bad.npz").write_bytes(b"not a witness")
    with pytest.raises(ConfigError, match="cannot be read"):
        Witness.load(tmp_path / "bad.npz")


def test_a_third_party_rule_can_be_searched() -> None:
    def nearest_only(block: Block) -> np.ndarray:
        distance = np.where(block.present, block.distance2[:, 0], np.inf)
        distance[:, 0] = np.inf
        out = np.zeros_like(block.weight)
        out[:, 0] = 0.5
        out[np.arange(len(out)), distance.argmin(axis=1)] += 0.5
        return out

    found = search_contraction(network("paper/two-castle"), gram_rule("nearest-only", nearest_only), budget=1000)
    assert 0.5 < found.rho < 10.0


def test_more_budget_never_finds_less() -> None:
    net = network("paper/er-12")
    values = [search_contraction(net, "trimean", budget=budget).rho for budget in (1500, 6000)]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("simrew", {}, "uses more than the received models"),
        ("ios", {"dimension": 4}, "dimension must be a whole number from 1 to 3"),
        ("ios", {"budget": 0}, "budget must be a whole number of at least 1"),
    ],
)
def test_mistakes(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        search_contraction(network("paper/two-castle"), name, **options)  # type: ignore[arg-type]


def test_no_search_unasked_on_large_networks() -> None:
    assert default_budget(network("ring", n=64), rule("ios")) > 0
    assert default_budget(network("ring", n=65), rule("ios")) == 0
    assert default_budget(network("ring", n=64), rule("ubar")) == 0


def test_rounding_of_the_pool_is_no_move() -> None:
    """All choices are one pool to the rule: honest models that agree at 0 beside others must not be said to move."""
    net = network("barabasi-albert", n=31, byzantine=[0])
    chosen = rule("weimean")
    game = next(g for g in games_of(net, to_own(net), net.bounds("exact")) if g.worker == 10)
    points = np.random.default_rng(0).normal(size=(3, len(game.sender), 2)) * 1e3
    points[0] = 0.0
    assert ratios(chosen, game, points)[0] == 0.0
    assert search_contraction(net, chosen, budget=3).by_worker[10] < 1e-6

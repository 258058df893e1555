"""What a run shows: empirical mixing, realised contraction, suspects."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks import network
from byzmesh.rules.aggregate import rule
from byzmesh.simulation.exchange import aggregate_all, forge
from byzmesh.theory.contraction import Proof, proved_contraction
from byzmesh.theory.forensics import cut_counts, find_suspects
from byzmesh.theory.measured import empirical_mixing, round_contraction, round_report
from byzmesh.theory.mixing import to_own, virtual_mixing


def test_empirical_mixing_of_a_mean_is_its_virtual_one() -> None:
    net = network("paper/er-12")
    models = np.random.default_rng(0).normal(size=(10, 4))
    out = aggregate_all("weimean", net, models, forge("zero", net, models))
    assert out.coefficients is not None
    matrix, lies = empirical_mixing(net, out.coefficients)
    np.testing.assert_allclose(matrix.toarray(), to_own(net).toarray())
    np.testing.assert_allclose(lies, net.mixing[np.ix_(net.honest, net.byzantine)].sum(axis=1))


def test_empirical_mixing_reproduces_the_round_without_lies() -> None:
    net = network("paper/er-12")
    models = np.random.default_rng(1).normal(size=(10, 4))
    out = aggregate_all("ios", net, models, forge("huge", net, models))
    assert out.coefficients is not None
    matrix, lies = empirical_mixing(net, out.coefficients)
    assert lies.max() == 0.0
    np.testing.assert_allclose(matrix @ models, out.models, atol=1e-12)


@pytest.mark.parametrize("attack", ["alie", "sign-flipping", "sample-duplicating", "dissensus"])
def test_ios_keeps_its_promise_in_rounds(attack: str) -> None:
    net = network("paper/two-castle")
    chosen = rule("ios")
    proof = proved_contraction(net, chosen, net.bounds("exact"))
    mixing = virtual_mixing(net, chosen).matrix
    for seed in range(5):
        models = np.random.default_rng(seed).normal(size=(10, 6))
        out = aggregate_all(chosen, net, models, forge(attack, net, models))
        told = round_report(net, models, out.models, out.coefficients, mixing, proof)
        assert told.violations.size == 0
        assert 0.0 < told.ratio.max() <= proof.rho
        assert told.chi2 >= 0.0


def test_a_violation_names_the_worker() -> None:
    net = network("paper/two-castle")
    models = np.random.default_rng(3).normal(size=(10, 6))
    after = models.copy()
    told = round_report(net, models, after, None, to_own(net), Proof(np.full(10, 0.01), "test"))
    np.testing.assert_array_equal(told.violations, net.honest)
    assert np.isnan(told.chi2)


def test_realised_contraction_by_hand() -> None:
    mixing = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    before = np.array([[0.0], [2.0], [8.0]])
    after = np.array([[1.5], [3.0], [5.0]])
    # averages 1, 3, 5; spreads 1, 5, 3
    np.testing.assert_allclose(round_contraction(before, after, mixing), [0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_array_equal(round_contraction(np.ones((3, 1)) * 1e8, np.ones((3, 1)) * 1e8, mixing), np.zeros(3))


def test_isolated_liars_are_found() -> None:
    """Sign flippers are cut by everybody; honest workers now and then."""
    net = network("paper/two-castle")
    sender = net.layout.sender
    cut, held = np.zeros(sender.shape, np.int64), np.zeros(sender.shape, np.int64)
    for step in range(30):
        models = 1.0 + 0.3 * np.random.default_rng(step).normal(size=(10, 5))
        out = aggregate_all("ios", net, models, forge("sign-flipping", net, models))
        assert out.coefficients is not None
        once, there = cut_counts(sender, out.coefficients)
        cut, held = cut + once, held + there
    line, slot = np.nonzero(held)
    found = find_suspects(
        sender[line, slot], net.honest[line], cut[line, slot], held[line, slot], byzantine=net.byzantine
    )
    assert (found.verdict, found.named) == ("named", (7, 9))
    assert (found.precision, found.recall) == (1.0, 1.0)
    assert found.caught == 1.0
    assert found.mistaken == ()
    assert [one.sender for one in found.network] == list(range(12))


def test_findings_by_hand() -> None:
    """Receiver 0 cuts half of 1 and all of 2; receiver 3 never cuts, and that counts for both."""
    found = find_suspects([2, 1, 1, 2], [0, 0, 3, 3], [100, 50, 0, 0], 100)
    assert [(one.sender, one.rate) for one in found.network] == [(1, 0.25), (2, 0.5)]
    assert set(found.worker) == {0}
    assert [(one.sender, one.rate) for one in found.worker[0]] == [(1, 0.5), (2, 1.0)]
    assert found.network[0].lies is None
    assert (found.verdict, found.named) == ("cannot tell", ())
    assert (found.precision, found.recall, found.caught, found.mistaken) == (None, None, None, ())


@pytest.mark.parametrize(
    ("cut", "verdict", "named"),
    [
        ((100, 97, 1, 4, 0), "named", (1, 2)),
        ((100, 97, 1, 6, 0), "cannot tell", ()),
        ((100, 80, 1, 4, 0), "cannot tell", ()),
        ((100, 97, 99, 4, 0), "cannot tell", ()),
        ((2, 4, 1, 4, 0), "nobody", ()),
        ((0, 0, 0, 0, 0), "nobody", ()),
    ],
)
def test_somebody_is_named_only_where_the_record_is_of_one_kind(
    cut: tuple[int, ...], verdict: str, named: tuple[int, ...]
) -> None:
    found = find_suspects([1, 2, 3, 4, 5], [0] * 5, cut, 100)
    assert (found.verdict, found.named) == (verdict, named)
    scarce = find_suspects([1, 2, 3], [0] * 3, [10, 0, 0], 10)
    assert scarce.verdict == "cannot tell"


def test_precision_recall_and_mistaken_cuts() -> None:
    found = find_suspects([1, 2, 3, 4], [0, 0, 0, 0], [95, 0, 1, 4], 100, byzantine=[3, 4])
    assert (found.verdict, found.precision, found.recall) == ("named", 0.0, 0.0)
    assert found.caught == pytest.approx(0.025)
    assert found.mistaken == ((0, 1, 0.95),)


@pytest.mark.parametrize("rule", ["ios", "reprieve"])
def test_honest_workers_that_differ_are_not_framed(rule: str) -> None:
    """Two-castle, one class each, sign-flipping: 1 and 3 are cut most, 7 and 9 lie and are never cut."""
    one_class = {"name": "softmax", "partition": "one-class"}
    run = bm.simulate(
        network="paper/two-castle", problem=one_class, rule=rule, attack="sign-flipping", rounds=60, evaluate_every=60
    )
    assert run.edges is not None
    sender, receiver, cut, rounds = run.edges.counts.T
    found = find_suspects(sender, receiver, cut, rounds, byzantine=[7, 9])
    assert found.verdict != "named" and found.named == ()


def test_forensics_mistakes() -> None:
    with pytest.raises(ConfigError, match="one entry per edge"):
        find_suspects([1, 2], [0, 0], [1], 10)
    with pytest.raises(ConfigError, match="between 0 and rounds"):
        find_suspects([1], [0], [11], 10)

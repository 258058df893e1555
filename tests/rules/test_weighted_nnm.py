"""WeightedNNM: the weighted mean where nobody is cut, and its proved contraction held against search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.rules import weighted_nnm
from byzmesh.rules.aggregate import rule
from byzmesh.rules.base import Rule, rules
from byzmesh.rules.contraction import by_weight
from byzmesh.rules.feasible import Feasible
from byzmesh.theory.contraction import ContradictedProof, cut_weight, proved_contraction
from byzmesh.theory.mixing import doubly_stochastic, virtual_mixing
from byzmesh.theory.search.climb import search_contraction
from tests.rules.cases import random_weights
from tests.rules.test_reprieve import search_against_the_bound

INNER = ["WeightedCooMed", "WeightedTriMean", "WeightedGeoMed", "IOS", "CooMed", "NoComm"]
DECLARED = {"WeightedCooMed": 40, "WeightedTriMean": 40, "LazyIOS": 60, "NoComm": 40}
"""Inner rules under which something is proved about WeightedNNM, and what a search spends on each network."""


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("network", ["paper/er-12", "paper/octopus"])
def test_with_f_zero_it_is_the_weighted_mean_and_keeps_every_sum(inner: str, network: str) -> None:
    net = bm.network(network, byzantine=[])
    models = np.random.default_rng(0).normal(size=(net.n, 7))
    got = bm.aggregate_all({"name": "WeightedNNM", "inner": inner}, net, models, f=0).models
    np.testing.assert_allclose(got, net.mixing @ models, atol=1e-12)
    np.testing.assert_allclose(got.sum(axis=0), models.sum(axis=0), atol=1e-11)
    plain = bm.aggregate_all({"name": "NNM", "inner": inner}, net, models, f=0).models
    assert np.abs(plain.sum(axis=0) - models.sum(axis=0)).max() > 1e-3, "NNM has rows of its own"


@pytest.mark.parametrize("inner", ["WeightedCooMed", "WeightedTriMean", "IOS"])
def test_lies_are_measured_by_weight_if_b_is_given(inner: str) -> None:
    """A heavy neighbour lies: b = 0.25 covers it, and so does f = 1 of any weight; b = 0.09 does not."""
    weights, received = [0.4, 0.25, *[0.0875] * 4], [[9.0], [1.0], [0.5], [-0.5], [-1.0]]
    made = rule("wnnm", inner=inner)
    for enough in ({"b": 0.25}, {"f": 1}):
        assert bm.aggregate(made, [0.0], received, weights, **enough)[0] == pytest.approx(0.0)
    assert bm.aggregate(made, [0.0], received, weights, b=0.09)[0] > 1.0


def test_a_rule_behind_it_is_told_b_and_behind_nnm_it_is_not() -> None:
    """Slot m of the mixtures still stands for m; NNM gives all of them equal weights."""
    inner, told = rule("WeightedTriMean"), list[Any]()

    def apply(inbox: Any, state: Any) -> Any:
        told.append(inbox.b)
        return inner.apply(inbox, state)

    for outer in (weighted_nnm.weighted_nnm, bm.nnm):
        bm.aggregate(outer(replace(inner, apply=apply)), [0.0], [[1.0]] * 4, b=0.25)
    assert told == [0.25, None]


def test_a_vector_that_outweighs_the_rest_stays_what_it_is() -> None:
    """0.2 of the weight counts: the heavy one needs no other, own and the light one are each other's nearest."""
    got = bm.aggregate(rule("wnnm", inner="weimean"), [0.0], [[8.0], [1.0]], [0.1, 0.8, 0.1], f=1)
    assert got == pytest.approx([0.8 * 8.0 + 0.2 * 0.5])
    assert bm.aggregate("wnnm", [7.0], [[1.0], [1.0]], [0.0, 1.0, 0.0], f=1) == pytest.approx([1.0])


def test_the_declared_bounds() -> None:
    net = bm.network("complete", n=13, byzantine=[0])
    f = net.bounds("exact")
    h = cut_weight(net, f)
    for inner in ("WeightedCooMed", "WeightedTriMean"):
        proof = proved_contraction(net, rule("wnnm", inner=inner), f)
        np.testing.assert_allclose(proof.bound, h * (1.0 + 4.0 / np.sqrt(1.0 - 2.0 * h)) / (1.0 - h), rtol=1e-12)
    of_ios = proved_contraction(net, rule("ios"), f).bound
    proof = proved_contraction(net, rule("wnnm", inner="IOS"), f)
    np.testing.assert_allclose(proof.bound, h * (5.0 + 8.0 * of_ios) / (1.0 - h), rtol=1e-12)
    assert np.isnan(proved_contraction(net, rule("wnnm"), net.bounds(0)).rho), "more lie than are expected"
    half = bm.network("complete", n=6, byzantine=[0, 1, 2])
    assert np.isnan(proved_contraction(half, rule("wnnm"), half.bounds("exact")).rho)
    for name in ("paper/two-castle", "paper/er-12", "paper/octopus"):
        mixing = virtual_mixing(bm.network(name), rule("wnnm"))
        assert mixing.source == "theory" and doubly_stochastic(mixing.matrix)


GENERIC: dict[str, Any] = {"name": "generic", "inner": "WeightedCooMed"}


@pytest.mark.parametrize("inner", ["WeightedGeoMed", "WeightedKrum", "CooMed", "NNM", "ARC", GENERIC], ids=str)
def test_nothing_is_proved_before_a_rule_about_which_nothing_is(inner: Any) -> None:
    both = rule("wnnm", inner=inner)
    assert both.contraction is None and both.virtual_mixing is None
    assert rule("NNM", inner="wnnm").contraction is None


def test_before_the_weighted_mean_lies_know_no_bound_and_none_is_claimed() -> None:
    net = bm.network("complete", n=9, byzantine=[0])
    assert np.isnan(proved_contraction(net, rule("wnnm", inner="WeiMean"), net.bounds("exact")).bound).all()


def test_liars_reach_five_b() -> None:
    """Half of W sits at 1 with the receiver, half at -1; a lie at -3 is as near to the latter as the former are."""
    lie, b = -3.0 + 1e-9, 0.1
    got = bm.aggregate("wnnm", [1.0], [[1.0]] * 3 + [[-1.0]] * 5 + [[lie]], np.full(10, b), f=1)
    assert got[0] == pytest.approx(-5.0 * b / (1.0 - b), abs=1e-8)


def test_a_worker_left_with_too_few_messages_is_within_the_bound() -> None:
    """The liar is silent, and the inner rule does not work with five messages: the worker keeps its own model."""
    needs_six = Feasible("f < d - 4", lambda neighbours: max(0, neighbours - 5))
    made = weighted_nnm.weighted_nnm(replace(rule("nocomm"), feasible=needs_six))
    net = bm.network("complete", n=7, byzantine=[0])
    bound = proved_contraction(net, made, net.bounds("exact")).bound[0]
    received = [[np.nan], *[[0.0]] * 5]
    average = 2.0 / 7.0
    with pytest.warns(bm.BadMessage):
        moved = abs(bm.aggregate(made, [1.0], received, f=1)[0] - average) / (1.0 - average)
    assert 5.0 / 6.0 < moved <= bound


def random_ratio(made: Rule, random: np.random.Generator) -> tuple[float, float]:
    """(what random lies reach, what is proved) at a receiver with uneven weights; lies near the honest ones hurt."""
    honest, liars, dimension = int(random.integers(3, 9)), int(random.integers(1, 3)), int(random.integers(1, 4))
    weights = random_weights(random, honest + liars + 1)
    b = float(weights[1 + honest :].sum())
    models = random.normal(size=(honest + 1, dimension))
    models[random.random(honest + 1) < 0.5] *= random.uniform(0.0, 1.0)
    lies = models[random.integers(0, honest + 1, liars)] * random.uniform(-3.0, 3.0, (liars, 1))
    average = weights[: honest + 1] @ models + b * models[0]
    radius = np.linalg.norm(models - average, axis=1).max()
    got = bm.aggregate(made, models[0], np.vstack([models[1:], lies]), weights, f=liars)
    assert made.contraction is not None and made.contraction.of_h is not None
    h = np.sort(weights[1:])[::-1][:liars].sum()
    return float(np.linalg.norm(got - average) / radius), float(made.contraction.of_h(np.array([h]))[0])


@pytest.mark.parametrize("inner", ["WeightedCooMed", "WeightedTriMean"])
def test_random_lies_do_not_beat_the_bound(inner: str) -> None:
    random, made, closest = np.random.default_rng(11), rule("wnnm", inner=inner), 0.0
    for _ in range(1500):
        reached, proved = random_ratio(made, random)
        assert np.isnan(proved) or reached <= proved
        closest = max(closest, 0.0 if np.isnan(proved) else reached / proved)
    assert closest > 0.2


@pytest.mark.parametrize("inner", DECLARED)
def test_search_does_not_beat_the_bound(inner: str) -> None:
    """`search_contraction` raises `ContradictedProof` where it finds more than is proved."""
    proved, tightest = search_against_the_bound(rule("wnnm", inner=inner), range(3000, 3050), DECLARED[inner], 3)
    assert proved > 50
    assert tightest > 0.4, "the search must come near the bound, or it tests nothing"


def test_search_beats_half_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    network = bm.network("complete", n=10, byzantine=[0])
    whole = rule("wnnm").contraction
    assert whole is not None and whole.of_h is not None
    of_h = whole.of_h
    monkeypatch.setattr(weighted_nnm, "contraction", lambda *_: by_weight(lambda h: 0.5 * of_h(h), "half"))
    proof = proved_contraction(network, rule("wnnm"), network.bounds("exact"))
    with pytest.raises(ContradictedProof):
        search_contraction(network, rule("wnnm"), budget=400, seed=1, dimension=1, proof=proof)


@pytest.mark.parametrize("name", [name for name in rules.names() if rules.build(name).square_error is not None])
def test_square_errors_hold_about_every_point(name: str) -> None:
    random, made = np.random.default_rng(5), rule(name)
    error, closest = made.square_error, 0.0
    assert error is not None
    for _ in range(800):
        honest, liars = int(random.integers(1, 8)), int(random.integers(0, 3))
        if liars > made.largest_f(honest + liars):
            continue
        weights = random_weights(random, honest + liars + 1)
        vectors = random.normal(size=(honest + liars + 1, 2)) * random.choice([0.0, 1.0], (honest + liars + 1, 1))
        vectors[1 + honest :] += random.uniform(-5.0, 5.0)
        point = random.normal(size=2) * random.choice([0.0, 1.0])
        h = np.sort(weights[1:])[::-1][:liars].sum()
        most = float(error(np.array([h]))[0])
        moved = np.sum((bm.aggregate(made, vectors[0], vectors[1:], weights, f=liars) - point) ** 2)
        spread = weights[: honest + 1] @ np.sum((vectors[: honest + 1] - point) ** 2, axis=1)
        assert np.isnan(most) or moved <= most * spread * (1.0 + 1e-9) + 1e-12
        if spread > 0.0 and not np.isnan(most):
            closest = max(closest, float(moved / (most * spread)))
    assert closest > 0.5

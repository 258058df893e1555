"""Tether between the weighted mean and IOS's average, and its proved contraction held against search."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules import tether
from byzmesh.rules.aggregate import rule
from byzmesh.theory.contraction import ContradictedProof, cut_weight, proved_contraction
from byzmesh.theory.mixing import doubly_stochastic, virtual_mixing
from byzmesh.theory.search.climb import search_contraction
from tests.rules.test_reprieve import search_against_the_bound, shell


def test_where_all_are_equally_far_it_is_the_weighted_mean() -> None:
    points = np.concatenate([np.eye(6), -np.eye(6)])[[0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]]
    weights = np.full(13, 1 / 13)
    got = bm.aggregate("tether", np.zeros(6), points, weights, f=3)
    np.testing.assert_allclose(got, bm.aggregate("weimean", np.zeros(6), points, weights), atol=1e-2)
    assert np.abs(bm.aggregate("ios", np.zeros(6), points, weights, f=3)).max() > 0.05


def test_a_far_lie_is_left_out_and_a_near_one_is_shortened() -> None:
    received = shell(np.random.default_rng(1), 9)
    own, near, far = np.full(40, 5.0), received.copy(), received.copy()
    near[0] = 5.0 + 2.0 * (near[0] - 5.0)
    far[0] = 5.0 + 50.0 * (far[0] - 5.0)
    unheard = list(far)
    unheard[0] = np.full(40, np.nan)
    alone = bm.aggregate("tether", own, received[1:], np.full(9, 1 / 9), f=1)
    got = bm.aggregate("tether", own, far, np.full(10, 0.1), f=1)
    assert np.abs(got - alone).max() < 0.1
    heavier = bm.aggregate("weimean", own, near, np.full(10, 0.1))
    shortened = bm.aggregate("tether", own, near, np.full(10, 0.1), f=1)
    lie = near[0] - 5.0
    assert 0.0 < (shortened - 5.0) @ lie < (heavier - 5.0) @ lie


def test_the_certificate_proves_the_bound() -> None:
    network = bm.network("complete", n=13, byzantine=[0])
    proof = proved_contraction(network, rule("tether"), network.bounds("exact"))
    h = cut_weight(network, network.bounds("exact"))
    q = (4.5 + 3.0 * h) / (1.0 - 3.0 * h)
    np.testing.assert_allclose(proof.bound, h * (3.0 + q) / (1.0 - 2.0 * h), rtol=1e-12)
    too_many = bm.network("complete", n=6, byzantine=[0, 1])
    assert np.isnan(proved_contraction(too_many, rule("tether"), too_many.bounds("exact")).rho)
    assert np.isnan(proved_contraction(network, rule("tether"), network.bounds(0)).rho)
    for name in ("paper/two-castle", "paper/er-12", "paper/octopus"):
        mixing = virtual_mixing(bm.network(name), rule("tether"))
        assert mixing.source == "theory" and doubly_stochastic(mixing.matrix)


def test_search_does_not_beat_the_bound() -> None:
    proved, tightest = search_against_the_bound(rule("tether"), range(2000, 2120))
    assert proved > 120
    assert tightest > 0.25, "the search must come near the bound, or it tests nothing"


def test_search_beats_a_tenth_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tether.moved_at_most
    monkeypatch.setattr(tether, "moved_at_most", lambda h, c: 0.1 * whole(h, c))
    network = bm.network("complete", n=10, byzantine=[0])
    proof = proved_contraction(network, rule("tether"), network.bounds("exact"))
    with pytest.raises(ContradictedProof):
        search_contraction(network, rule("tether"), budget=400, seed=1, proof=proof)


def test_c_is_checked() -> None:
    with pytest.raises(ConfigError, match="rule Tether: c must be a number of at least 1"):
        rule("tether", c=0.5)

"""The way of large sparse networks, a few receivers at a time, against the other ways: same decisions, same models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.compiled import limit_threads
from byzmesh.rules.base import Block, rules
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.blocks import Sources
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.gram.products import inner_blocks, mix
from byzmesh.simulation.exchange import Exchange, aggregate_all, forge

LIES = ("sign-flipping", "isolation", "dissensus", "alie", "gaussian", "sample-duplicating", "huge", "none")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three receivers at a time, and threads from four receivers on."""
    monkeypatch.setattr(strategy, "TOGETHER", 3)
    monkeypatch.setattr(strategy, "RECEIVERS", 4)
    with limit_threads(2):
        yield


def both_ways(monkeypatch: pytest.MonkeyPatch, call: Any) -> tuple[Any, Any]:
    """What `call` returns by blocks, and otherwise."""
    results = []
    for blocks in (True, False):
        monkeypatch.setattr(strategy, "prefers_blocks", lambda *_, blocks=blocks: blocks)
        results.append(call())
    return results[0], results[1]


def network(seed: int) -> bm.Network:
    return bm.network("erdos-renyi", n=24, p=0.35, byzantine=5, seed=seed)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("attack", LIES)
@pytest.mark.parametrize("name", ["IOS", "FABA", "Krum", "NNA", "CC", "SCC", "GeoMed", "WeiMean", "ClippedGossip"])
def test_rules_decide_the_same_by_blocks(name: str, attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        net = network(seed)
        models = np.random.default_rng(seed).normal(size=(len(net.honest), 1111)) + 5.0
        forged = None if attack == "none" else forge(attack, net, models)
        options: dict[str, Any] = {"tau": 3.0} if name in ("CC", "SCC") else {}
        f = np.minimum(net.bounds("exact"), max(0, min(bm.rule(name, **options).largest_f(int(d)) for d in net.degree)))

        def call() -> Any:
            return aggregate_all(name, net, models, forged, f, **options)

        blocks, whole = both_ways(monkeypatch, call)
        np.testing.assert_allclose(blocks.models, whole.models, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(blocks.coefficients, whole.coefficients, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["combination", "long combination", "long and messages", "messages", "anchors"])
def test_products_and_mixtures_are_those_of_the_vectors(kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "prefers_blocks", lambda *_: True)
    draw = np.random.default_rng(3)
    own = draw.normal(size=(9, 1030)).astype(dtype)
    count = 40 if "long" in kind else 4
    terms = (draw.integers(0, 9, (5, count)), draw.normal(size=(5, count)) * (draw.random((5, count)) < 0.8))
    given: dict[str, Any] = {"combination": terms}
    if kind in ("messages", "anchors"):
        given = {}
    if "combination" not in kind:
        given["messages"] = draw.normal(size=(5, 1030)).astype(dtype)
    if kind == "anchors":
        given["anchors"] = draw.normal(size=(9, 1030)).astype(dtype)
    pool = bm.rules.gram.pool.Pool(own, **given)
    index = np.concatenate([np.arange(9)[:, None], draw.integers(0, pool.size, (9, 5))], axis=1)
    index[2, 3] = index[2, 1]  # two senders tell the same
    present = draw.random(index.shape) < 0.8
    present[:, 0] = True
    rows = np.asarray(pool.rows(), np.float64)
    away = np.where(present[:, :, None], rows[index] - rows[index[:, :1]], 0.0)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    wanted = away @ away.transpose(0, 2, 1)
    np.testing.assert_allclose(
        inner_blocks(pool, index, present), wanted, rtol=tolerance, atol=tolerance * wanted.max()
    )
    coefficient = draw.normal(size=index.shape)
    wanted = np.einsum("rk,rkd->rd", coefficient, rows[index])
    np.testing.assert_allclose(mix(pool, index, coefficient), wanted, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 7, 8, 33, 513])
def test_any_number_of_columns_and_slots(width: int, dtype: Any) -> None:
    """Registers hold 4 to 16 numbers, blocks 512, tiles 2 x 4 products: whatever is left over is computed, too."""
    draw = np.random.default_rng(width)
    own = draw.normal(size=(9, width)).astype(dtype)
    terms = (draw.integers(0, 9, (3, 4)), draw.normal(size=(3, 4)))
    rows = np.concatenate([own.astype(np.float64), np.einsum("qj,qjd->qd", terms[1], own[terms[0]])])
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for slots in range(1, 15):
        pool = bm.rules.gram.pool.Pool(own, None, terms)
        index = draw.integers(0, len(rows), (5, slots))
        index[:, 0] %= 9
        needed, sources = np.arange(5) != 3, Sources(pool, slots)
        away = (rows[index] - rows[index[:, :1]]) * needed[:, None, None]
        wanted = away @ away.transpose(0, 2, 1)
        given = sources.products(index, np.ones(index.shape, bool), needed)
        np.testing.assert_allclose(given, wanted, atol=tolerance * max(1.0, wanted.max()))
        coefficient, out = draw.normal(size=index.shape), np.empty((5, width), dtype)
        sources.mix(index, coefficient, out)
        np.testing.assert_allclose(out, np.einsum("rk,rkd->rd", coefficient, rows[index]), atol=20 * tolerance)


def test_short_combinations_are_never_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "prefers_blocks", lambda *_: True)
    monkeypatch.setattr(bm.rules.gram.pool.Pool, "dense_messages", lambda self: pytest.fail("built"))
    net = network(0)
    models = np.random.default_rng(0).normal(size=(len(net.honest), 40))
    for name in ("ios", "weimean"):
        assert np.isfinite(aggregate_all(name, net, models, forge("sign-flipping", net, models)).models).all()


@pytest.mark.parametrize("name", rules.names())
def test_a_rule_that_says_so_needs_no_distances_where_f_is_zero(name: str) -> None:
    options = {"inner": "ios"} if "inner" in rules.entry(name).options else {}
    try:
        rule = rules.build(name, **options)
    except bm.errors.ConfigError:
        return
    if not rule.weights_alone_at_zero:
        return
    assert rule.coefficients is not None
    draw = np.random.default_rng(0)
    weight, present = draw.dirichlet(np.ones(6), 20), draw.random((20, 6)) < 0.7
    present[:, 0] = True
    weight = np.where(present, weight, 0.0)
    points = draw.normal(size=(20, 6, 3))
    inner = (points - points[:, :1]) @ (points - points[:, :1]).transpose(0, 2, 1)
    zero = np.zeros(20, np.int64)
    chosen = [
        rule.coefficients(Block(inner=given, weight=weight, present=present, f=zero, receiver=zero, tie=1e-12))
        for given in (np.where(present[:, :, None] & present[:, None], inner, 0.0), np.zeros_like(inner))
    ]
    np.testing.assert_array_equal(chosen[0], chosen[1])


def test_some_rules_say_so() -> None:
    assert {name for name in ("IOS", "FABA", "LazyIOS", "NNA", "MDA") if rules.build(name).weights_alone_at_zero} == {
        "IOS", "FABA", "LazyIOS", "NNA", "MDA",
    }  # fmt: skip


def test_where_f_is_zero_no_products_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(1)
    exchange, bound = Exchange(net), net.bounds("exact")
    assert (bound == 0).any() and (bound > 0).any()
    asked: list[Any] = []
    from byzmesh.rules.gram import blocks

    class Spy(blocks.Sources):
        def products(self, index: Any, present: Any, needed: Any) -> Any:
            asked.append(needed)
            return super().products(index, present, needed)

    monkeypatch.setattr(blocks, "Sources", Spy)
    monkeypatch.setattr(strategy, "prefers_blocks", lambda *_: True)
    models = np.random.default_rng(0).normal(size=(len(net.honest), 30))
    aggregate_all("ios", net, models, forge("sign-flipping", net, models))
    assert np.concatenate(asked).tolist() == (bound > 0).tolist()
    assert len(exchange.receiver) == len(bound)


def test_a_pool_may_have_combinations_and_vectors() -> None:
    """Both ways to compute take the rows in the order of the pool: own, combinations, messages, anchors."""
    random = np.random.default_rng(4)
    own, messages, anchors = (random.normal(size=(count, 700)) for count in (6, 4, 2))
    combination = random.integers(0, 6, (3, 2)), random.normal(size=(3, 2))
    pool = Pool(own, messages, combination, anchors=anchors)
    built = (combination[1][:, :, None] * own[combination[0]]).sum(axis=1)
    rows = np.concatenate([own, built, messages, anchors])
    np.testing.assert_allclose(pool.rows(), rows)
    index = np.concatenate([np.arange(6)[:, None], random.permuted(np.tile(np.arange(15), (6, 1)), axis=1)], axis=1)
    present, coefficient = np.ones(index.shape, bool), random.normal(size=index.shape)
    away = rows[index] - own[:, None]
    inner = away @ away.transpose(0, 2, 1)
    sources = Sources(pool, index.shape[1])
    np.testing.assert_allclose(sources.products(index, present, np.ones(6, bool)), inner, atol=1e-9)
    np.testing.assert_allclose(inner_blocks(pool, index, present), inner, atol=1e-9)
    mixtures, out = (coefficient[:, :, None] * rows[index]).sum(axis=1), np.empty_like(own)
    sources.mix(index, coefficient, out)
    np.testing.assert_allclose(out, mixtures, atol=1e-9)
    np.testing.assert_allclose(mix(pool, index, coefficient), mixtures, atol=1e-9)

"""`aggregate` prepares once what every call repeats: the same answers, bit for bit, as without."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.compiled import limit_threads
from byzmesh.errors import ConfigError, InfeasibleBound, WeakBound
from byzmesh.rules import aggregate as module
from byzmesh.rules.alone import aggregate_at_once, named_rule, prepared_alone
from byzmesh.rules.base import rules


def prepared_rules() -> list[str]:
    """Rules without memory that can be built without options and declare what they consist of."""
    found = []
    for name in rules.names():
        try:
            rule = rules.build(name)
        except ConfigError:
            continue
        parts = rule.consists_of
        if parts is not None and parts.apply is rule.apply and rule.init(np.zeros((1, 1))) is None:
            found.append(name)
    return found


def unprepared(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(module, "prepared_alone", lambda *_: None)
        patch.setattr(module, "aggregate_at_once", lambda *_: None)
        return bm.aggregate(*arguments, **options)


def vectors(count: int, columns: int, dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(count, columns)).astype(dtype)


@pytest.mark.parametrize("name", prepared_rules())
def test_prepared_answers_are_the_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rule, weights = bm.rule(name), np.arange(1.0, 9.0) / 36.0
    for dtype, columns in (("float32", 70), ("float64", 3), ("float32", 700)):
        for seed in range(2):
            rows = vectors(8, columns, dtype, seed)
            rows[3] *= 1e3
            for given in (None, weights):
                one = bm.aggregate(rule, rows[0], rows[1:], given)
                assert prepared_alone(rule, module._weights(given, 7), 1, rows) is not None
                np.testing.assert_array_equal(one, unprepared(monkeypatch, rule, rows[0], rows[1:], given))


@pytest.mark.parametrize("name", prepared_rules())
def test_prepared_answers_to_many_messages_are_the_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rule = bm.rule(name)
    for dtype, count, columns in (("float32", 60, 70), ("float64", 45, 3), ("float32", 45, 1300)):
        rows = vectors(count, columns, dtype)
        rows[3] *= 1e3
        f = min(2, rule.largest_f(count - 1))
        one = bm.aggregate(rule, rows[0], rows[1:], f=f)
        np.testing.assert_array_equal(one, unprepared(monkeypatch, rule, rows[0], rows[1:], f=f))


def test_long_vectors_are_prepared_unless_threads_divide_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, rule = vectors(5, 1 << 17, "float32"), bm.rule("nna")
    call = rule, rows[0], rows[1:], 1, bm.Round()
    one = aggregate_at_once(*call)
    np.testing.assert_array_equal(one, unprepared(monkeypatch, *call[:3], f=1))
    with limit_threads(2):
        assert aggregate_at_once(*call) is None
        np.testing.assert_allclose(bm.aggregate(*call[:3], f=1), one, rtol=1e-5)


def test_a_usual_call_is_answered_at_once_and_only_a_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, rule = vectors(8, 30, "float32"), bm.rule("ios")
    usual = rule, rows[0], rows[1:], 1, bm.Round()
    np.testing.assert_array_equal(aggregate_at_once(*usual), unprepared(monkeypatch, *usual[:3], f=1))
    for own, received in (
        (rows[0].astype("float64"), rows[1:]),
        (rows[0], rows[1:, ::-1]),
        (rows[0], rows[1:, :20]),
        (rows[0], list(rows[1:])),
        (rows[0].astype("float16"), rows[1:].astype("float16")),
        (rows[0].astype(">f4"), rows[1:].astype(">f4")),
    ):
        assert aggregate_at_once(rule, own, received, 1, bm.Round()) is None
    wrong: Any
    for wrong in (-1, True, 1.5, [1]):
        with pytest.raises(ConfigError, match="f must be"):
            bm.aggregate(*usual[:3], f=wrong)


def test_there_are_rules_to_prepare() -> None:
    assert {"IOS", "NNA", "Krum", "TriMean", "CooMed", "WeiMean"} <= set(prepared_rules())


@pytest.mark.parametrize("name", ["ios", "nna", "trimean", "krum"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e25, 1.0])
@pytest.mark.parametrize("count", [8, 60])
def test_unusual_messages_are_answered_as_before(
    monkeypatch: pytest.MonkeyPatch, name: str, bad: float, count: int
) -> None:
    rows = vectors(count, 40, "float32")
    rows[2, 5] = bad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", module.BadMessage)
        one = bm.aggregate(name, rows[0], rows[1:])
        np.testing.assert_array_equal(one, unprepared(monkeypatch, name, rows[0], rows[1:]))
    with pytest.raises(ConfigError, match="own must be finite"):
        bm.aggregate(name, np.full(40, np.nan, np.float32), rows[3:])


def test_a_message_beyond_float32_is_silence_and_no_warning_of_numpy() -> None:
    rows = vectors(6, 4, "float32")
    told = [*rows[1:], np.full(4, 1e300)]
    with pytest.warns(module.BadMessage, match="not finite") as said:
        one = bm.aggregate("ios", rows[0], told)
    assert [warning.category for warning in said] == [module.BadMessage]
    with pytest.warns(module.BadMessage):
        np.testing.assert_allclose(one, bm.aggregate("ios", rows[0], [*rows[1:], None]), rtol=1e-5)


def test_a_bound_that_is_too_large_is_said_every_time() -> None:
    rows = vectors(6, 4, "float64")
    for _ in range(2):
        with pytest.warns(WeakBound):
            bm.aggregate("krum", rows[0], rows[1:], f=3)
        with pytest.raises(InfeasibleBound):
            bm.aggregate("trimean", rows[0], rows[1:], f=3)


def test_distances_from_own_alone_are_those_of_the_whole_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    from byzmesh.rules.gram import rule as gram

    for dtype, count, columns in (("float32", 9, 1303), ("float64", 20, 700), ("float32", 9, 5)):
        rows = vectors(count, columns, dtype)
        near = unprepared(monkeypatch, "nna", rows[0], rows[1:], f=3)
        with monkeypatch.context() as patch:
            patch.setattr(gram, "own_blocks", lambda *_: None)
            np.testing.assert_array_equal(near, unprepared(monkeypatch, "nna", rows[0], rows[1:], f=3))


def test_a_name_that_stands_for_another_rule_is_not_remembered() -> None:
    rows = vectors(4, 3, "float64")
    try:
        for scale in (2.0, 3.0):
            rules._entries.pop("echo", None)
            rules._names.pop("echo", None)
            bm.register_rule("echo")(lambda scale=scale: bm.gram_rule("echo", lambda block: scale * (block.weight > 2)))
            assert bm.aggregate("echo", rows[0], rows[1:]).tolist() == [0.0, 0.0, 0.0]
            assert named_rule("echo") is named_rule("echo")
    finally:
        rules._entries.pop("echo", None)
        rules._names.pop("echo", None)


def test_threads_do_not_share_what_is_prepared() -> None:
    rule, inputs = bm.rule("ios"), [vectors(9, 3000, "float32", seed) for seed in range(8)]
    want = [bm.aggregate(rule, rows[0], rows[1:], f=2) for rows in inputs]
    with ThreadPoolExecutor(4) as pool:
        for got, one in zip(pool.map(lambda rows: bm.aggregate(rule, rows[0], rows[1:], f=2), inputs * 20), want * 20):
            np.testing.assert_array_equal(got, one)

"""The algorithms of the paper's appendix in the generic form equal the rules of their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError, UnknownName
from byzmesh.rules.base import rules
from byzmesh.rules.bases import coverage
from tests.rules.cases import extras, largest_f, random_weights
from tests.rules.contract import inbox_of, run
from tests.rules.oracles import ORACLES

ALGORITHMS: list[tuple[str, dict[str, Any]]] = [
    ("TriMean", {}),
    ("DRSA", {"penalty": 0.3, "at": "half"}),
    ("DRSA", {"penalty": 0.3, "at": "start"}),
    ("SCC", {"tau": 0.7}),
    ("UBAR", {"rho": 0.6, "alpha": 0.4, "fallback": "own"}),
    ("UBAR", {"rho": 0.6, "alpha": 0.4, "fallback": "best"}),
    ("SimRew", {"divergence": "kl"}),
    ("CC", {"tau": 0.7}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), ALGORITHMS, ids=str)
def test_generic_form_equals_the_rule(name: str, options: dict[str, Any], dtype: Any) -> None:
    random = np.random.default_rng(4)
    form = bm.generic(*coverage(name, **options))
    for neighbours in (1, 2, 4, 7):
        for f in range(largest_f(name, neighbours) + 1):
            own, previous, memory = random.normal(size=(3, 9)).astype(dtype)
            received = random.normal(size=(neighbours, 9)).astype(dtype)
            weights = random_weights(random, neighbours + 1)
            _, more = extras(name, options, previous, memory, 0.25)
            want = bm.aggregate(name, own, received, weights, f, **{**options, **more})
            got = bm.aggregate(form, own, received, weights, f, **more)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 if dtype is np.float64 else 2e-6)


@pytest.mark.parametrize(("name", "options"), ALGORITHMS, ids=str)
def test_the_self_weight_is_the_one_that_the_rule_reports(name: str, options: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    own, received = random.normal(size=6), random.normal(size=(7, 6))
    rule, form = rules.build(name, **options), bm.generic(*coverage(name, **options))
    one = run(rule, inbox_of(rule, own, received, random_weights(random, 8), 1))
    other = run(form, inbox_of(form, own, received, random_weights(np.random.default_rng(6), 8), 1))
    if name in ("TriMean", "DRSA"):
        assert one.self_weight is not None and other.self_weight is not None
        assert one.self_weight.tolist() == pytest.approx(other.self_weight.tolist())


@pytest.mark.parametrize("block", [1, 4, None])
def test_byrdie_is_trimeans_generic_form_on_the_coordinates_in_turn(block: int | None) -> None:
    random = np.random.default_rng(7)
    form = bm.generic(*coverage("TriMean"))
    for number in range(12):
        half, start, received = random.normal(size=9), random.normal(size=9), random.normal(size=(6, 9))
        now = bm.Round(number=number)
        got = bm.aggregate("byrdie", half, received, f=2, previous=start, round=now, block=block)
        first = 0 if block is None else number * block
        turn = np.isin(np.arange(9), np.arange(first, first + (block or 9)) % 9)
        want = np.where(turn, bm.aggregate(form, start, received, f=2) + half - start, start)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["GeoMed", "Krum", "CooMed", "TriMean", "IOS", "MeaMed", "Phocas", "CAF", "SMEA"])
@pytest.mark.parametrize("r", [0.0, 0.3])
def test_any_rule_can_be_the_base(name: str, r: float) -> None:
    random = np.random.default_rng(6)
    own, received, weights = random.normal(size=8), random.normal(size=(7, 8)), random_weights(random, 8)
    want = ORACLES["generic"](own, received, weights, 2, rule=name, r=r)
    np.testing.assert_allclose(bm.aggregate(bm.generic(name, r), own, received, weights, 2), want, atol=1e-9)
    spec = {"name": "generic", "inner": name, "r": r}
    np.testing.assert_allclose(bm.aggregate(spec, own, received, weights, 2), want, atol=1e-9)


def test_mistakes_in_the_generic_form_are_named() -> None:
    with pytest.raises(ConfigError, match=r"rule generic: r must be a number in \[0, 1\), got 1.0"):
        bm.generic("ios", 1.0)
    with pytest.raises(UnknownName, match="the appendix has no algorithm 'Trimean': did you mean 'TriMean'"):
        coverage("Trimean")

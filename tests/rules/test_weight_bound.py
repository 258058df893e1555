"""b, a bound on what lies weigh, in place of f, a bound on how many they are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError, WeakBound
from byzmesh.rules.base import rules

WEIGHTS = [0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
"""Own first; one heavy neighbour, four light ones."""
HONEST = [[1.0], [0.5], [-0.5], [-1.0]]


@pytest.mark.parametrize("rule", ["ios", "lazyios", "reprieve", "gts", "rtc"])
def test_rules_that_weigh_cut_no_more_than_b(rule: str) -> None:
    far = [[0.2], [50.0], [60.0], [0.1], [0.0]]  # two light lies weigh 0.2
    assert abs(bm.aggregate(rule, [0.0], far, WEIGHTS, b=0.2)[0]) < 1.0
    assert abs(bm.aggregate(rule, [0.0], far, WEIGHTS, b=0.1)[0]) > 1.0, "one lie has to stay"


def test_a_heavy_neighbour_is_never_cut_by_less_than_its_weight() -> None:
    heavy = [[8.0], *HONEST]
    assert bm.aggregate("ios", [0.0], heavy, WEIGHTS, b=0.29)[0] == pytest.approx(0.3 * 8.0)
    assert bm.aggregate("ios", [0.0], heavy, WEIGHTS, b=0.3)[0] == pytest.approx(0.0)


@pytest.mark.parametrize("rule", ["faba", "trimean", "meamed", "nna"])
def test_rules_that_count_take_the_most_that_b_can_be(rule: str) -> None:
    received = [[0.3], [50.0], [0.2], [0.1], [0.0]]
    by_weight = bm.aggregate(rule, [0.0], received, WEIGHTS, b=0.25)
    assert by_weight == pytest.approx(bm.aggregate(rule, [0.0], received, WEIGHTS, f=2))


def test_b_of_the_f_heaviest_is_f_on_equal_weights() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        own, received = draw.normal(size=3), draw.normal(size=(7, 3))
        for rule in ("ios", "lazyios", "reprieve", "tether", "gts", "clippedgossip", "cs+"):
            by_count = bm.aggregate(rule, own, received, f=2)
            assert bm.aggregate(rule, own, received, b=0.25) == pytest.approx(by_count, abs=1e-12), rule


@pytest.mark.parametrize("rule", rules.names())
def test_every_rule_takes_b(rule: str) -> None:
    """Eleven neighbours of equal weight: what two of them weigh is as good as their number, for every rule."""
    draw, made = np.random.default_rng(1), rules.build(rule)
    own, received = draw.normal(size=3), draw.normal(size=(11, 3))
    more: dict[str, Any] = {"previous": own} if made.needs_previous or made.sends == "start" else {}
    if made.needs_loss:
        more["loss"] = lambda vector: float(np.abs(vector).sum())
    by_weight, by_count = (bm.aggregate(rule, own, received, **told, **more) for told in ({"b": 2 / 12}, {"f": 2}))
    assert by_weight == pytest.approx(by_count, abs=1e-12)


def test_a_b_that_the_rule_does_not_resist_is_warned_of() -> None:
    """A trimmed mean of two neighbours trims nobody, whatever b says; IOS may cut one of them."""
    with pytest.warns(WeakBound, match="b = 0.34 lets 1 of 2 received vectors lie, rule TriMean resists no more"):
        bm.aggregate("trimean", [0.0], [[1.0], [50.0]], b=0.34)
    with pytest.warns(WeakBound, match="b = 0.6 lets lies weigh half or more, which no rule resists; give a smaller b"):
        bm.aggregate("ios", [0.0], [[1e6], [0.0]], [0.1, 0.6, 0.3], b=0.6)
    ring = {"name": "ring", "n": 6, "byzantine": [2]}
    known: dict[str, Any] = {"problem": {"name": "quadratic", "dimension": 2}, "network": ring, "rounds": 1}
    with pytest.warns(WeakBound, match=r"at workers 0, 1, 3, 4, .* \(5 of 5\)"):
        bm.simulate(**known, rule="trimean", attack="sign-flipping", b=0.34)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakBound)
        bm.aggregate("ios", [0.0], [[1.0], [50.0]], b=0.34)
        bm.simulate(**known, rule="weimean", attack="sign-flipping", b=0.34)
        bm.simulate(**known, rule="weimean", attack="sign-flipping", f="tolerable")


def test_mixtures_with_lies_weigh_more_than_lies() -> None:
    """Two lies of eleven weigh 2/12, but their groups up to 4/12: two groups have to be cut."""
    far = [[1e3], [1e3], *([[0.0]] * 9)]
    worst = max(abs(bm.aggregate("bucketing", [0.0], far, b=2 / 12, round=bm.Round(number=k))[0]) for k in range(20))
    assert worst < 1.0


def test_f_and_b_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="one of the two"):
        bm.aggregate("ios", [0.0], HONEST, f=1, b=0.1)
    with pytest.raises(ConfigError, match="one of the two"):
        bm.simulate(network="paper/two-castle", f=1, b=0.1)


def test_runs_take_b_and_tolerable() -> None:
    same: dict[str, Any] = {"network": "paper/two-castle", "problem": "quadratic", "attack": "huge", "rounds": 3}
    net = bm.network("paper/two-castle")
    run = bm.simulate(b=0.2, **same)
    assert run.config["f"] == {"weight": 0.2}
    assert run.status == "finished"
    assert bm.simulate(b=0.01, **same).status == "diverged", "no neighbour is that light: nobody is cut"
    tolerable = bm.prepare(f="tolerable", **same)
    assert tolerable.bound.tolist() == net.bounds("tolerable").tolist()
    assert tolerable.run().status == "finished"

"""A rule on a server: against definitions written as loops, and against liars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.integrations.layout import Layout
from byzmesh.integrations.server import ServerRule
from byzmesh.rules.base import rules

REFUSED = {"SimRew", "ByRDiE", "push-sum"}
"""Rules that need a gradient step of the receiver's own."""
WITH_F = [name for name in rules.names() if name not in REFUSED and rules.build(name).uses_f]


def on_server(rule: str, f: int = 1, **options: Any) -> Any:
    """A ServerRule whose results need no check for None."""
    return ServerRule(rule, f, **options)


def ios_by_hand(updates: np.ndarray, shares: np.ndarray, f: int) -> np.ndarray:
    """The weighted mean after f times cutting what is farthest from the weighted mean."""
    kept = list(range(len(updates)))
    for _ in range(f):
        mean = sum(shares[i] * updates[i] for i in kept) / sum(shares[i] for i in kept)
        kept.remove(max(kept, key=lambda i: float(np.linalg.norm(updates[i] - mean))))
    return np.asarray(sum(shares[i] * updates[i] for i in kept) / sum(shares[i] for i in kept))


def clients(seed: int, n: int = 9, dimension: int = 5) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=dimension), random.normal(size=(n, dimension))


@pytest.mark.parametrize("seed", range(5))
def test_the_global_model_has_no_vote_in_rules_that_weigh(seed: int) -> None:
    model, updates = clients(seed)
    counts = np.random.default_rng(seed).uniform(1.0, 2.0, 9)
    capped = np.minimum(counts, np.sort(counts)[-3])  # f = 2: the third largest claim
    ios = on_server("ios", f=2)
    np.testing.assert_allclose(ios(model, updates, counts), ios_by_hand(updates, capped, 2), rtol=1e-9)
    np.testing.assert_allclose(ios(model, updates), ios(model + 100.0, updates), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_symmetric_rules_see_the_clients_models_alone(seed: int) -> None:
    model, updates = clients(seed)
    np.testing.assert_allclose(on_server("coomed", f=2)(model, updates), np.median(updates, axis=0))
    krum = on_server("krum", f=2)(model, updates)
    scores = [np.sort(((updates - update) ** 2).sum(axis=1))[1 : 9 - 2 - 1].sum() for update in updates]
    np.testing.assert_allclose(krum, updates[int(np.argmin(scores))])


def test_rules_that_keep_their_own_count_the_global_model_once() -> None:
    model, updates = np.zeros(1), np.array([[1.0], [2.0], [3.0], [4.0], [90.0]])
    assert on_server("trimean", f=1)(model, updates)[0] == pytest.approx((0.0 + 2.0 + 3.0 + 4.0) / 4.0)
    assert on_server("scc", tau=0.5)(model, updates)[0] == pytest.approx(0.5)  # five pulls of 0.5, a fifth each


def test_a_memory_is_the_global_model() -> None:
    model, updates = np.full(1, 10.0), np.array([[11.0], [12.0], [10.0]])
    found = on_server("cc", tau=1.0, centre="memory", f=0)(model, updates)
    assert found[0] == pytest.approx(10.0 + (0.0 + 1.0 + 1.0 + 0.0) / 4.0)


@pytest.mark.parametrize("name", WITH_F)
@pytest.mark.parametrize("lie", [1e6, 1e20, 1e30, 1e38, np.nan, np.inf])
def test_no_liar_moves_the_model_out_of_the_honest_range(name: str, lie: float) -> None:
    """Wherever the liars sit, first too: there a careless server would centre its distances."""
    rule = on_server(
        name, f=1, loss=(lambda x: float((x.astype(np.float64) ** 2).sum())) if rules.build(name).needs_loss else None
    )
    random = np.random.default_rng(3)
    model = random.normal(size=4).astype(np.float32)
    for place in (0, 4, 8):
        updates = (model + random.normal(size=(9, 4))).astype(np.float32)
        reach = np.abs(updates - model).max()
        updates[place] = np.sign(random.normal(size=4)) * lie
        found = rule(model, list(updates))
        assert np.abs(found - model).max() <= reach * 1.001, (name, lie, place)


def test_a_far_lie_in_the_first_place_does_not_round_the_others_away() -> None:
    """Distances are computed about the vector that is called own: about a lie at 1e30 all others would be equal."""
    model, updates = clients(1)
    honest = on_server("geomed", f=1)(model, updates[1:])
    lied = on_server("geomed", f=1)(model, np.vstack([np.full(5, 1e30), updates[1:]]))
    assert np.linalg.norm(lied - honest) < 1.0
    krum = on_server("krum", f=1)(model, np.vstack([np.full(5, 1e30), updates[1:]]))
    assert np.array_equal(krum, on_server("krum", f=1)(model, np.vstack([updates[1:], np.full(5, 1e30)])))


def test_a_claim_of_many_examples_buys_no_vote() -> None:
    model, updates = np.zeros(1), np.array([[1.0], [1.1], [0.9], [1.0], [50.0]])
    for count in (1e12, float("inf"), float("nan"), -5.0):
        found = on_server("ios", f=1)(model, updates, [10.0, 20.0, 10.0, 10.0, count])
        assert 0.9 <= found[0] <= 1.1, count


def test_with_too_few_models_the_global_one_stays() -> None:
    model, updates = clients(0, n=5)
    rule = on_server("ios", f=2)
    assert rule(model, updates) is not None
    assert rule(model, [*updates[:4], None]) is None
    assert rule(model, [*updates[:4], np.zeros(4)]) is None  # another shape
    assert rule(model, []) is None
    assert on_server("bulyan", f=1)(model, updates) is None  # it needs 4 f + 3 models


def test_what_cannot_work_is_said_in_one_line() -> None:
    for name in REFUSED:
        with pytest.raises(ConfigError, match="a server takes none"):
            ServerRule(name)
    with pytest.raises(ConfigError, match="pass loss="):
        ServerRule("zeno")
    with pytest.raises(InfeasibleBound):
        ServerRule("bulyan", f=2).check(9)
    with pytest.raises(ConfigError, match="one entry per client"):
        on_server("ios")(np.zeros(1), np.ones((3, 1)), [1.0])


def test_a_layout_keeps_dtypes_and_whole_numbers() -> None:
    model = {"a": np.ones((2, 1), np.float16), "n": np.array([7]), "b": np.zeros(3, np.float64)}
    layout = Layout.of(model)
    vector: Any = layout.vector(model)
    back = layout.arrays(vector, model)
    assert {name: (array.dtype, array.tolist()) for name, array in back.items()} == {
        name: (array.dtype, array.tolist()) for name, array in model.items()
    }
    assert layout.vector({**model, "a": np.ones((1, 2))}) is None
    assert layout.vector({**model, "a": np.array([["x"], ["y"]])}) is None
    assert layout.vector([1, 2]) is None
    with pytest.raises(ConfigError, match="floating-point"):
        Layout.of({"n": np.array([1])})


def test_every_rule_that_needs_no_step_of_its_own_runs() -> None:
    model, updates = clients(0, n=12)
    for name in rules.names():
        if name not in REFUSED:
            found = ServerRule(name, f=1, loss=lambda x: float((x**2).sum()))(model, updates)
            assert found is not None and np.isfinite(found).all(), name

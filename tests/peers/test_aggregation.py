"""A peer's rule gives what `Rule.apply` gives, bit for bit, whoever answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.peers.aggregation import Aggregation
from byzmesh.round import Round
from byzmesh.rules.inbox import make_inbox

DIMENSION, NEIGHBOURS = 37, 6
EVERYBODY = list(range(NEIGHBOURS))
ANSWERS: tuple[list[int], ...] = (EVERYBODY, EVERYBODY, [0, 2, 3, 4, 5], [1, 2, 4], [5], [], EVERYBODY)


def drawn(rng: np.random.Generator, dtype: str, far: float) -> tuple[Any, Any]:
    """Its own half step (D,), and messages (d, D) of which one is far away."""
    messages = rng.normal(size=(NEIGHBOURS, DIMENSION))
    messages[3] *= far
    return rng.normal(size=DIMENSION).astype(dtype), messages.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1.0, 1e18])
@pytest.mark.parametrize(
    "rule", ["ios", "weimean", "scc", "faba", "trimean", "coomed", {"name": "cc", "centre": "memory"}]
)
def test_the_same_as_the_rule(rule: Any, far: float, dtype: str) -> None:
    rng, made = np.random.default_rng(3), bm.rule(rule)
    aggregation, state, expected_state = Aggregation(made, me=2), None, None
    weight, f = rng.dirichlet(np.ones(NEIGHBOURS + 1))[None], np.array([2])
    for number, answers in enumerate(ANSWERS):
        half, messages = drawn(rng, dtype, far)
        came = np.isin(np.arange(NEIGHBOURS), answers)
        messages[~came] = 0.0
        if number == 0:
            state, expected_state = made.init(half[None]), made.init(half[None])
        round = Round(number=number, total=9, seed=1)
        inbox = make_inbox(
            made,
            half[None],
            weight=weight,
            f=f,
            receiver=np.array([2]),
            messages=messages,
            present=np.concatenate([[True], came])[None],
            round=round,
        )
        expected, expected_state = made.apply(inbox, expected_state)
        facts: Any = {"weight": weight, "f": f, "round": round, "peak": float(np.abs(half).max())}
        outcome, state = aggregation.apply(half, messages, came, state, **facts)
        assert outcome.models.tobytes() == expected.models.tobytes()
        assert outcome.kept.tolist() == expected.kept.tolist()
        assert (outcome.coefficients is None) == (expected.coefficients is None)
        if outcome.coefficients is not None and expected.coefficients is not None:
            assert outcome.coefficients.tobytes() == expected.coefficients.tobytes()


def test_other_weights_and_bounds_count_at_once() -> None:
    rng, made = np.random.default_rng(5), bm.rule("ios")
    aggregation = Aggregation(made, me=0)
    half, messages = drawn(rng, "float32", 1.0)
    came, results = np.ones(NEIGHBOURS, bool), []
    for f, own in ((2, 0.1), (2, 0.7), (0, 0.7)):
        weight = np.full((1, NEIGHBOURS + 1), (1.0 - own) / NEIGHBOURS)
        weight[0, 0] = own
        facts: Any = {"weight": weight, "f": np.array([f]), "round": Round(), "peak": 3.0}
        results.append(aggregation.apply(half, messages, came, None, **facts)[0].models.tobytes())
        assert results[-1] == Aggregation(made, me=0).apply(half, messages, came, None, **facts)[0].models.tobytes()
    assert len(set(results)) == 3

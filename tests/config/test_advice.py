"""Who trains with one class per worker among liars, from a start that shows it, is told why that fails."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import byzmesh as bm
from byzmesh.config.advice import advice
from byzmesh.config.schema import resolve
from byzmesh.errors import Advice

APART: dict[str, Any] = {
    "network": "paper/two-castle",
    "problem": {"name": "softmax", "partition": "one-class"},
    "attack": "sign-flipping",
    "rounds": 1,
}


def test_a_simulation_that_no_rule_withstands_says_so() -> None:
    with pytest.warns(Advice, match=r"no rule here is safe .* guarded to 10%.*recommendation") as told:
        bm.simulate(**APART)
    assert told[0].filename == __file__


@pytest.mark.parametrize(("problem", "start"), [("softmax", True), ("torch", False)])
def test_it_advises_a_start_only_where_the_problem_has_it(problem: str, start: bool) -> None:
    told = advice(resolve({**APART, "problem": {"name": problem, "partition": "one-class"}}))
    assert told is not None and told.endswith("docs/recommendation.md says more")
    assert ("init: normal" in told) == start


@pytest.mark.parametrize(
    "change",
    [
        {"attack": "none"},
        {"profile": "paper"},
        {"problem": {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 0.3}}},
        {"problem": "quadratic"},
    ],
)
def test_others_are_left_alone(change: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Advice)
        bm.simulate(**(APART | change))

"""A plain function as a rule: the same as the rule it writes out, with the same checks as fast rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules


def written_out_mean(own: Any, received: Any, weights: Any, f: int) -> Any:
    """WeiMean in one line."""
    return weights @ np.vstack([own, received])


def written_out_trim(own: Any, received: Any, weights: Any, f: int) -> Any:
    """TriMean: own and what is left of the neighbours without the f least and largest values."""
    kept = np.sort(received, axis=0)[f : len(received) - f]
    return np.vstack([own, kept]).mean(axis=0)


@pytest.fixture
def own_rules() -> Iterator[None]:
    with rules.temporary():
        yield


@pytest.mark.parametrize(("function", "name"), [(written_out_mean, "WeiMean"), (written_out_trim, "TriMean")])
def test_a_function_gives_what_the_rule_gives(function: Any, name: str) -> None:
    network = bm.network("paper/two-castle")
    models = np.random.default_rng(0).normal(size=(10, 7))
    forged = bm.forge("sign-flipping", network, models)
    slow, fast = (bm.aggregate_all(rule, network, models, forged) for rule in (function, name))
    np.testing.assert_allclose(slow.models, fast.models, rtol=1e-12, atol=1e-14)
    assert slow.coefficients is None
    own, received = models[0], models[1:6]
    np.testing.assert_allclose(bm.aggregate(function, own, received), bm.aggregate(name, own, received))


def test_a_run_with_a_function() -> None:
    facts: dict[str, Any] = {
        "problem": "quadratic",
        "network": "paper/two-castle",
        "attack": "alie",
        "rounds": 5,
        "dtype": "float64",
    }
    slow, fast = (bm.simulate(rule=rule, **facts) for rule in (written_out_mean, "weimean"))
    np.testing.assert_allclose(slow.models, fast.models, rtol=1e-9)
    assert slow.config["rule"] == {"name": "written_out_mean"}
    assert bm.simulate(rule=written_out_mean, profile="paper", **{**facts, "rounds": 1}).rounds == 1


@pytest.mark.usefixtures("own_rules")
def test_a_rule_whose_options_must_be_given_is_listed() -> None:
    @bm.register_rule("needy")
    def needy(own: Any, received: Any, weights: Any, f: int, towards: float) -> Any:
        return own

    listed = {item.name: item for item in bm.list_rules()}["needy"]
    assert (listed.uses_f, listed.feasible) == (None, "depends on its options")


def test_a_registered_function_has_options_and_a_name() -> None:
    @bm.register_rule("lean", aliases=("leaning",))
    def lean(own: Any, received: Any, weights: Any, f: int, towards: float = 0.5) -> Any:
        """A step towards the neighbours' mean."""
        return own + towards * (received.mean(axis=0) - own)

    assert bm.aggregate("leaning", np.zeros(1), np.ones((2, 1)), towards=0.25).tolist() == [0.25]
    assert bm.aggregate(lean, np.zeros(1), np.ones((2, 1))).tolist() == [0.5]
    listed = {item.name: item for item in bm.list_rules()}["lean"]
    assert (listed.options, listed.summary) == ({"towards": 0.5}, "A step towards the neighbours' mean.")
    ring = {"name": "ring", "n": 5}
    run = bm.simulate(problem="quadratic", network=ring, rule={"name": "lean", "towards": 1}, rounds=2)
    assert run.config["rule"] == {"name": "lean", "towards": 1.0}
    assert lean(np.zeros(1), np.ones((1, 1)), None, 0).tolist() == [0.5], "the function stays a function"


def test_a_plain_rule_sees_silence_and_f_like_a_fast_rule() -> None:
    seen: list[tuple[Any, ...]] = []

    def note(own: Any, received: Any, weights: Any, f: int) -> Any:
        seen.append((received.tolist(), weights.tolist(), f))
        return own

    with pytest.warns(bm.BadMessage):
        bm.aggregate(note, np.zeros(1), [[1.0], [np.nan], [2.0]], [0.4, 0.3, 0.2, 0.1], 3)
    received, weights, f = seen[0]
    assert (received, f) == ([[1.0], [2.0]], 2)
    np.testing.assert_allclose(weights, [0.6, 0.3, 0.1])


def test_a_result_that_is_not_finite_keeps_its_own_model() -> None:
    with np.errstate(invalid="ignore"):
        out = bm.aggregate_all(
            lambda own, received, weights, f: own * np.nan, bm.network("ring", n=4), np.arange(8.0).reshape(4, 2)
        )
    assert out.kept.all()
    assert out.models.tolist() == np.arange(8.0).reshape(4, 2).tolist()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda own, received, weights, f: received, r"must return a vector of shape \(2,\), got shape \(3, 2\)"),
        (lambda own, received, weights, f: 1.0, r"must return a vector of shape \(2,\), got shape \(\)"),
        (lambda own, received, weights, f: "x", r"must return a vector of shape \(2,\), got str"),
        (lambda own: own, r"such a function must take \(own, received, weights, f\)"),
    ],
)
def test_what_a_function_does_wrong_is_one_line(function: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        bm.aggregate(function, np.zeros(2), np.ones((3, 2)))
    assert "rule <lambda>" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_function_with_a_rules_name_is_refused() -> None:
    def median(own: Any, received: Any, weights: Any, f: int) -> Any:
        return own

    with pytest.raises(ConfigError, match="rule median: that is a name of rule CooMed"):
        bm.aggregate(median, np.zeros(2), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        (lambda block: block.weight[:, :-1], r"rule mine: coefficients must be of shape \(R, K\) = \(1, 4\).*\(1, 3\)"),
        (lambda block: block.inner, r"rule mine: coefficients must be of shape .*got \(1, 4, 4\)"),
        (lambda block: None, r"rule mine: coefficients must be"),
        (lambda block: "x", r"rule mine: coefficients must be an \(R, K\) = \(1, 4\) array, got str"),
    ],
)
def test_coefficients_of_the_wrong_shape_are_one_line(coefficients: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        bm.aggregate(bm.gram_rule("mine", coefficients), np.zeros(2), np.ones((3, 2)))
    assert "\n" not in str(caught.value)


def test_coefficients_may_be_whole_numbers_and_nan_keeps_its_own_model() -> None:
    ones = bm.gram_rule("ones", lambda block: block.present.astype(int))
    assert bm.aggregate(ones, np.zeros(1), np.ones((3, 1))).tolist() == [3.0]

    def undecided(block: Any) -> Any:
        out = np.where(block.present, 0.25, 0.0)
        out[0] = np.nan
        return out

    models = np.arange(5.0)[:, None]
    out = bm.aggregate_all(bm.gram_rule("undecided", undecided), bm.network("complete", n=5), models)
    assert out.kept.tolist() == [True, False, False, False, False]
    assert out.models[0] == 0.0
    assert out.coefficients is not None
    assert out.coefficients[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]

"""Rounds that are one compiled call are the rounds by parts, bit for bit: models, coefficients, counts, half steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Block, Choosing, Rule, rules
from byzmesh.simulation import aggregating
from byzmesh.simulation.engine import Simulation

ROUNDS = 7
MEMORY = {"name": "CC", "centre": "memory", "iterations": 2}
LATE = {"name": "late", "p": 0.5, "s": 2}
PULL = [{"name": "link-loss", "p": 0.2}, {"name": "sleep", "p": 0.2}, {"name": "random-pull", "s": 4}]
CASES: dict[str, dict[str, Any]] = {
    "static": {},
    "nobody lies": {"attack": "none", "network": {"name": "complete", "n": 10}},
    "lies that cancel": {"attack": "dissensus"},
    "weight decay": {"local": {"decay": 0.01}, "attack": "ipm"},
    "batches of different samples": {"problem": {"name": "softmax", "init": "normal", "batching": "distinct"}},
    "liars that train": {"attack": "label-flipping"},
    "rounds without a step": {"step": {"name": "pulsed", "every": 3}},
    "bytes": {"measure": ["bytes_sent"]},
    "losses, sleepers, pulls": {"process": PULL},
    "a point in a square": {"process": {"name": "mobile", "radius": 0.5}},
    "half of them late": {"process": LATE},
    "memory": {"rule": MEMORY},
    "memory of sleepers": {"rule": MEMORY, "process": {"name": "sleep", "p": 0.15}},
    "memory, half of them late": {"rule": MEMORY, "process": LATE, "dtype": "float64"},
    "few arrive": {"process": [{"name": "link-loss", "p": 0.8}, {"name": "sleep", "p": 0.4}], "f": 1},
    "graphs that come again": {"process": "one-peer-exponential", "attack": "isolation"},
}


@pytest.fixture(autouse=True)
def long_runs() -> Iterator[None]:
    """Every run is long enough."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregating, "LONG", 1)
        yield


def simulation(**more: Any) -> Simulation:
    problem = {"name": "softmax", "init": "normal"}  # nobody is at 0, infinitely far from the others: not usual
    given = {"network": "paper/two-castle", "problem": problem, "rule": "ios", "attack": "sign-flipping", **more}
    return bm.prepare(seed=5, **{"rounds": ROUNDS, "dtype": "float32", **given})


def by_parts(run: Simulation) -> Simulation:
    run._whole = None
    return run


def same(one: Simulation, other: Simulation) -> None:
    assert (one.round, one.status) == (other.round, other.status)
    np.testing.assert_array_equal(one.models, other.models)
    np.testing.assert_array_equal(one.half, other.half)
    np.testing.assert_array_equal(one.last[1], other.last[1])
    np.testing.assert_array_equal(one.sent_bytes, other.sent_bytes)
    np.testing.assert_array_equal(one.rule_state, other.rule_state)
    assert one.counts is not None and other.counts is not None
    for name, counted in one.counts.arrays().items():
        np.testing.assert_array_equal(counted, other.counts.arrays()[name], err_msg=name)


def calls(run: Simulation) -> list[int]:
    """How many rounds each compiled call computed, from now on."""
    noted: list[int] = []
    usual = run._in_one_call

    def note(steps: Any, count: int) -> int:
        noted.append(usual(steps, count))
        return noted[-1]

    run._in_one_call = note  # type: ignore[method-assign]
    return noted


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_one_call_is_a_round_by_parts(given: dict[str, Any]) -> None:
    one, other = simulation(**given), by_parts(simulation(**given))
    computed = calls(one)
    for _ in range(ROUNDS):
        assert one.step() == other.step()
        same(one, other)
    if "process" in given:  # a graph with few links costs less by blocks, and is not prepared
        assert sum(computed) >= 3
    else:
        assert sum(computed) == (3 if "step" in given else ROUNDS)


def test_several_rounds_in_a_call_are_rounds_one_by_one() -> None:
    for given in ({"dtype": "float32"}, {"dtype": "float64"}, {"rule": MEMORY}):
        one, other = simulation(**given), by_parts(simulation(**given))
        computed = calls(one)
        kept = one.models, one.models.copy()
        assert one.steps(ROUNDS) and other.steps(ROUNDS) and computed == [ROUNDS]
        same(one, other)
        np.testing.assert_array_equal(*kept)


@pytest.mark.parametrize("few", [1, 3, 16, 40])
@pytest.mark.parametrize(
    "given",
    [
        {"process": LATE},
        {"process": LATE, "step": {"name": "pulsed", "every": 9}},
        {"process": LATE, "attack": "none", "network": {"name": "complete", "n": 10}, "rule": "mean"},
        {"process": [{"name": "sleep", "p": 0.03}, LATE], "dtype": "float64", "measure": ["bytes_sent"]},
        {"process": {"name": "churn", "up": 40.0, "down": 2.0}},
        {"process": {"name": "churn", "up": 40.0, "down": 4.0}, "rule": MEMORY},
    ],
    ids=["late", "steps and pauses", "mean", "sleepers", "churn", "memory"],
)
def test_rounds_with_the_same_links_are_one_call(given: dict[str, Any], few: int) -> None:
    """However many are asked for at a time; at most as many as are prepared together."""
    one, other = simulation(rounds=40, **given), by_parts(simulation(rounds=40, **given))
    computed = calls(one)
    for first in range(0, 40, few):
        count = min(few, 40 - first)
        assert one.steps(count) and other.steps(count)
        same(one, other)
        if one.live is not None and one.live.past.oldest:
            assert other.live is not None
            np.testing.assert_array_equal(one.live.past.peak, other.live.past.peak)
            assert one.live.past.arrays(one.round).keys() == other.live.past.arrays(one.round).keys()
            for name, sent in one.live.past.arrays(one.round).items():
                np.testing.assert_array_equal(sent, other.live.past.arrays(one.round)[name])
    if "step" in given:  # in every ninth round
        assert sum(computed) == 5
    elif given == {"process": LATE}:
        assert sum(computed) == 40 and (few < 16 or computed == [16, 16, 8])
    else:
        assert max(computed) > 1 or few == 1


def test_a_run_and_one_that_was_stopped_within_a_call(tmp_path: Path) -> None:
    given = {"rounds": 40, "evaluate_every": 25}
    want, whole = by_parts(simulation(**given)).run(), simulation(**given)
    computed = calls(whole)
    for name, values in whole.run().metrics.items():
        np.testing.assert_array_equal(values, want.metrics[name], err_msg=name)
    assert computed == [16, 9, 15]
    for process in (None, PULL, LATE):
        want = by_parts(simulation(process=process, **given)).run()
        for stop in (3, 17):
            first, second = simulation(process=process, **given), simulation(process=process, **given)
            first.evaluate()
            first.steps(stop)
            first.save(tmp_path / "checkpoint")
            second.restore(tmp_path / "checkpoint")
            np.testing.assert_array_equal(second.run().models, want.models)


@pytest.mark.parametrize("size", [1e17, 1e25, np.nan])
def test_models_that_are_not_usual_are_left_to_the_rule(size: float) -> None:
    one, other = simulation(step=1e-30), by_parts(simulation(step=1e-30))
    for run in (one, other):
        run.steps(2)
        run.models = run.models.copy()
        run.models[1, 3] = size
    computed = calls(one)
    assert one.steps(2) == other.steps(2) == (size < 1e20)
    assert one.status == other.status and sum(computed) == 0
    np.testing.assert_array_equal(one.models, other.models)


def chosen() -> dict[str, Rule]:
    """Every rule with a kernel, and its other forms."""
    made: dict[str, Rule] = {
        "FABA, own outside": rules.build("FABA", own="outside"),
        "GeoMed, 8 steps": rules.build("GeoMed", steps=8),
        "CC, 3 passes": rules.build("CC", tau=0.7, iterations=3),
        "CC, memory": rules.build(MEMORY),
    }
    for name in rules.names():
        try:
            made[name] = rules.build(name)
        except ConfigError:
            continue
    return {name: rule for name, rule in made.items() if getattr(rule.consists_of, "kernel", None) is not None}


@pytest.mark.parametrize("rule", chosen().values(), ids=chosen())
def test_a_kernel_chooses_what_its_rule_does(rule: Rule) -> None:
    parts, draws = rule.consists_of, np.random.default_rng(7)
    assert isinstance(parts, Choosing) and parts.coefficients is not None
    for trial in range(60):
        receivers, slots = draws.integers(1, 5), draws.integers(2, 9)
        points = draws.normal(size=(receivers, slots, 4)) * 10.0 ** draws.integers(-2, 3)
        points[draws.random((receivers, slots)) < 0.2] = 0.0  # ties
        points -= points[:, :1]
        present = draws.random((receivers, slots)) < (0.3 if trial % 2 else 0.9)
        present[:, 0] = True
        inner = np.einsum("rid,rjd->rij", points, points) * (present[:, :, None] & present[:, None, :])
        weight = np.where(present, draws.random((receivers, slots)), 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        f = np.minimum(draws.integers(0, slots, receivers), present.sum(axis=1) - 1)
        b = draws.random(receivers) if trial % 3 == 0 else None
        block = Block(inner=inner, weight=weight, present=present, f=f, receiver=np.arange(receivers), tie=1e-12, b=b)
        out, settings = np.full(weight.shape, np.nan), np.array(parts.settings, np.float64)
        parts.kernel(inner, weight, present, f, block.room, block.tie, settings, out)
        np.testing.assert_array_equal(out, parts.coefficients(block))


def test_other_parts_and_short_runs_are_computed_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    momentum = {"local": {"momentum": "heavy-ball"}}
    for given in ({"rule": "coomed"}, {"attack": "gaussian"}, momentum, {"channel": "float16"}):
        assert simulation(**given)._whole is None
    monkeypatch.setattr(aggregating, "LONG", ROUNDS + 1)
    assert simulation()._whole is None

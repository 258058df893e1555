"""Prepared rounds are the rounds of `Rule.apply`, bit for bit: models, coefficients and counted edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.simulation.engine import Simulation

ROUNDS = 6
FIXED = sorted(name for name in attacks.names() if attacks.build(name).fixed)


def prepares(name: str) -> bool:
    """Whether a rule can be built without options and says that its rounds can be prepared."""
    try:
        rule = rules.build(name)
    except ConfigError:
        return False
    return rule.consists_of is not None and rule.consists_of.apply is rule.apply


CHOSEN = sorted(filter(prepares, rules.names()))
REMEMBERING = {"name": "cc", "centre": "memory"}


def simulation(rule: Any, attack: str, dtype: str, network: Any, **more: Any) -> Simulation:
    problem = {"name": "quadratic", "dimension": 70, "targets": "normal", "init": "normal"}
    given = {"network": network, "problem": problem, "rule": rule, "attack": attack, "dtype": dtype, "f": 1, **more}
    return bm.prepare(rounds=ROUNDS, seed=3, **given)


def network(seed: int) -> dict[str, Any]:
    return {"name": "erdos-renyi", "n": 11, "p": 0.75, "seed": seed, "byzantine": [2, 5]}


def whole_rounds(run: Simulation) -> Simulation:
    """The run, from now on with every round by `Rule.apply`."""
    run._prepared_round = lambda round: None  # type: ignore[method-assign]
    return run


def compare(one: Simulation, other: Simulation) -> int:
    """Both run to the end, the second by `Rule.apply` alone; how many rounds of the first were not left to it."""
    whole_rounds(other)
    left: list[int] = []
    usual = one._whole_round

    def noted(round: bm.Round) -> Any:
        left.append(round.number)
        return usual(round)

    one._whole_round = noted  # type: ignore[method-assign]
    for _ in range(ROUNDS):
        assert one.step() == other.step()
        np.testing.assert_array_equal(one.models, other.models)
        np.testing.assert_array_equal(one.last[1], other.last[1])
        for name, values in other.local_round.states().items():
            np.testing.assert_array_equal(one.local_round.states()[name], values, err_msg=name)
    assert one.round == other.round == ROUNDS
    assert (one.counts is None) == (other.counts is None) == one.rule.coordinatewise
    if one.counts is not None and other.counts is not None:
        for name, counted in one.counts.arrays().items():
            np.testing.assert_array_equal(counted, other.counts.arrays()[name], err_msg=name)
    return ROUNDS - len(left)


def test_there_is_something_to_compare() -> None:
    assert {"sign-flipping", "isolation", "dissensus"} <= set(FIXED)
    assert {"IOS", "FABA", "Krum", "GeoMed", "SCC", "WeiMean", "CooMed", "TriMean"} <= set(CHOSEN)


@pytest.mark.parametrize("rule", [*CHOSEN, REMEMBERING], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_prepared_rounds_are_rounds(rule: Any, dtype: str) -> None:
    for seed, attack in enumerate([*FIXED, "none"]):
        runs = [simulation(rule, attack, dtype, network(seed)) for _ in range(2)]
        assert runs[0].prepared is not None and compare(*runs) == ROUNDS


LOSSY: list[Any] = [{"name": "link-loss", "p": 0.3}, {"name": "sleep", "p": 0.2}]
LATE: list[Any] = [{"name": "responders", "f": 2}, {"name": "late", "p": 0.4, "s": 2}]


@pytest.mark.parametrize("rule", [*CHOSEN, REMEMBERING], ids=str)
def test_prepared_rounds_of_changing_networks_are_rounds(rule: Any) -> None:
    """Losses, sleepers, old messages, graphs that come again; lies that are combinations, or vectors of their own."""
    rounds = 0
    for seed, (process, attack) in enumerate(
        [
            (LOSSY, "isolation"),
            (LOSSY, "gaussian"),
            (LATE, "sign-flipping"),
            (LATE, "gaussian"),
            ({"name": "late", "p": 0.9}, "sign-flipping"),
            ("one-peer-exponential", "dissensus"),
            ({"name": "sleep", "p": 0.1}, "ipm"),
            ({"name": "sleep", "p": 0.3}, "feigned-sleep"),
        ]
    ):
        dtype = ("float32", "float64")[seed % 2]
        rounds += compare(
            *(simulation(rule, attack, dtype, network(seed), process=process, f="exact") for _ in range(2))
        )
    assert rounds > 3 * ROUNDS


def test_momentum_label_flipping_and_data_are_no_obstacle() -> None:
    compare(*(simulation("ios", "ipm", "float32", network(0), local={"momentum": "heavy-ball"}) for _ in range(2)))
    parts: dict[str, Any] = {"network": "paper/two-castle", "rule": "ios", "attack": "label-flipping"}
    compare(*(bm.prepare(problem="softmax", rounds=ROUNDS, **parts) for _ in range(2)))


@pytest.mark.parametrize("attack", ["gaussian", "sample-duplicating", "alie", "silent"])
def test_lies_that_change_are_not_prepared(attack: str) -> None:
    assert simulation("ios", attack, "float32", network(0)).prepared is None


@pytest.mark.parametrize("rule", ["meamed", "balance", "drsa", "simrew"])
def test_rules_that_do_more_than_they_declare_are_not_prepared(rule: Any) -> None:
    assert simulation(rule, "ipm", "float32", network(0)).prepared is None


@pytest.mark.parametrize("rule", ["ios", "trimean", REMEMBERING], ids=str)
@pytest.mark.parametrize("size", [1e17, 1e25, np.nan])
def test_huge_and_lost_models_are_left_to_the_rule(rule: Any, size: float) -> None:
    runs = [simulation(rule, "ipm", "float32", network(0), step=1e-30) for _ in range(2)]
    whole_rounds(runs[1])
    for run in runs:
        run.models = run.models.copy()
        run.models[1, 3] = size
    assert runs[0].step() == runs[1].step() == (size < 1e20)
    np.testing.assert_array_equal(runs[0].models, runs[1].models)
    assert runs[0].status == runs[1].status


def test_a_model_far_from_the_others_is_left_to_the_rule() -> None:
    runs = [simulation("ios", "ipm", "float64", network(0)) for _ in range(2)]
    whole_rounds(runs[1])
    for run in runs:
        run.models = run.models.copy()
        run.models[0] *= 1e6
        run.step()
    np.testing.assert_array_equal(runs[0].models, runs[1].models)


def test_a_rule_made_from_another_does_not_inherit_what_its_apply_consists_of() -> None:
    ios = bm.rule("ios")
    changed = replace(ios, name="other", apply=lambda inbox, state: ios.apply(inbox, state))
    assert simulation(changed, "ipm", "float32", network(0)).prepared is None
    other = replace(ios, name="other", coefficients=lambda block: block.weight)
    same = simulation(other, "ipm", "float32", network(0)), simulation("ios", "ipm", "float32", network(0))
    for run in same:
        run.step()
    np.testing.assert_array_equal(same[0].models, same[1].models)


PLACES = {"prepared": ("ios", "ipm"), "by the rule": ("ios", "gaussian"), "ranks": ("trimean", "ipm")}


@pytest.mark.parametrize(("rule", "attack"), PLACES.values(), ids=PLACES)
def test_new_models_take_the_memory_of_the_old_ones_unless_somebody_holds_them(rule: str, attack: str) -> None:
    held, free = (simulation(rule, attack, "float32", network(0)) for _ in range(2))
    kept: list[Any] = []
    view: list[Any] = []
    address = free.models.ctypes.data
    for number in range(ROUNDS):
        before = held.models.copy()
        (kept if number % 2 else view).append((held.models if number % 2 else held.models[1:, 2:], before))
        held.step()
        free.step()
        np.testing.assert_array_equal(held.models, free.models)
    assert all(np.array_equal(models, before) for models, before in kept)
    assert all(np.array_equal(models, before[1:, 2:]) for models, before in view)
    assert free.models.ctypes.data == address


@pytest.mark.parametrize("more", [{"local": {"outer": "plain"}}, {"rule": {"name": "cc", "centre": "memory"}}], ids=str)
def test_models_that_are_still_read_are_not_overwritten(more: dict[str, Any]) -> None:
    parts = {"rule": "ios", "attack": "ipm", "dtype": "float64", "network": network(0)}
    held, free = (simulation(**parts | more) for _ in range(2))
    kept = []
    for _ in range(ROUNDS):
        kept.append(held.models)
        held.step()
        free.step()
    np.testing.assert_array_equal(held.models, free.models)

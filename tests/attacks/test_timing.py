"""Who lies when: against the inner attack and the honest mean, pair by pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byzmesh.attacks import Attack, attack
from byzmesh.attacks.base import unchanged
from byzmesh.errors import ConfigError
from tests.attacks.oracles import weighted_mean
from tests.attacks.scenes import frozen_models, random_world, view_of


def lying(spec: dict[str, Any], number: int) -> list[bool]:
    """For every pair, whether it hears the inner lie; otherwise it must hear the honest mean."""
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    models = frozen_models(world, 4)
    x = {n: models[row] for row, n in enumerate(world.honest)}
    view = view_of(world, models, number)
    made = attack(spec)
    forged, _ = made.forge(view, made.init(view.scene))
    told = []
    for b, n in world.pairs():
        honest = np.allclose(forged[b, n], weighted_mean(world, x, n, with_own=False))
        assert honest != np.allclose(forged[b, n], 0.0), "neither the lie nor the truth"
        told.append(not honest)
    return told


@pytest.mark.parametrize("inner", ["zero", {"name": "same-value", "value": 0.0}], ids=["combination", "rows"])
def test_when_and_to_whom(inner: Any) -> None:
    late = {"name": "late", "inner": inner, "after": 7}
    assert not any(lying(late, 6)) and all(lying(late, 7))
    turns = {"name": "alternating", "inner": inner, "period": 10, "share": 0.3}
    assert [all(lying(turns, number)) for number in (0, 2, 3, 9, 10)] == [True, True, False, False, True]
    assert not any(lying(turns, 3))
    share = {**turns, "period": 25, "share": 0.28}
    assert [all(lying(share, number)) for number in (6, 7)] == [True, False], "0.28 * 25 is more than 7 in float64"
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    victims = list(dict.fromkeys(n for _, n in world.pairs()))
    one = {"name": "one-victim", "inner": inner, "period": 5}
    for number in (0, 4, 5, 5 * len(victims)):
        chosen = victims[number // 5 % len(victims)]
        assert lying(one, number) == [n == chosen for _, n in world.pairs()]


@pytest.mark.parametrize("name", ["late", "alternating", "one-victim", "mixed", "feigned-sleep"])
def test_what_an_attack_needs_it_needs_at_any_time(name: str) -> None:
    """A wrong model to aim at, and the rule's response."""
    needed = [(made.needs_data, made.needs_response) for made in (attack(name, inner=one) for one in ("target", "box"))]
    assert needed == [(True, True), (True, False)]
    assert not attack(name, inner="zero").needs_data
    assert attack("mixed", inner="zero", other="box").needs_data


def test_what_acts_on_data_cannot_be_timed() -> None:
    with pytest.raises(ConfigError, match="attack late: label-flipping acts on training data"):
        attack("late", inner="label-flipping")


def last_lie(made: Attack, rounds: int) -> Any:
    """What is told in the last of some rounds, in each of which the models are others."""
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    views = [view_of(world, frozen_models(world, 4, seed=number) + number, number) for number in range(rounds)]
    state = made.init(views[0].scene)
    for view in views:
        forged, state = made.forge(view, state)
    return forged.dense()[forged.row]


REMEMBERING = [
    {"name": "reflection", "reference": "start"},
    {"name": "reflection", "reference": "average"},
    {"name": "pull-back", "reference": "start"},
    {"name": "pull-back", "reference": "average"},
    {"name": "stale", "period": 3},
    {"name": "mixed", "inner": {"name": "stale", "period": 3}, "other": "reflection"},
    {"name": "feigned-sleep", "inner": {"name": "reflection", "reference": "average"}, "p": 0.0},
    {"name": "late", "inner": {"name": "reflection", "reference": "average"}, "after": 4},
]


@pytest.mark.parametrize("inner", REMEMBERING, ids=lambda inner: "-".join(map(str, inner.values())))
@pytest.mark.parametrize("when", [{"name": "late", "after": 5}, {"name": "alternating", "period": 5, "share": 0.4}])
def test_honest_rounds_are_remembered(when: dict[str, Any], inner: dict[str, Any]) -> None:
    """In round 5, after honest ones, the lie is that of an attack that was told all along; with amnesia it is not."""
    always, timed = attack(inner), attack({**when, "inner": inner})
    np.testing.assert_allclose(last_lie(timed, 6), last_lie(always, 6), rtol=1e-12)
    if when["name"] == "late":  # the other one lies in the first round
        forgetful = attack({**when, "inner": replace(always, observe=unchanged)})
        assert not np.allclose(last_lie(forgetful, 6), last_lie(always, 6))


@pytest.mark.parametrize(
    "spec", [{"name": "ascent", "length": 5.0}, {"name": "threshold-riding", "direction": "ascent"}]
)
def test_the_way_up_is_looked_for_again_after_a_pause(spec: dict[str, Any]) -> None:
    """Lies in rounds 0, 1 and 5: the gradient of round 0 would be kept until round 10."""
    timed = attack("alternating", inner=spec, period=5, share=0.4)
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    fresh = attack(spec)
    view = view_of(world, frozen_models(world, 4, seed=5) + 5, 5)
    told = fresh.forge(view, fresh.init(view.scene))[0]
    np.testing.assert_allclose(last_lie(timed, 6), told.dense()[told.row], rtol=1e-12)
    assert not np.allclose(last_lie(fresh, 6), told.dense()[told.row])

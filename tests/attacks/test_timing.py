"""Who lies when: against the inner attack and the honest mean, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.attacks import attack
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
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    victims = list(dict.fromkeys(n for _, n in world.pairs()))
    one = {"name": "one-victim", "inner": inner, "period": 5}
    for number in (0, 4, 5, 5 * len(victims)):
        chosen = victims[number // 5 % len(victims)]
        assert lying(one, number) == [n == chosen for _, n in world.pairs()]


@pytest.mark.parametrize("name", ["late", "alternating", "one-victim", "mixed"])
def test_what_an_attack_needs_it_needs_at_any_time(name: str) -> None:
    """A wrong model to aim at, and the rule's response."""
    needed = [(made.needs_data, made.needs_response) for made in (attack(name, inner=one) for one in ("target", "box"))]
    assert needed == [(True, True), (True, False)]
    assert not attack(name, inner="zero").needs_data
    assert attack("mixed", inner="zero", other="box").needs_data


def test_what_acts_on_data_cannot_be_timed() -> None:
    with pytest.raises(ConfigError, match="attack late: label-flipping acts on training data"):
        attack("late", inner="label-flipping")

"""A plain function as an attack, and the errors for messages of the wrong shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError

NETWORK = bm.network("paper/two-castle")
MODELS = np.random.default_rng(0).normal(size=(10, 3))


def opposite(own: Any, received: Any, scale: float = 1.0) -> Any:
    """Minus the mean of the victim's honest neighbours."""
    return -scale * received.mean(axis=0)


def test_a_function_gives_what_the_attack_gives() -> None:
    slow = bm.forge(opposite, NETWORK, MODELS)
    fast = bm.forge("sign-flipping", NETWORK, MODELS, mean="plain", own=False)
    for liar, victim in zip(fast.liar, fast.victim, strict=True):
        np.testing.assert_allclose(slow[liar, victim], fast[liar, victim])
    run = bm.simulate(problem="quadratic", network=NETWORK, attack=opposite, rounds=3)
    assert run.config["attack"] == {"name": "opposite"}


def test_a_registered_function_has_options() -> None:
    with attacks.temporary():
        bm.register_attack("opposite", aliases=("against",))(opposite)
        made = bm.attack("against", scale=2)
        assert made.options == {"scale": 2.0}
        assert bm.attack(opposite, scale=3.0).options == {"scale": 3.0}
        np.testing.assert_allclose(bm.forge(made, NETWORK, MODELS)[7, 0], 2 * bm.forge(opposite, NETWORK, MODELS)[7, 0])


def test_none_is_silence() -> None:
    forged = bm.forge(lambda own, received: None if own[0] > 0 else own, NETWORK, MODELS)
    told = set(forged.victim.tolist())
    lied_to = {int(NETWORK.honest[row]) for row in range(10)} & {0, 1, 2, 3, 4, 5, 6, 8, 10, 11}
    assert told == {worker for worker in told if MODELS[NETWORK.honest.tolist().index(worker), 0] <= 0}
    assert told < lied_to


def test_a_wrong_shape_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"attack <lambda> must return a vector of shape \(3,\), got shape \(2,\)"):
        bm.forge(lambda own, received: own[:2], NETWORK, MODELS)
    with pytest.raises(ConfigError, match=r"attack <lambda>: such a function must take \(own, received\)"):
        bm.forge(lambda models: models, NETWORK, MODELS)
    nan = bm.attack("nan")

    def short(view: Any, state: Any) -> Any:
        forged, state = nan.forge(view, state)
        return replace(forged, rows=np.zeros((1, 2)), combination=None, row=np.zeros_like(forged.row)), state

    with pytest.raises(ConfigError, match=r"attack short: messages must be of shape \(Q, D\) = \(Q, 3\), got \(1, 2\)"):
        bm.forge(bm.Attack("short", short), NETWORK, MODELS)

    def beyond(view: Any, state: Any) -> Any:
        forged, state = nan.forge(view, state)
        return replace(forged, rows=np.zeros((1, 3)), combination=None, row=np.full_like(forged.row, 4)), state

    with pytest.raises(ConfigError, match="attack beyond: rows must be from 0 to 0, got 4"):
        bm.forge(bm.Attack("beyond", beyond), NETWORK, MODELS)

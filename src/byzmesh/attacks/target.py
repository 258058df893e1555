"""Target: a wrong model, approached as fast as the rule lets.

A liar with a goal that lasts. The wrong model is trained before the first round, on data like that of all honest
workers but with labels C - 1 - y, by their own recipe (step sizes, batch, decay) and with a perfect average in every
round. Each victim is then told the point on the way to it, from its honest average, that moves its output farthest
(`threshold_riding.py`), but never one beyond.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.pull_back import everybody_hears
from byzmesh.attacks.search import Damage, worst_lies
from byzmesh.attacks.threshold_riding import farthest
from byzmesh.checks import whole
from byzmesh.types import Floats, Integers

_RIDE = farthest()


@attacks.register("target", aliases=("wrong-model",))
def target(rounds: int = 500) -> Attack:
    """Towards a model that learned flipped labels for `rounds` rounds, as fast as the rule in use lets, per victim.

    Needs data and rule, which a simulation provides.

    >>> target(rounds=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack target: rounds must be a whole number of at least 1, got 0
    """
    whole("attack target: rounds", rounds, 1)

    def init(scene: Scene) -> Any:
        return scene.wrong_model(rounds)

    def forge(view: View, wrong: Any) -> tuple[Forged, Any]:
        return worst_lies("target", view, [everybody_hears(view, wrong)], not_beyond, goal=0), wrong

    return Attack("target", forge, init=init, options={"rounds": rounds}, needs_response=True, needs_data=True)


def not_beyond(natural: Floats, spread: Floats, damage: Damage) -> tuple[Integers, Floats]:
    """As far as the rule still takes it, up to the message itself."""
    which, far = _RIDE(natural, spread, damage)
    return which, np.minimum(far, natural[0])

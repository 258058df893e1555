"""Box: towards a wrong model, coordinate by coordinate and never outside of what honest workers send.

    lie_n,j = min(max(wrong_j, min_m x_m,j), max_m x_m,j)        m over the victim's honest inbox

`target` (target.py) goes straight towards the wrong model, so a rule that sorts every coordinate cuts the lie where it
moves more than honest models do. This lie is the point of the smallest box around the honest inbox that is nearest to
the wrong model: in no coordinate is it farther than an honest value, and a trimmed mean cannot tell it from one (the
attack on trimmed means of Fang et al., USENIX Security 2020, with a goal that lasts).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.parts import frozen, holdings
from byzmesh.checks import at_least, whole
from byzmesh.compiled import exact


@exact
def into_box(models: Any, inbox: Any, goal: Any, reach: float, out: Any) -> None:
    """out[v, j]: the goal, moved into the interval of the models inbox[v] in coordinate j, widened by `reach`."""
    for victim in range(inbox.shape[0]):
        for column in range(models.shape[1]):
            low = high = models[inbox[victim, 0], column]
            for slot in range(1, inbox.shape[1]):
                value = models[inbox[victim, slot], column]
                low, high = min(low, value), max(high, value)
            centre, half = 0.5 * (low + high), 0.5 * reach * (high - low)
            out[victim, column] = min(max(goal[column], centre - half), centre + half)


@attacks.register("box")
def box(rounds: int = 500, reach: float = 1.0) -> Attack:
    """Towards a model that learned flipped labels for `rounds` rounds, in every coordinate as far as honest models are.

    reach  width of the box in units of the honest one

    Needs data, which a simulation provides.

    >>> box(reach=-1.0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack box: reach must be a number of at least 0, got -1.0
    """
    whole("attack box: rounds", rounds, 1)
    at_least("attack box: reach", reach, 0)

    def init(scene: Scene) -> Any:
        return scene.wrong_model(rounds)

    def forge(view: View, wrong: Any) -> tuple[Forged, Any]:
        models, inbox = frozen(view.models), holdings(view.scene)
        lies = np.empty((len(inbox), models.shape[1]), models.dtype)
        into_box(models, inbox, np.asarray(wrong, models.dtype), reach, lies)
        return Forged(view.scene.liar, view.scene.victim, view.scene.place, view.models, rows=lies), wrong

    return Attack("box", forge, init=init, options={"rounds": rounds, "reach": reach}, needs_data=True)

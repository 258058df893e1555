"""Reflection: the honest mean mirrored at a point.

    message to n = reference - scale (mean - reference)

With the reference zero this is sign-flipping of any scale. Models that all start at the same point leave it together:
mirrored there, a lie is as near as an honest model in the first rounds, and what the network learns is undone. Mirrored
at a running average of the honest models it stays near for ever, and turns the last progress around. Mirrored at the
models that the round started from, it flips the sign of the round's progress: of the pseudo-gradient, where a round has
many local steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.parts import MEANS, mean_of_holdings, per_victim, send
from byzmesh.attacks.state import Split
from byzmesh.checks import choice, finite, flag, fraction
from byzmesh.errors import ConfigError

REFERENCES = ("zero", "start", "average", "round")


@attacks.register("reflection", aliases=("mirror",))
def reflection(
    scale: float = 1.0, reference: str = "start", memory: float = 0.99, own: bool = True, mean: str = "plain"
) -> Attack:
    """The mean of the victim's honest inbox mirrored at a reference: reference - scale (mean - reference).

    reference  zero; start: the average of the honest models in the first round that the liars see; average: the
               running average of these averages, of which `memory` is kept in every round; round: the average of
               the honest models before the local steps of this round, for the simulator only
    own, mean  whether the victim's own model is in the mean, and its weights: as in sign-flipping

    The state is the reference, a (D,) array.

    >>> reflection(reference="mean")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack reflection: reference must be zero, start, average or round, got 'mean'
    """
    finite("attack reflection: scale", scale)
    choice("attack reflection: reference", reference, REFERENCES)
    fraction("attack reflection: memory", memory)
    flag("attack reflection: own", own)
    choice("attack reflection: mean", mean, MEANS)

    def init(scene: Scene) -> Split:
        return Split(per_victim(scene, -scale * mean_of_holdings(scene, mean, own)), np.zeros(0))

    def forge(view: View, state: Split) -> tuple[Forged, Split]:
        flipped = send(view, state.plan)
        if reference == "zero":
            return flipped, state
        state = observe(view, state)
        about = average_before("reflection", view) if reference == "round" else state.memory
        rows = flipped.dense()
        rows += ((1.0 + scale) * about).astype(rows.dtype)
        return Forged(flipped.liar, flipped.victim, flipped.row, view.models, rows=rows), state

    def observe(view: View, state: Split) -> Split:
        return remembered(view, state, reference, memory)

    options = {"scale": scale, "reference": reference, "memory": memory, "own": own, "mean": mean}
    return Attack("reflection", forge, init=init, observe=observe, options=options, fixed=reference == "zero")


def remembered(view: View, state: Split, reference: str, memory: float) -> Split:
    """The state after a round: its memory is where the models started, or their running average."""
    if reference not in ("start", "average"):
        return state
    return Split(state.plan, running_average(view.models, state.memory, memory if reference == "average" else 1.0))


def average_before(attack: str, view: View) -> Any:
    """(D,) float64 average of the honest models before the local steps of this round."""
    if view.before is None:
        raise ConfigError(f"attack {attack}: reference round needs models that peers do not send; use start or average")
    return view.before.mean(axis=0, dtype=np.float64)


def running_average(models: Any, former: Any, memory: float) -> Any:
    """(D,) float64 average of the models, and of what it was before if `former` is not empty.

    >>> running_average(np.array([[1.0], [3.0]]), np.array([6.0]), 0.75)
    array([5.])
    """
    now = models.mean(axis=0, dtype=np.float64)
    return former + (1.0 - memory) * (now - former) if former.size else now

"""Threshold riding: in a given direction, the farthest lie that the rule still takes.

A rule that cuts takes a lie up to some distance and ignores it beyond; one that clips gains nothing beyond. Where that
is depends on the victim's inbox of the round. The liars try it (`search.py`): per victim, lengths from 1/8 to
16 honest spreads, each sqrt(2) times the last; then four bisections between the length that moved the
victim's output farthest in the direction and the next. Of lengths that do the same the shortest is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from byzmesh.attacks.ascent import uphill
from byzmesh.attacks.averages import sign_flipping
from byzmesh.attacks.base import Attack, Forged, State, View, attacks
from byzmesh.attacks.search import Choose, Damage, worst_lies
from byzmesh.attacks.spectral import spectral_heterogeneity
from byzmesh.attacks.spread import alie
from byzmesh.checks import at_least, choice
from byzmesh.types import Floats, Integers

DIRECTIONS: dict[str, Callable[[], Attack]] = {
    "ALIE": lambda: alie(z=1.0),
    "ALIE-minus": lambda: alie(z=-1.0),
    "negative": sign_flipping,
    "fiedler": spectral_heterogeneity,
    "ascent": uphill,
}
RATIO, HALVINGS = math.sqrt(2.0), 4
LENGTHS: Floats = 0.125 * RATIO ** np.arange(15.0)
"""Multiples of the honest spread: from 1/8 to 16."""
GAIN = 1e-3
"""A longer lie must gain this fraction more: a clipped one gains next to nothing."""


@attacks.register("threshold-riding", aliases=("riding",))
def threshold_riding(direction: str = "ALIE", reach: float = 1.0) -> Attack:
    """In a direction, the farthest lie that the rule in use still takes, for each victim.

    direction  ALIE: along the spread of the victim's honest neighbours, ALIE-minus: against it, negative: through the
               origin as sign-flipping, fiedler: along the slowest mode of the honest graph, ascent: up the honest
               workers' loss (`ascent.py`; needs data)
    reach      multiple of the length found; below 1 stays clear of the threshold

    Needs the rule (`View.respond`), which a simulation provides.

    >>> threshold_riding(reach=-1.0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack threshold-riding: reach must be a number of at least 0, got -1.0
    """
    choice("attack threshold-riding: direction", direction, DIRECTIONS)
    at_least("attack threshold-riding: reach", reach, 0)
    along = DIRECTIONS[direction]()

    def forge(view: View, state: State) -> tuple[Forged, State]:
        told, state = along.forge(view, state)
        return worst_lies("threshold-riding", view, [told], farthest(reach), goal=0), state

    options = {"direction": direction, "reach": reach}
    return Attack(
        "threshold-riding",
        forge,
        init=along.init,
        observe=along.observe,
        options=options,
        needs_response=True,
        needs_data=along.needs_data,
    )


def farthest(reach: float = 1.0) -> Choose:
    """Along the first message, `reach` times the length that moves each victim's output farthest.

    >>> step = lambda which, far: np.where(far <= 3.0, far, 0.0)
    >>> farthest()(np.ones((1, 1)), np.ones(1), step)[1].round(1)
    array([3.])
    """

    def chosen(natural: Floats, spread: Floats, damage: Damage) -> tuple[Integers, Floats]:
        victims = np.arange(len(spread))

        def gains(far: Floats) -> Floats:
            return np.nan_to_num(damage(np.zeros(far.shape, np.int64), far), nan=-np.inf, posinf=np.inf)

        unit = np.where(spread > 0.0, spread, natural[0])
        tried = LENGTHS[:, None] * unit
        done = gains(tried)
        last = np.zeros(len(spread), np.int64)
        for number in range(1, len(tried)):
            last = np.where(done[number] > (1.0 + GAIN) * done[last, victims], number, last)
        low, best = tried[last, victims], done[last, victims]
        high = RATIO * low
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            gain = gains(middle[None])[0]
            better = gain > (1.0 + GAIN) * best
            best = np.where(better, gain, best)
            low, high = np.where(better, middle, low), np.where(better, high, middle)
        return np.zeros(len(spread), np.int64), reach * np.where(best > 0.0, low, 0.0)

    return chosen

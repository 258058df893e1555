"""The directions that searching attacks try: those of the fixed attacks in `FIXED`, each as the text defines it.

Towards and through the origin, along plus and minus the spread, away from agreement, along the Fiedler vector.
"""

from __future__ import annotations

from byzmesh.attacks.averages import dissensus, sign_flipping
from byzmesh.attacks.base import Forged, Scene, State, View
from byzmesh.attacks.evasive import min_max
from byzmesh.attacks.spectral import spectral_heterogeneity
from byzmesh.attacks.spread import alie

FIXED = (sign_flipping, alie, min_max, dissensus, spectral_heterogeneity)
_PARTS = tuple(make() for make in FIXED)


def prepared(scene: Scene) -> tuple[State, ...]:
    """What `told` needs of the graph."""
    return tuple(part.init(scene) for part in _PARTS)


def told(view: View, states: tuple[State, ...]) -> list[Forged]:
    """The messages of the fixed attacks."""
    return [part.forge(view, state)[0] for part, state in zip(_PARTS, states, strict=True)]

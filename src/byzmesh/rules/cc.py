"""CC: centred clipping, equal weights around a centre.

With y_m what neighbour m sent:

    v <- v + (1 / S) sum_m clip(y_m - v, tau),    clip(z, tau) = min(1, tau / ||z||) z
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import choice, positive, whole
from byzmesh.entries import ByPartition
from byzmesh.rules.base import Block, Rule, no_state, normalised, rules
from byzmesh.rules.clipping import FIXED_RADIUS, clip_all, clip_from_memory, clip_towards
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Floats


def moved(near: Neighbourhoods) -> Floats:
    """Infinite where a neighbour lies (see `clipping`); nothing is proved elsewhere."""
    return np.where(near.lying > 0, np.inf, np.nan)


@rules.register(
    "CC",
    aliases=("centered-clipping", "centred-clipping"),
    published={"centre": "memory", "tau": ByPartition(0.1, 0.3)},
)
def cc(tau: float = 0.3, centre: str = "own", iterations: int = 1) -> Rule:
    """Centred clipping: v + (1/S) sum_m clip(y_m - v, tau), repeated `iterations` times.

    centre="own": v starts at its own model; "memory": at its previous output, 0 at first (as published).
    """
    positive("rule CC: tau", tau)
    choice("rule CC: centre", centre, ("own", "memory"))
    whole("rule CC: iterations", iterations, 1)
    memory = centre == "memory"

    def coefficients(block: Block) -> Floats:
        start = np.zeros(block.weight.shape)
        start[:, -1 if memory else 0] = 1.0
        held = block.present.copy()
        if memory:
            held[:, -1] = False
        return clip_towards(block.inner, start, normalised(held), tau, iterations)

    return gram_rule(
        "CC",
        coefficients,
        kernel=clip_from_memory if memory else clip_all,
        settings=(tau, iterations),
        remember=memory,
        init=(lambda models: models * 0) if memory else no_state,
        translates=not memory,
        idempotent=not memory,
        options={"tau": tau, "centre": centre, "iterations": iterations},
        keeps_own=not memory,
        virtual_mixing="equal",
        contraction=None if memory else Contraction(moved, FIXED_RADIUS),
    )

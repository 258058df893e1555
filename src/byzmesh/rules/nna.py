"""NNA, nearest-neighbour averaging: the mean of the S - f vectors nearest the receiver's own.

    x_n = the mean of the S - f vectors y_m with the smallest ||y_m - x_n||, itself included

With equal weights over the honest workers as W and B <= f liars, rho <= (f + 3 B) / (S - f), S = d + 1 (docs/theory.md,
"Rules that keep the nearest"); if s of them are silent, B and S are smaller by s, and the largest of these bounds
counts.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import Contraction, Neighbourhoods
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.nearest import pick_least
from byzmesh.types import Booleans, Floats, Integers


def moved_at_most(near: Neighbourhoods) -> Floats:
    """The largest (f + 3 (B - s)) / (S - s - f) over s silent liars; 1 if the worker may be left with its own model."""
    most = np.zeros(len(near.f))
    for silent in range(1 + int(near.lying.max(initial=0))):
        reached = silent <= near.lying
        left = near.neighbours + 1 - silent - near.f
        moved = (near.f + 3.0 * (near.lying - silent)) / np.maximum(left, 1)
        most = np.maximum(most, np.where(reached, np.where(left > 1, moved, np.maximum(moved, 1.0)), 0.0))
    return np.where(near.lying <= near.f, np.where(near.f > 0, most, 0.0), np.nan)


@exact
def _nearest(inner: Floats, present: Booleans, f: Integers, tie: float) -> Booleans:
    """(R, K) the S - f slots closest to its own, which comes first even if another equals it."""
    distance, picks = np.full(present.shape, np.inf), np.empty(len(f), np.int64)
    for receiver in range(len(f)):
        distance[receiver, 0], picks[receiver] = -1.0, -f[receiver]
        for slot in range(present.shape[1]):
            if present[receiver, slot]:
                picks[receiver] += 1
                if slot > 0:
                    distance[receiver, slot] = inner[receiver, slot, slot]
    return pick_least(distance, picks, tie)


@rules.register("NNA", aliases=("nearest-neighbour-averaging", "monna"))
def nna() -> Rule:
    """Nearest-neighbour averaging: the plain mean of the S - f vectors closest to its own (itself included)."""

    def coefficients(block: Block) -> Floats:
        return normalised(_nearest(block.inner, block.present, block.f, block.tie))

    return gram_rule(
        "NNA",
        coefficients,
        feasible=BELOW_NEIGHBOURS,
        weights_alone_at_zero=True,
        own_distances=True,
        keeps_own=True,
        virtual_mixing="equal",
        contraction=Contraction(moved_at_most, "the nearest are kept, equal weights"),
    )

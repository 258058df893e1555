"""Iterative cutting: IOS (the paper's Algorithm 2) and FABA.

f times: average what is still trusted and cut the neighbour farthest from that average (never its own model); finally
average what is left. If the weight of the lies is known to be at most b, cutting also ends before more than that would
be cut. In Gram space, with trusted weights a (summing to 1) and y relative to the receiver's own model,

    ||y_m - sum_i a_i y_i||^2 = G_mm - 2 (G a)_m + a' G a,

so a cut costs O(K^2) whatever D is. The last term is the same for all m. Averages are recomputed after each cut:
subtracting a liar at 1e30 from a running sum would leave nothing of the honest part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.heaviest import ROUNDING
from byzmesh.rules.base import Block, normalise, normalised
from byzmesh.sums import MOST
from byzmesh.types import Booleans, Floats, Integers


@exact
def cut_farthest(
    inner: Floats, weight: Floats, present: Booleans, f: Integers, room: Floats, tie: float, own_inside: bool
) -> Booleans:
    """(R, K) which slots are still trusted after f cuts; `weight` gives the weights in the averages.

    `room` (R,) is how much may be cut: before a cut would make it more, the receiver stops. `own_inside` says whether
    its own vector is part of the averages; it is never cut.
    """
    receivers, slots = weight.shape
    trusted = present.copy()
    share, lean = np.empty(slots), np.empty(slots)
    for receiver in range(receivers):
        gram = inner[receiver]
        left = room[receiver] + ROUNDING
        for _ in range(f[receiver]):
            total = 0.0
            for slot in range(slots):
                counts = trusted[receiver, slot] and (own_inside or slot > 0)
                share[slot] = weight[receiver, slot] if counts else 0.0
                total += share[slot]
            if total > 0.0:
                share /= total
            spread = 0.0
            for i in range(slots):
                pull = 0.0  # two sums side by side: each addition waits for the one before
                if share[i] > 0.0:
                    for j in range(slots):
                        spread += share[i] * share[j] * gram[i, j]
                        pull += share[j] * gram[i, j]
                elif trusted[receiver, i]:
                    for j in range(slots):
                        pull += share[j] * gram[i, j]
                lean[i] = pull
            worst, largest = -1, -1.0
            for slot in range(1, slots):
                if trusted[receiver, slot]:
                    distance = max(0.0, gram[slot, slot] - 2.0 * lean[slot] + spread)
                    if worst < 0 or distance > largest * (1.0 + tie):
                        worst, largest = slot, distance
            if worst < 0 or weight[receiver, worst] > left:
                break
            left -= weight[receiver, worst]
            trusted[receiver, worst] = False
    return trusted


def mean_of_trusted(block: Block, weight: Floats, room: Floats, own_inside: bool) -> Floats:
    """(R, K) coefficients of the weighted mean of what `cut_farthest` leaves."""
    if weight.shape[1] > MOST:
        trusted = cut_farthest(block.inner, weight, block.present, block.f, room, block.tie, own_inside)
        return normalised(np.where(trusted, weight, 0.0))
    out = np.empty(weight.shape)
    _mean_of_trusted(block.inner, weight, block.present, block.f, room, block.tie, own_inside, out)
    return out


@exact
def _mean_of_trusted(
    inner: Floats,
    weight: Floats,
    present: Booleans,
    f: Integers,
    room: Floats,
    tie: float,
    own_inside: bool,
    out: Floats,
) -> None:
    trusted = cut_farthest(inner, weight, present, f, room, tie, own_inside)
    for receiver in range(weight.shape[0]):
        for slot in range(weight.shape[1]):
            out[receiver, slot] = weight[receiver, slot] if trusted[receiver, slot] else 0.0
    normalise(out, out)


@exact
def weighted_cuts(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """`mean_of_trusted` with the mixing weights, its own vector inside, as a `Choosing.kernel`."""
    _mean_of_trusted(inner, weight, present, f, room, tie, True, out)


@exact
def equal_cuts(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """The same with equal weights and nothing but f to limit the cuts; its own vector is inside if the setting is 1."""
    equal, unlimited = np.ones(weight.shape), np.full(f.size, np.inf)
    _mean_of_trusted(inner, equal, present, f, unlimited, tie, settings[0] == 1.0, out)

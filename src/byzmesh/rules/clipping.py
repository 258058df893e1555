"""Clipping rules: move towards every neighbour, but by no more than a radius tau each.

    v <- v + sum_m a_m clip(y_m - v, tau),   clip(z, tau) = min(1, tau / ||z||) z

Centred clipping (CC) weighs all S vectors equally and starts at a centre v; self-centred clipping (SCC) starts at the
receiver's own model and uses the mixing weights. The radius depends on the task: the paper uses 0.1 (iid) and 0.3
(non-iid). With a fixed radius there is no contraction constant: even if all honest models agree, a liar of weight a
moves the receiver by a tau.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.base import normalise
from byzmesh.types import Floats

FIXED_RADIUS = "a fixed radius lets a liar move a worker even where all honest models agree"


@exact
def clip_towards(inner: Floats, start: Floats, weight: Floats, tau: float, iterations: int) -> Floats:
    """(R, K) coefficients of v after `iterations` passes from v = sum_k start[k] y_k."""
    share = start.copy()
    receivers, slots = share.shape
    pull = np.empty(slots)
    for receiver in range(receivers):
        gram = inner[receiver]
        for _ in range(iterations):
            spread = 0.0
            for i in range(slots):
                for j in range(slots):
                    spread += share[receiver, i] * share[receiver, j] * gram[i, j]
            total = 0.0
            for slot in range(slots):
                pull[slot] = 0.0
                if weight[receiver, slot] > 0.0:
                    lean = 0.0
                    for other in range(slots):
                        lean += share[receiver, other] * gram[slot, other]
                    distance = np.sqrt(max(gram[slot, slot] - 2.0 * lean + spread, 0.0))
                    pull[slot] = weight[receiver, slot] * (tau / distance if distance > tau else 1.0)
                    total += pull[slot]
            for slot in range(slots):
                share[receiver, slot] = (1.0 - total) * share[receiver, slot] + pull[slot]
    return share


@exact
def clip_from_own(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """`clip_towards` in one pass from the receiver's own model, as a `Choosing.kernel`; the setting is tau."""
    start = np.zeros(weight.shape)
    start[:, 0] = 1.0
    out[:] = clip_towards(inner, start, weight, settings[0], 1)


@exact
def clip_all(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """The same towards all that arrived, equally; the settings are tau and the number of passes."""
    start = np.zeros(weight.shape)
    start[:, 0] = 1.0
    normalise(present, out)
    out[:] = clip_towards(inner, start, out, settings[0], int(settings[1]))


@exact
def clip_from_memory(
    inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any
) -> None:
    """The same from what the receiver returned before, the last slot, which is nothing that arrived."""
    start, held = np.zeros(weight.shape), present.copy()
    start[:, -1], held[:, -1] = 1.0, False
    normalise(held, out)
    out[:] = clip_towards(inner, start, out, settings[0], int(settings[1]))

"""GeoMed: the geometric median, the point with the smallest sum of distances to the S vectors.

By default this is the minimiser itself (geometric_median.py). The published runs took at most 80 steps of Weiszfeld's
iteration instead, which `steps` selects:

    z <- sum_i y_i / ||y_i - z||  /  sum_i 1 / ||y_i - z||,   from the mean of the S vectors,

until a step is shorter than `tolerance`. A z that falls on one of the y_i stays there, optimal or not: its weight 1 / 0
outweighs all others. The isolation attack on equal weights starts there (the mean is the receiver's own model). Inner
products give such a distance only up to rounding, so anything below that counts as 0: z moves to the mean of all y_i
that near and continues from there, because with liars at +-1e9 the rounding covers every honest model at first, but
none the second time. Getting away from far lies takes many steps: each shrinks the distance by the number of honest
vectors per liar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import at_least, whole
from byzmesh.compiled import exact, inner
from byzmesh.rules.base import Block, Rule, normalise, normalised, rules
from byzmesh.rules.geometric_median import geometric_median
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.types import Booleans, Floats

ROUNDING = 1e-2
"""Rounding of squared distances, as a fraction of the tolerance for ties."""


@inner
def _products(flipped: Floats, share: Floats, out: Floats) -> None:
    """out[i] = sum_j flipped[j, i] share[j], each sum in this order, all of them at once."""
    for i in range(out.size):
        out[i] = flipped[0, i] * share[0]
    for j in range(1, share.size):
        for i in range(out.size):
            out[i] += flipped[j, i] * share[j]


@exact
def weiszfeld(inner: Floats, start: Floats, present: Booleans, steps: int, tolerance: float, rounding: float) -> Floats:
    """(R, K) coefficients after at most `steps` steps over the present slots; `rounding` as in `geometric_median`."""
    share = start.copy()
    receivers, slots = share.shape
    wide = (slots + 7) // 8 * 8  # whole registers
    flipped, lean, bend = np.zeros((slots, wide)), np.empty(wide), np.empty(wide)
    length, fresh, change = np.empty(slots), np.empty(slots), np.empty(slots)
    for receiver in range(receivers):
        gram, current, held = inner[receiver], share[receiver], present[receiver]
        flipped[:, :slots] = gram.T
        for slot in range(slots):
            length[slot] = np.sqrt(max(gram[slot, slot], 0.0))
        for step in range(steps):
            _products(flipped, current, lean)
            spread = reach = total = moved = 0.0
            for slot in range(slots):
                spread += current[slot] * lean[slot]
                reach += current[slot] * length[slot]
            # an attacker can choose the mean, and its messages have been rounded
            blind, met, still = 10.0 * rounding if step == 0 else rounding, False, True
            for slot in range(slots):
                distance2 = gram[slot, slot] - 2.0 * lean[slot] + spread
                here = distance2 <= blind * (length[slot] + reach) ** 2
                fresh[slot] = 0.0
                if held[slot]:
                    fresh[slot] = np.inf if here else 1.0 / np.sqrt(distance2)
                    met |= here
            for slot in range(slots):
                if met:
                    fresh[slot] = 1.0 if np.isinf(fresh[slot]) else 0.0
                total += fresh[slot]
            for slot in range(slots):
                fresh[slot] /= total
                change[slot] = fresh[slot] - current[slot]
                still &= fresh[slot] == current[slot]
                current[slot] = fresh[slot]
            _products(flipped, change, bend)
            for slot in range(slots):
                moved += change[slot] * bend[slot]
            if still or (not met and moved <= tolerance * tolerance):
                break
    return share


@exact
def steps_from_mean(
    inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any
) -> None:
    """`weiszfeld` from the mean as a `Choosing.kernel`; the settings are the number of steps and the tolerance."""
    normalise(present, out)
    out[:] = weiszfeld(inner, out, present, int(settings[0]), settings[1], ROUNDING * tie)


@rules.register(
    "GeoMed",
    aliases=("geometric-median", "rfa", "gm"),
    published={"steps": 80, "tolerance": 1e-5},
)
def geomed(steps: int | None = None, tolerance: float = 1e-5) -> Rule:
    """Geometric median: the point with the smallest sum of distances to the S vectors.

    steps=None: the minimiser; its sum of distances exceeds the smallest by a fraction of at most 2 tolerance. If a
    whole
                segment minimises (two vectors, or an even number on a line), the middle of the best vectors.
    steps=80:   at most 80 steps of Weiszfeld's iteration, until one is shorter than tolerance, as published.

    >>> import byzmesh as bm
    >>> corner = [[1.0, 0.0], [0.0, 1.0], [-3.0, -3.0]]
    >>> bm.aggregate("geomed", [0.0, 0.0], corner).round(6)
    array([0., 0.])
    """
    if steps is not None:
        whole("rule GeoMed: steps", steps, 1)
    at_least("rule GeoMed: tolerance", tolerance, 0)

    def coefficients(block: Block) -> Floats:
        rounding = ROUNDING * block.tie
        if steps is None:
            return geometric_median(block.inner, block.present, np.ones(block.present.shape), tolerance, rounding)
        return weiszfeld(block.inner, normalised(block.present), block.present, steps, tolerance, rounding)

    return gram_rule(
        "GeoMed",
        coefficients,
        kernel=None if steps is None else steps_from_mean,
        settings=() if steps is None else (steps, tolerance),
        options={"steps": steps, "tolerance": tolerance},
        symmetric=True,
        virtual_mixing="equal",
    )

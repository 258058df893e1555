"""ALIE: a mean moved by a multiple of the honest spread.

"A little is enough": stay within the scatter of the honest models, coordinate by coordinate, so that no rule can tell
the message from an honest one, and move all victims in the same direction.

    message to n = mean + z_n * std      per coordinate over the models of n's honest neighbours, n excluded
    z_n = Phi^-1((d - s) / d)            s = floor((d + 1) / 2) - |B_n|, d all neighbours of n; std with n - 1

The moments of all victims come from one compiled pass in blocks of coordinates that stay in the cache.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.parts import BLOCK, frozen, heard, honest_degree, liar_degree
from byzmesh.checks import finite
from byzmesh.compiled import fast
from byzmesh.types import Floats, Integers


@attacks.register("ALIE", aliases=("little", "a-little-is-enough"))
def alie(z: float | None = None) -> Attack:
    """A little is enough: mean + z * std of the victim's honest neighbours; `z` None: the formula's, per victim.

    If the formula has no finite z (s <= 0: the liars need no honest supporter), s counts as 1, which gives the largest
    z. With one honest neighbour the standard deviation is 0 and the message is that neighbour's model; with none it is
    the victim's own model.

    >>> alie(z=1.5).options["z"]
    1.5
    """
    if z is not None:
        finite("attack ALIE: z", z)

    def init(scene: Scene) -> tuple[Integers, Integers, Floats]:
        sample, count = heard(scene)
        if z is None:
            factor = largest_hidden_shift(honest_degree(scene), liar_degree(scene))
        else:
            factor = np.full(len(count), float(z))
        return sample, count, factor

    def forge(view: View, state: tuple[Integers, Integers, Floats]) -> tuple[Forged, tuple[Integers, Integers, Floats]]:
        sample, count, factor = state
        models = frozen(view.models)
        rows = np.empty((len(sample), models.shape[1]), models.dtype)
        shifted_means(models, sample, count, factor.astype(models.dtype), rows)
        return Forged(view.scene.liar, view.scene.victim, view.scene.place, view.models, rows=rows), state

    return Attack("ALIE", forge, init=init, options={"z": z})


def largest_hidden_shift(honest: Integers, lying: Integers) -> Floats:
    """(V,) z = Phi^-1((d - s) / d) for victims with these numbers of honest and lying neighbours; 0 for honest < 2.

    >>> largest_hidden_shift(np.array([8, 9, 2, 1]), np.array([2, 1, 5, 3])).round(3)
    array([0.524, 0.253, 1.068, 0.   ])
    """
    degree = honest + lying
    support = np.maximum((degree + 1) // 2 - lying, 1)
    normal = NormalDist()
    return np.array(
        [normal.inv_cdf((d - s) / d) if h >= 2 else 0.0 for h, d, s in zip(honest, degree, support)], np.float64
    )


@fast
def shifted_means(models: Any, sample: Any, count: Any, factor: Any, out: Any) -> None:
    """out[v] = mean + factor[v] * std of models[sample[v, :count[v]]], per coordinate, sample standard deviation.

    models (N, D), sample (V, J), count (V,) >= 1, factor (V,), out (V, D). Two passes, because models near consensus
    differ by far less than their size. Rows are taken in pairs, after the first alone if their number is odd: that
    halves the memory traffic on the sums, which takes most of the time.
    """
    dimension = models.shape[1]
    real = models.dtype.type
    spread = np.empty(BLOCK, models.dtype)
    for start in range(0, dimension, BLOCK):
        stop = min(start + BLOCK, dimension)
        for victim in range(len(sample)):
            members = count[victim]
            odd = members % 2
            single = models[sample[victim, 0], start:stop]
            mean = out[victim, start:stop]
            share = real(1.0) / real(members)
            for i in range(stop - start):
                mean[i] = real(odd) * share * single[i]
            for slot in range(odd, members, 2):
                left, right = models[sample[victim, slot], start:stop], models[sample[victim, slot + 1], start:stop]
                for i in range(stop - start):
                    mean[i] += share * (left[i] + right[i])
            if members < 2:
                continue
            for i in range(stop - start):
                spread[i] = real(odd) * (single[i] - mean[i]) ** 2
            for slot in range(odd, members, 2):
                left, right = models[sample[victim, slot], start:stop], models[sample[victim, slot + 1], start:stop]
                for i in range(stop - start):
                    spread[i] += (left[i] - mean[i]) ** 2 + (right[i] - mean[i]) ** 2
            scale = factor[victim] / np.sqrt(real(members - 1))
            for i in range(stop - start):
                mean[i] += scale * np.sqrt(spread[i])

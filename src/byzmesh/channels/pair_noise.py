"""Noise that neighbours agree on in pairs and that cancels in the mean.

Neighbours n < m draw the same normal vector s_nm in every round. n adds it to what it sends, m subtracts it:

    sent_n = x_n + sigma (sum_{m > n} s_nm - sum_{m < n} s_mn),        sum_n sent_n = sum_n x_n

A neighbour knows what it shares with n and can take that away; the rest hides x_n from it. If n has d neighbours that
do not pool what they know, their d draws do: docs/messages.md says how much that is worth. What n shares with a liar,
or with a neighbour that is silent, does not cancel. Senders go on from the noisy model: otherwise the mean would keep
the part of the noise that they do not mix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.channels.base import Context, Stage, stages
from byzmesh.channels.distortion import Distortion
from byzmesh.checks import positive
from byzmesh.errors import ConfigError
from byzmesh.types import Array

AT_ONCE = 1 << 24
"""Draws held at a time."""


@stages.register("pair-noise")
@dataclass(frozen=True, repr=False)
class PairNoise(Stage):
    """Normal noise of each pair of neighbours, added by one and subtracted by the other: it cancels in the mean.

    sigma  standard deviation of what each pair draws
    """

    sigma: float = 0.01
    name = "pair-noise"
    pairwise = True

    def __post_init__(self) -> None:
        positive("stage pair-noise: sigma", self.sigma)

    @property
    def stays(self) -> bool:
        return True

    @property
    def distortion(self) -> Distortion:
        return Distortion(pair_noise=self.sigma)

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        if context.pairs is None:
            raise ConfigError("stage pair-noise: senders share nothing with their neighbours here; leave it out")
        row, sign, number = context.pairs.of(tuple(context.sender.tolist()))
        noise = np.zeros(values.shape)
        step = max(1, AT_ONCE // max(1, values.shape[1]))
        for first in range(0, len(row), step):
            some = slice(first, first + step)
            drawn = rng.normals(context.public, number[some], context.round, values.shape[1], np.float64)
            np.add.at(noise, row[some], sign[some, None] * drawn)
        sent = (values + self.sigma * noise).astype(values.dtype)
        return sent[:, :0].view(np.uint8), sent

    def lying(self) -> Stage | None:
        return None

"""Noise on every message, and on the model that its sender goes on from.

If only the message had noise, the sender's own model would stay exact, and the messages of later rounds would tell of
earlier batches again and again: no composition theorem covers that. With `own` a worker mixes its own model as others
got it. Then everything after a message follows from messages, and each round is a Gaussian mechanism of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.channels.base import Context, Stage, stages
from byzmesh.channels.distortion import Distortion
from byzmesh.checks import flag, positive
from byzmesh.types import Array


@stages.register("gaussian-noise", aliases=("noise",))
@dataclass(frozen=True, repr=False)
class GaussianNoise(Stage):
    """Independent normal noise on every coordinate of every message.

    A peer draws it from its private key, so that nobody else can take it away again; the simulator from the seed.

    sigma  standard deviation
    own    whether the sender goes on from the noisy model; otherwise from the exact one, and only `clip` bounds what
           later messages tell
    """

    sigma: float = 0.01
    own: bool = True
    name = "gaussian-noise"

    def __post_init__(self) -> None:
        positive("stage gaussian-noise: sigma", self.sigma)
        flag("stage gaussian-noise: own", self.own)

    @property
    def stays(self) -> bool:
        return self.own

    @property
    def distortion(self) -> Distortion:
        return Distortion(noise=self.sigma)

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        noise = rng.normals(context.secret, context.sender, context.round, values.shape[1], values.dtype)
        noise *= values.dtype.type(self.sigma)
        noise += values
        return noise[:, :0].view(np.uint8), noise

    def lying(self) -> Stage | None:
        return None

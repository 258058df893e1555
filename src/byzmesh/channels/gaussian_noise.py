"""Noise on every message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.channels.base import Context, Stage, stages
from byzmesh.checks import positive
from byzmesh.types import Array


@stages.register("gaussian-noise", aliases=("noise",))
@dataclass(frozen=True, repr=False)
class GaussianNoise(Stage):
    """Independent normal noise on every coordinate of every message.

    A peer draws it from its private key, so that nobody else can take it away again; the simulator from the seed.

    sigma  standard deviation
    """

    sigma: float = 0.01
    name = "gaussian-noise"

    def __post_init__(self) -> None:
        positive("stage gaussian-noise: sigma", self.sigma)

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        noise = rng.normals(context.secret, context.sender, context.round, values.shape[1], values.dtype)
        noise *= values.dtype.type(self.sigma)
        noise += values
        return noise[:, :0].view(np.uint8), noise

    def lying(self) -> Stage | None:
        return None

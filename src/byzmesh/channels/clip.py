"""A bound on how far one message can be from the last one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.channels.base import Context, Stage, stages
from byzmesh.checks import positive
from byzmesh.types import Array


@stages.register("clip")
@dataclass(frozen=True, repr=False)
class Clip(Stage):
    """A message moves at most `radius` from what was sent last; a longer way takes several rounds.

    With c what receivers made of the last message (noise of later stages included), the model x is sent as
    c + (x - c) min(1, radius / ||x - c||). So whatever a sender's data are, given its earlier messages, two models it
    might send differ by at most 2 radius. Noise of a later stage that is longer than the radius adds up over rounds.

    radius  Euclidean
    """

    radius: float = 1.0
    name = "clip"
    remembers = "sender"

    def __post_init__(self) -> None:
        positive("stage clip: radius", self.radius)

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        assert context.copy is not None  # noqa: S101 (it remembers)
        with np.errstate(invalid="ignore", over="ignore"):
            way = values - context.copy
            length = np.sqrt(np.einsum("nd,nd->n", way, way, dtype=np.float64))
            factor = np.minimum(1.0, self.radius / np.maximum(length, np.finfo(np.float64).tiny))
            near = context.copy + way * factor.astype(values.dtype)[:, None]
        return near[:, :0].view(np.uint8), np.where((factor < 1.0)[:, None], near, values)

    def lying(self) -> Stage | None:
        return None

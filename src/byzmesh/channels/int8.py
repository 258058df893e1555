"""One signed byte per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byzmesh.channels.base import Context, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.blocks import check_rounding, quantised, scaled
from byzmesh.channels.distortion import Distortion
from byzmesh.types import Array

BLOCK, LEVELS = 256, 127


@stages.register("int8")
@dataclass(frozen=True, repr=False)
class Int8(Stage):
    """A signed byte per coordinate and a float32 scale per 256 of them: about a quarter of float32.

    rounding  "stochastic": the error is at most max |x| / 127 over the block, and zero on average; "nearest": at most
              half of that, but always the same way

    >>> from byzmesh.channels import Channel
    >>> channel, ids = Channel({"name": "int8", "rounding": "nearest"}, dimension=2), np.arange(1)
    >>> channel.receive(channel.send(np.array([[1.27, -0.5]], np.float32), (None,), 0, ids), (None,), 0, ids)[0]
    array([[ 1.27, -0.5 ]], dtype=float32)
    """

    rounding: str = "stochastic"
    name = "int8"

    def __post_init__(self) -> None:
        check_rounding(self.name, self.rounding)

    @property
    def distortion(self) -> Distortion:
        return Distortion(peak=(1.0 if self.rounding == "stochastic" else 0.5) / LEVELS)

    def sizes(self, width: int) -> tuple[int, int]:
        return 4 * -(-width // BLOCK) + width, 0

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        front = 4 * -(-values.shape[1] // BLOCK)
        data = np.empty((len(values), front + values.shape[1]), np.uint8)
        scale = np.empty((len(values), front // 4), np.float32)
        key = context.public if self.rounding == "stochastic" else None
        units = data[:, front:].view(np.int8)
        quantised(values, BLOCK, LEVELS, key, context.sender, context.round, scale, units)
        data[:, :front] = as_bytes(scale)
        return data, values[:, :0]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        front = 4 * -(-width // BLOCK)
        scale, units = as_numbers(data[:, :front], np.float32), data[:, front:].view(np.int8)
        return scaled(units, scale, BLOCK, context.room(width))

    def lying(self) -> Stage:
        return replace(self, rounding="nearest")

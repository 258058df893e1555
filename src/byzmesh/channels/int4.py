"""Half a byte per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byzmesh.channels.base import Context, Distortion, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.blocks import check_rounding, quantised, scaled
from byzmesh.types import Array

BLOCK, LEVELS = 64, 7


@stages.register("int4")
@dataclass(frozen=True, repr=False)
class Int4(Stage):
    """Half a byte per coordinate and a float32 scale per 64 of them: about a seventh of float32.

    A byte is two numbers of -7 to 7, each plus 8, the first one in the lower half.

    rounding  "stochastic": the error is at most max |x| / 7 over the block, and zero on average; "nearest": at most
              half of that, but always the same way
    """

    rounding: str = "stochastic"
    name = "int4"

    def __post_init__(self) -> None:
        check_rounding(self.name, self.rounding)

    @property
    def distortion(self) -> Distortion:
        return Distortion(peak=(1.0 if self.rounding == "stochastic" else 0.5) / LEVELS)

    def sizes(self, width: int) -> tuple[int, int]:
        return 4 * -(-width // BLOCK) + -(-width // 2), 0

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        scale = np.empty((len(values), -(-values.shape[1] // BLOCK)), np.float32)
        units = np.zeros((len(values), values.shape[1] + values.shape[1] % 2), np.int8)
        key = context.public if self.rounding == "stochastic" else None
        written = units[:, : values.shape[1]]
        quantised(values, BLOCK, LEVELS, key, context.sender, context.round, scale, written)
        halves = (units + np.int8(8)).view(np.uint8)
        return np.concatenate([as_bytes(scale), halves[:, 0::2] | (halves[:, 1::2] << np.uint8(4))], axis=1), values[
            :, :0
        ]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        front = 4 * -(-width // BLOCK)
        scale, pairs = as_numbers(data[:, :front], np.float32), data[:, front:]
        units = np.empty((len(pairs), 2 * pairs.shape[1]), np.int8)
        units[:, 0::2], units[:, 1::2] = pairs & np.uint8(15), pairs >> np.uint8(4)
        units -= 8
        return scaled(units[:, :width], scale, BLOCK, context.room(width))

    def lying(self) -> Stage:
        return replace(self, rounding="nearest")

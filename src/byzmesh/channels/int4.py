"""Half a byte per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byzmesh.channels.base import Context, Distortion, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.blocks import check_rounding, rounded, scaled, scales_of
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
        random = self.rounding == "stochastic"
        scale = scales_of(values, BLOCK, LEVELS, random)
        key = context.public if random else None
        units = rounded(values, scale, BLOCK, LEVELS, key, context.sender, context.round)
        halves = np.full((len(units), units.shape[1] + units.shape[1] % 2), 8, np.uint8)
        halves[:, : units.shape[1]] = units + 8
        pairs = halves[:, 0::2] | (halves[:, 1::2] << np.uint8(4))
        return np.concatenate([as_bytes(scale), pairs], axis=1), values[:, :0]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        front = 4 * -(-width // BLOCK)
        scale, pairs = as_numbers(data[:, :front], np.float32), data[:, front:]
        units = np.empty((len(pairs), 2 * pairs.shape[1]), np.int8)
        units[:, 0::2], units[:, 1::2] = pairs & np.uint8(15), pairs >> np.uint8(4)
        units -= 8
        return scaled(units[:, :width], scale, BLOCK, context.dtype)

    def lying(self) -> Stage:
        return replace(self, rounding="nearest")

"""Half a byte per coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byzmesh.channels.base import Context, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.blocks import check_rounding, quantised, scaled
from byzmesh.channels.distortion import Distortion
from byzmesh.compiled import exact
from byzmesh.types import Array

BLOCK, LEVELS = 64, 7
_u16 = np.uint16


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
        data = np.empty((len(values), 4 * scale.shape[1] + units.shape[1] // 2), np.uint8)
        data[:, : 4 * scale.shape[1]] = as_bytes(scale)
        _pack(units.view(np.uint16), data[:, 4 * scale.shape[1] :])
        return data, values[:, :0]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        front = 4 * -(-width // BLOCK)
        scale, pairs = as_numbers(data[:, :front], np.float32), data[:, front:]
        units = np.empty((len(pairs), 2 * pairs.shape[1]), np.int8)
        _unpack(pairs, units.view(np.uint16))
        return scaled(units[:, :width], scale, BLOCK, context.room(width))

    def lying(self) -> Stage:
        return replace(self, rounding="nearest")


@exact
def _pack(units: Any, pairs: Any) -> None:
    """Two int8 from -8 to 7 at a time, read as one uint16, as their lower halves plus 8."""
    for n in range(units.shape[0]):
        read, written = units[n], pairs[n]
        for i in range(len(read)):
            both = _u16(_u16(read[i] & _u16(0x0F0F)) ^ _u16(0x0808))
            written[i] = np.uint8(_u16(both | _u16(both >> _u16(4))) & _u16(0xFF))


@exact
def _unpack(pairs: Any, units: Any) -> None:
    """The inverse of `_pack`: bytes minus 8, without a carry between them."""
    for n in range(units.shape[0]):
        read, written = pairs[n], units[n]
        for i in range(len(written)):
            both = _u16(_u16(_u16(read[i]) | _u16(_u16(read[i]) << _u16(4))) & _u16(0x0F0F))
            written[i] = _u16(_u16(both + _u16(0x7878)) ^ _u16(0x8080))

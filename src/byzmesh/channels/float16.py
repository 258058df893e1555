"""Half precision: 5 bits of exponent, 10 of fraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.base import Context, Reader, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.distortion import Distortion
from byzmesh.channels.halves import from_float16, read_float16, to_float16
from byzmesh.simd_halves import HALVES
from byzmesh.types import Array

LARGEST = 65504.0


@stages.register("float16")
@dataclass(frozen=True, repr=False)
class Float16(Stage):
    """Half precision: three digits in two bytes.

    A number is rounded to the nearest: the error is at most |x| / 2048, or 3e-8 near zero; larger numbers than 65504
    are sent as that.

    >>> from byzmesh.channels import Channel
    >>> channel, ids = Channel("float16", dimension=2), np.arange(1)
    >>> channel.receive(channel.send(np.array([[0.1, 1e6]], np.float32), (None,), 0, ids), (None,), 0, ids)[0]
    array([[9.9975586e-02, 6.5504000e+04]], dtype=float32)
    """

    name = "float16"

    @property
    def distortion(self) -> Distortion:
        return Distortion(length=1 / 2048, least=2.0**-25)

    def sizes(self, width: int) -> tuple[int, int]:
        return 2 * width, 0

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        return as_bytes(to_float16(values, LARGEST)), values[:, :0]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        return from_float16(as_numbers(data, np.uint16), context.room(width))

    def reader(self, dtype: np.dtype[Any]) -> Reader | None:
        return (np.uint16, read_float16) if dtype == np.float32 and HALVES else None

"""The upper half of a float32: 8 bits of exponent, 7 of fraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.base import Context, Reader, Stage, as_bytes, as_numbers, stages
from byzmesh.channels.distortion import Distortion
from byzmesh.channels.halves import from_bfloat16, read_bfloat16, to_bfloat16
from byzmesh.types import Array

LARGEST = float(np.array([0x7F7F0000], np.uint32).view(np.float32)[0])
"""About 3.39e38."""


@stages.register("bfloat16")
@dataclass(frozen=True, repr=False)
class Bfloat16(Stage):
    """The upper half of a float32: its range, two digits, two bytes.

    A number is rounded to the nearest, ties to even: the error is at most |x| / 256.

    >>> from byzmesh.channels import Channel
    >>> channel, ids = Channel("bfloat16", dimension=2), np.arange(1)
    >>> channel.receive(channel.send(np.array([[0.1, 1e6]], np.float32), (None,), 0, ids), (None,), 0, ids)[0]
    array([[1.00097656e-01, 9.99424000e+05]], dtype=float32)
    """

    name = "bfloat16"

    @property
    def distortion(self) -> Distortion:
        return Distortion(length=1 / 256)

    def sizes(self, width: int) -> tuple[int, int]:
        return 2 * width, 0

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        return as_bytes(to_bfloat16(values, LARGEST)), values[:, :0]

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        return from_bfloat16(as_numbers(data, np.uint16), context.room(width))

    def reader(self, dtype: np.dtype[Any]) -> Reader | None:
        return (np.uint16, read_bfloat16) if dtype == np.float32 else None

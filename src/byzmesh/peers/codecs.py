"""How a vector travels: a codec turns it into the payload of a message and back. `wire.py` packs the rest.

    name     byte  payload
    raw      1, 2  the model's numbers, float32 or float64, bit for bit
    float16  3     half precision; larger numbers than 65504 are sent as that
    int8     4     one float32 scale per block of 256 coordinates, then D signed bytes: x = scale * byte

A payload's length depends only on D and the models' dtype, so a receiver knows it beforehand. The byte is the message's
field `encoding`; 1 to 127 are reserved for byzmesh. Numbers are little-endian.

A new codec is a class here or in any module, with `@codecs.register`: see `byzmesh.register_codec`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.registry import Registry
from byzmesh.types import Array


class Codec(ABC):
    """Two pure functions, and the byte that identifies them in every message."""

    byte: int

    @abstractmethod
    def encode(self, vector: Array) -> bytes | memoryview:
        """The payload of a finite (D,) vector in the models' dtype."""

    @abstractmethod
    def decode(self, payload: memoryview, dimension: int, dtype: str) -> Array:
        """The (D,) vector in the models' dtype, or a view of it, for any bytes, because a liar chooses them."""

    def byte_for(self, dtype: str) -> int:
        """The byte for models of this dtype."""
        return self.byte


codecs: Registry[Codec] = Registry("wire codec", "byzmesh.codecs", ("byzmesh.peers.codecs",), Codec)


@codecs.register("raw")
class Raw(Codec):
    """The model's numbers, bit for bit."""

    def encode(self, vector: Array) -> bytes | memoryview:
        return np.ascontiguousarray(vector).view(np.uint8).data

    def decode(self, payload: memoryview, dimension: int, dtype: str) -> Array:
        return np.frombuffer(payload, dtype)

    def byte_for(self, dtype: str) -> int:
        return {"float32": 1, "float64": 2}[dtype]


@codecs.register("float16")
class Float16(Codec):
    """Half precision: three digits, half the bytes of float32; larger numbers than 65504 are sent as that."""

    byte = 3

    def encode(self, vector: Array) -> bytes | memoryview:
        return np.clip(vector, -65504, 65504).astype(np.float16).view(np.uint8).data

    def decode(self, payload: memoryview, dimension: int, dtype: str) -> Array:
        return np.frombuffer(payload, np.float16).astype(dtype)


@codecs.register("int8")
class Int8(Codec):
    """A signed byte per coordinate and a scale per 256 of them: a quarter of the bytes of float32."""

    byte = 4
    block = 256

    def encode(self, vector: Array) -> bytes | memoryview:
        blocks = np.zeros((-(-len(vector) // self.block), self.block))
        blocks.reshape(-1)[: len(vector)] = vector
        limit = float(np.finfo(np.float32).max) / 127
        scale = np.minimum(np.abs(blocks).max(axis=1) / 127, limit).astype(np.float32)
        units = np.clip(np.rint(blocks / np.where(scale > 0, scale, 1)[:, None]), -127, 127).astype(np.int8)
        return bytes(scale.tobytes() + units.reshape(-1)[: len(vector)].tobytes())

    def decode(self, payload: memoryview, dimension: int, dtype: str) -> Array:
        scales = -(-dimension // self.block)
        scale = np.frombuffer(payload, np.float32, scales)
        units = np.frombuffer(payload, np.int8, dimension, offset=4 * scales)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.repeat(scale, self.block)[:dimension].astype(dtype) * units


def codec(name: str) -> Codec:
    """The codec of a name; `ConfigError` if another one uses its byte.

    >>> codec("int8").decode(memoryview(codec("int8").encode(np.array([1.27, -0.5]))), 2, "float64").round(3)
    array([ 1.27, -0.5 ])
    """
    entry = codecs.entry(name)
    chosen = entry.factory()
    for other in codecs.names():
        for dtype in ("float32", "float64"):
            byte = chosen.byte_for(dtype)
            if other != entry.name and codecs.build(other).byte_for(dtype) == byte:
                raise ConfigError(f"codecs {entry.name} and {other} both have the byte {byte}; change one of them")
    return chosen

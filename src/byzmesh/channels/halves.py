"""Two bytes per number, many numbers at a time: NumPy converts float16 one by one.

Both formats round to the nearest, ties to even; what is larger than the largest number, infinity included, becomes it,
and NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.simd_halves import HALVES, half_bits, of_half_bits
from byzmesh.types import Array

_u16, _u32 = np.uint16, np.uint32
_INFINITY, _NAN = _u32(0x7F800000), _u32(0x7FC00000)


def to_float16(values: Array, largest: float) -> Array:
    """(N, W) numbers as the bits of float16."""
    if values.dtype != np.float32 or not HALVES:
        return np.clip(values, -largest, largest).astype(np.float16).view(np.uint16)
    bits = np.empty(values.shape, np.uint16)
    _to_float16(values, np.float32(largest), bits)
    return bits


def from_float16(bits: Array, out: Array) -> Array:
    """The numbers of (N, W) bits of float16, written to `out`."""
    if out.dtype == np.float32 and HALVES:
        _from_float16(bits, out)
    else:
        out[:] = bits.view(np.float16)
    return out


def to_bfloat16(values: Array, largest: float) -> Array:
    """(N, W) numbers as the bits of bfloat16."""
    if values.dtype != np.float32:
        values = np.clip(values, -largest, largest).astype(np.float32)
    bits = np.empty(values.shape, np.uint16)
    _to_bfloat16(np.ascontiguousarray(values).view(np.uint32), np.float32(largest).view(np.uint32), bits)
    return bits


def from_bfloat16(bits: Array, out: Array) -> Array:
    """The numbers of (N, W) bits of bfloat16, written to `out`."""
    if out.dtype == np.float32:
        _from_bfloat16(bits, out.view(np.uint32))
    else:
        out[:] = (bits.astype(np.uint32) << _u32(16)).view(np.float32)
    return out


@exact
def _to_float16(values: Any, largest: Any, out: Any) -> None:
    for n in range(values.shape[0]):
        read, written = values[n], out[n]
        for i in range(len(read)):
            # a comparison with NaN is false: NaN stays
            x = largest if read[i] > largest else read[i]
            written[i] = half_bits(-largest if x < -largest else x)


@exact
def read_float16(bits: Any, out: Any) -> Any:
    """out = the numbers of (W,) bits of float16; the largest absolute value, NaN or infinity if there is one."""
    top = _u16(0)
    for i in range(len(bits)):
        out[i] = of_half_bits(bits[i])
        top = max(top, _u16(bits[i] & _u16(0x7FFF)))
    return of_half_bits(top)


@exact
def read_bfloat16(bits: Any, out: Any) -> Any:
    """The same of bfloat16."""
    written, top = out.view(np.uint32), _u16(0)
    for i in range(len(bits)):
        written[i] = _u32(_u32(bits[i]) << _u32(16))
        top = max(top, _u16(bits[i] & _u16(0x7FFF)))
    found = _u32(_u32(top) << _u32(16))
    return found.view(np.float32)


@exact
def _from_float16(bits: Any, out: Any) -> None:
    for n in range(bits.shape[0]):
        read, written = bits[n], out[n]
        for i in range(len(read)):
            written[i] = of_half_bits(read[i])


@exact
def _to_bfloat16(bits: Any, largest: Any, out: Any) -> None:
    for n in range(bits.shape[0]):
        read, written = bits[n], out[n]
        for i in range(len(read)):
            size = _u32(read[i] & _u32(0x7FFFFFFF))
            if size > largest:
                size = largest if size <= _INFINITY else _NAN
            size = _u32(size + _u32(_u32(0x7FFF) + _u32(_u32(size >> _u32(16)) & _u32(1))))
            written[i] = _u16(_u32(_u32(size | _u32(read[i] & _u32(0x80000000))) >> _u32(16)))


@exact
def _from_bfloat16(bits: Any, out: Any) -> None:
    for n in range(bits.shape[0]):
        read, written = bits[n], out[n]
        for i in range(len(read)):
            written[i] = _u32(_u32(read[i]) << _u32(16))

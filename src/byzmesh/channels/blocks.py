"""Whole numbers with a scale per block of coordinates: what int8 and int4 have in common.

In a block with scale s = max |x| / L, a coordinate is sent as a whole number u in [-L, L] and read as s u.

    nearest      u = round(x / s)                  |error| <= s / 2
    stochastic   u = floor(x / s + uniform)        |error| <= s, and its mean is zero

For the stochastic one s is rounded up, so that x / s never leaves [-L, L]: cutting would be a bias. Its uniforms are
halves of 32-bit hashes, 16 bits each, in the middle of their intervals: the mean is off by at most 5e-5 s.

A block is read once, and its scale and numbers are written while it is in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import choice
from byzmesh.compiled import exact
from byzmesh.rng import key_words, stream
from byzmesh.types import Array, Integers

ROUNDINGS = ("stochastic", "nearest")
_u32, _i32 = np.uint32, np.int32
_LARGEST = float(np.finfo(np.float32).max)
_BITS: dict[int, Any] = {4: np.int32, 8: np.int64}


def check_rounding(name: str, rounding: Any) -> None:
    """Raise `ConfigError` unless the rounding is known."""
    choice(f"stage {name}: rounding", rounding, ROUNDINGS)


def quantised(
    values: Array,
    block: int,
    levels: int,
    key: np.uint64 | None,
    sender: Integers,
    round: int,
    scale: Array,
    units: Array,
) -> None:
    """Write (N, ceil(W / block)) float32 scales and (N, W) int8 in [-levels, levels]; to the nearest without a key."""
    exact = np.ascontiguousarray(values)
    kind = _BITS[exact.itemsize]
    top = np.empty(1, kind)
    bits = exact.view(kind), top, top.view(exact.dtype)
    if key is None:
        _nearest(exact, bits, block, levels, scale, units)
    else:
        _stochastic(exact, bits, block, levels, key, sender, round, scale, units)


def scaled(units: Array, scale: Array, block: int, out: Array) -> Array:
    """(N, W) scale times unit, written to `out`."""
    _scale(units, scale.astype(out.dtype), block, out)
    return out


@exact
def _peak(bits: Any, n: Any, start: Any, end: Any) -> Any:
    """The largest absolute value of a block, by its bits: integers order as numbers do, and compare in vector lanes.

    bits  the values as integers, room for one of them, and the same room as a number
    """
    read, top, number = bits[0][n, start:end], bits[1], bits[2]
    sign = ~(top.dtype.type(1) << top.dtype.type(8 * top.itemsize - 1))
    found = top.dtype.type(0)
    for i in range(len(read)):
        found = max(found, top.dtype.type(read[i] & sign))
    top[0] = found
    return np.float64(number[0])


@exact
def _hash(counter: Any, first: Any, second: Any) -> Any:
    """A keyed 32-bit hash with two multiplications, half of `rng.hash_32`: enough for rounding."""
    x = _u32(counter + first)
    x = _u32(_u32(x ^ _u32(x >> _u32(16))) * _u32(0x7FEB352D))
    x = _u32(_u32(_u32(x ^ _u32(x >> _u32(15))) + second) * _u32(0x846CA68B))
    return _u32(x ^ _u32(x >> _u32(16)))


@exact
def _scale_of(peak: Any, levels: Any, up: Any) -> Any:
    """The float32 scale of a block with this peak, rounded up or to the nearest; values of it never overflow."""
    limit = np.float32(_LARGEST / levels)
    if np.float64(limit) * levels > _LARGEST:
        limit = np.nextafter(limit, np.float32(0.0))
    wanted = np.float64(peak) / levels
    if not wanted < np.float64(limit):
        return limit
    scale = np.float32(wanted)
    if up and np.float64(scale) * levels < peak:
        scale = np.nextafter(scale, limit)
    return scale


@exact
def _nearest(values: Any, bits: Any, block: Any, levels: Any, scale: Any, units: Any) -> None:
    most = np.float64(levels)
    for n in range(values.shape[0]):
        for b in range(scale.shape[1]):
            read, written = values[n, b * block : (b + 1) * block], units[n, b * block : (b + 1) * block]
            scale[n, b] = _scale_of(_peak(bits, n, b * block, (b + 1) * block), levels, False)
            divisor = np.float64(scale[n, b]) if scale[n, b] > 0 else 1.0
            for i in range(len(read)):
                unit = np.rint(np.float64(read[i]) / divisor)
                written[i] = np.int8(np.int32(min(max(unit, -most), most)))


@exact
def _stochastic(
    values: Any, bits: Any, block: Any, levels: Any, key: Any, sender: Any, round: Any, scale: Any, units: Any
) -> None:
    """Coordinates i and i + block / 2 of a block share a hash. x / s + 128 is positive: cut off, it is rounded down."""
    half, number = block // 2, values.dtype.type
    drawn = np.empty(half, np.uint32)
    unit, middle = number(2.0**-16), number(128.0 + 2.0**-17)
    for n in range(values.shape[0]):
        first, second, _, _ = key_words(stream(key, sender[n], round))
        for b in range(scale.shape[1]):
            start, end = b * block, min((b + 1) * block, values.shape[1])
            peak = _peak(bits, n, start, end)
            scale[n, b] = _scale_of(peak, levels, True)
            # of a block that is zero but for denormal numbers nothing is sent: its inverse scale would be infinite;
            # beyond the range of float32 the scale is less than peak / L
            divisor = number(max(np.float64(scale[n, b]), peak / levels))
            inverse = number(1.0 - 2.0**-23) / divisor if scale[n, b] > np.float32(1e-37) else number(0)
            for i in range(half):
                drawn[i] = _hash(_u32(_u32(b * half) + _u32(i)), first, second)
            read, written = values[n, start : min(start + half, end)], units[n, start : min(start + half, end)]
            for i in range(len(read)):
                place = number(_i32(drawn[i] & _u32(0xFFFF))) * unit + middle
                written[i] = np.int8(_i32(_i32(read[i] * inverse + place) - _i32(128)))
            read, written = values[n, start + half : end], units[n, start + half : end]
            for i in range(len(read)):
                place = number(_i32(drawn[i] >> _u32(16))) * unit + middle
                written[i] = np.int8(_i32(_i32(read[i] * inverse + place) - _i32(128)))


@exact
def _scale(units: Any, scale: Any, block: Any, out: Any) -> None:
    for n in range(units.shape[0]):
        for b in range(scale.shape[1]):
            factor = scale[n, b]
            read, written = units[n, b * block : (b + 1) * block], out[n, b * block : (b + 1) * block]
            for i in range(len(read)):
                written[i] = factor * read[i]

"""Whole numbers with a scale per block of coordinates: what int8 and int4 have in common.

In a block with scale s = max |x| / L, a coordinate is sent as a whole number u in [-L, L] and read as s u.

    nearest      u = round(x / s)                  |error| <= s / 2
    stochastic   u = floor(x / s + uniform)        |error| <= s, and its mean is zero

For the stochastic one s is rounded up, so that x / s never leaves [-L, L]: cutting would be a bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import choice
from byzmesh.compiled import exact
from byzmesh.rng import hash_32, key_words, stream
from byzmesh.types import Array, Integers

ROUNDINGS = ("stochastic", "nearest")
_u32, _i32 = np.uint32, np.int32


def check_rounding(name: str, rounding: Any) -> None:
    """Raise `ConfigError` unless the rounding is known."""
    choice(f"stage {name}: rounding", rounding, ROUNDINGS)


def scales_of(values: Array, block: int, levels: int, up: bool) -> Array:
    """(N, ceil(W / block)) float32 scales."""
    top = np.empty((len(values), -(-values.shape[1] // block)))
    _block_peaks(np.ascontiguousarray(values), block, top)
    limit = float(np.finfo(np.float32).max) / levels
    scale = np.minimum(top / levels, limit).astype(np.float32)
    if up:
        short = (scale.astype(np.float64) * levels < top) & (scale < limit)
        scale = np.where(short, np.nextafter(scale, np.float32(limit)), scale)
    return scale


def rounded(
    values: Array,
    scale: Array,
    block: int,
    levels: int,
    key: np.uint64 | None,
    sender: Integers,
    round: int,
    units: Array | None = None,
) -> Array:
    """(N, W) int8 in [-levels, levels], written to `units` if given; to the nearest if there is no key."""
    units = np.empty(values.shape, np.int8) if units is None else units
    divisor = np.where(scale > 0, scale, np.float32(1))
    if key is None:
        _nearest(np.ascontiguousarray(values), divisor, block, levels, units)
    elif values.dtype == np.float32:
        _stochastic_32(np.ascontiguousarray(values), divisor, block, levels, key, sender, round, units)
    else:
        _stochastic(np.ascontiguousarray(values), divisor, block, levels, key, sender, round, units)
    return units


def scaled(units: Array, scale: Array, block: int, dtype: Any) -> Array:
    """(N, W) scale times unit, in the dtype of the models."""
    out = np.empty(units.shape, dtype)
    _scale(units, scale.astype(dtype), block, out)
    return out


@exact
def _block_peaks(values: Any, block: Any, top: Any) -> None:
    for n in range(values.shape[0]):
        for b in range(top.shape[1]):
            read = values[n, b * block : (b + 1) * block]
            peak = np.abs(read[0])
            for i in range(1, len(read)):
                peak = max(peak, np.abs(read[i]))
            top[n, b] = peak


@exact
def _nearest(values: Any, scale: Any, block: Any, levels: Any, units: Any) -> None:
    for n in range(values.shape[0]):
        for b in range(scale.shape[1]):
            divisor, most = np.float64(scale[n, b]), np.float64(levels)
            read, written = values[n, b * block : (b + 1) * block], units[n, b * block : (b + 1) * block]
            for i in range(len(read)):
                unit = np.rint(np.float64(read[i]) / divisor)
                written[i] = np.int8(np.int32(min(max(unit, -most), most)))


@exact
def _stochastic(
    values: Any, scale: Any, block: Any, levels: Any, key: Any, sender: Any, round: Any, units: Any
) -> None:
    for n in range(values.shape[0]):
        first, second, _, _ = key_words(stream(key, sender[n], round))
        for b in range(scale.shape[1]):
            divisor, most = np.float64(scale[n, b]), np.float64(levels)
            read, written = values[n, b * block : (b + 1) * block], units[n, b * block : (b + 1) * block]
            start = _u32(b * block)
            for i in range(len(read)):
                draw = np.float64(_i32(hash_32(_u32(start + _u32(i)), first, second) >> _u32(1))) * 2.0**-31
                unit = np.floor(np.float64(read[i]) / divisor + draw)
                written[i] = np.int8(np.int32(min(max(unit, -most), most)))


@exact
def _stochastic_32(
    values: Any, scale: Any, block: Any, levels: Any, key: Any, sender: Any, round: Any, units: Any
) -> None:
    """As `_stochastic` in single precision, twice as many lanes: the draws have 24 bits, the mean is off by 1e-5 s."""
    most = np.float32(levels)
    for n in range(values.shape[0]):
        first, second, _, _ = key_words(stream(key, sender[n], round))
        for b in range(scale.shape[1]):
            # of a block that is zero but for denormal numbers nothing is sent: its inverse scale would be infinite
            inverse = np.float32(np.float32(1) / scale[n, b]) if scale[n, b] > np.float32(1e-37) else np.float32(0)
            read, written = values[n, b * block : (b + 1) * block], units[n, b * block : (b + 1) * block]
            start = _u32(b * block)
            for i in range(len(read)):
                draw = np.float32(_i32(hash_32(_u32(start + _u32(i)), first, second) >> _u32(8))) * np.float32(2.0**-24)
                unit = np.floor(np.float32(read[i] * inverse) + draw)
                written[i] = np.int8(np.int32(min(max(unit, -most), most)))


@exact
def _scale(units: Any, scale: Any, block: Any, out: Any) -> None:
    for n in range(units.shape[0]):
        for b in range(scale.shape[1]):
            factor = scale[n, b]
            read, written = units[n, b * block : (b + 1) * block], out[n, b * block : (b + 1) * block]
            for i in range(len(read)):
                written[i] = factor * read[i]

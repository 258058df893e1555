"""Random numbers as a function: every draw depends only on (seed, purpose, worker, round, counter).

There is no generator to carry along, so a resumed run equals an uninterrupted one, a peer draws what the simulator
would draw for it, and adding a worker does not change the others' draws.

    key      = hash of (seed, purpose, ...)          once per use, 64 bits
    stream   = mix(mix(key + worker * G) + round * G) one per worker and round; mix is a bijection of 64-bit integers
    bits     = mix(stream + counter * G)             integers and uniforms
    normals    two keyed 32-bit hashes per counter and the Box-Muller transform, all in vector instructions

The kernels use IEEE arithmetic in the order written: the same numbers on every CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import is_whole
from byzmesh.compiled import exact
from byzmesh.errors import ConfigError

BATCH, PARTITION, INITIAL, ATTACK, RULE, TOPOLOGY, FAULT, PROCESS, CHANNEL = range(1, 10)
"""Purposes: what a draw is for. Two purposes never share a stream."""

_MASK = (1 << 64) - 1
_G = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd: multiples are spread evenly
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BLOCK = 32  # counters per vector block of `normals`: cosines, then sines


def key(seed: int, purpose: int, *extra: int) -> np.uint64:
    """The 64-bit key of a family of draws.

    >>> len({int(key(0, BATCH)), int(key(0, BATCH)), int(key(0, ATTACK)), int(key(0, BATCH, 1))})
    3
    """
    if not is_whole(seed):
        raise ConfigError(f"seed must be a whole number, got {seed!r}")
    state = 0
    for word in (int(seed), int(purpose), *(int(value) for value in extra)):
        state = _mix_python((state + _G + (word & _MASK)) & _MASK)
        state = _mix_python(state ^ (word >> 64 & _MASK))
    return np.uint64(state)


def _mix_python(x: int) -> int:
    x = ((x ^ x >> 30) * _MIX_1) & _MASK
    x = ((x ^ x >> 27) * _MIX_2) & _MASK
    return x ^ x >> 31


def generator(seed: int, purpose: int, *extra: int) -> np.random.Generator:
    """A NumPy generator for draws during set-up (partitions, initial models); too slow to create one per round.

    >>> bool(generator(1, PARTITION).random() == generator(1, PARTITION).random())
    True
    """
    return np.random.Generator(np.random.Philox(key=int(key(seed, purpose, *extra))))


@exact
def mix(x: Any) -> Any:
    """Bijective hash of a uint64, for kernels."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_MIX_1)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_MIX_2)
    return x ^ (x >> np.uint64(31))


@exact
def stream(key: Any, worker: Any, round: Any) -> Any:
    """The uint64 stream of a worker in a round, for kernels."""
    state = mix(np.uint64(key) + np.uint64(worker) * np.uint64(_G))
    return mix(state + np.uint64(round) * np.uint64(_G))


@exact
def below(stream: Any, counter: Any, high: Any) -> Any:
    """Integer in [0, high) for 0 < high < 2^32, for kernels: the upper word of the product bits * high."""
    bits = mix(np.uint64(stream) + np.uint64(counter) * np.uint64(_G))
    wide = np.uint64(high)
    carry = ((bits & np.uint64(0xFFFFFFFF)) * wide) >> np.uint64(32)
    return np.int64(((bits >> np.uint64(32)) * wide + carry) >> np.uint64(32))


@exact
def unit(stream: Any, counter: Any) -> Any:
    """Float64 in [0, 1) with 53 random bits, for kernels."""
    bits = mix(np.uint64(stream) + np.uint64(counter) * np.uint64(_G))
    return np.float64(np.int64(bits >> np.uint64(11))) * 2.0**-53


@exact
def _integers(key: Any, ids: Any, round: Any, high: Any, out: Any) -> None:
    for n in range(out.shape[0]):
        state = stream(key, ids[n], round)
        for c in range(out.shape[1]):
            out[n, c] = below(state, c, high[n])


@exact
def _uniforms(key: Any, ids: Any, round: Any, out: Any) -> None:
    for n in range(out.shape[0]):
        state = stream(key, ids[n], round)
        for c in range(out.shape[1]):
            out[n, c] = unit(state, c)


def integers(key: np.uint64, ids: npt.ArrayLike, round: int, count: int, high: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """(N, count) integers in [0, high[n]) for workers `ids` (N,); `high` is one number or one per worker, below 2^32.

    >>> integers(key(0, BATCH), [4, 7], 0, 3, [10, 1000]).shape
    (2, 3)
    >>> bool((integers(key(0, BATCH), [7], 0, 3, 1000) == integers(key(0, BATCH), [4, 7], 0, 3, 1000)[1]).all())
    True
    """
    workers = np.asarray(ids, np.int64)
    bounds = np.ascontiguousarray(np.broadcast_to(np.asarray(high, np.int64), workers.shape))
    if bounds.size and not (bounds.min() > 0 and bounds.max() < 1 << 32):
        raise ConfigError(f"high must be between 1 and 2^32 - 1, got {bounds.min()} to {bounds.max()}")
    out = np.empty((len(workers), count), np.int64)
    _integers(key, workers, round, bounds, out)
    return out


def uniforms(key: np.uint64, ids: npt.ArrayLike, round: int, count: int) -> npt.NDArray[np.float64]:
    """(N, count) numbers uniform in [0, 1).

    >>> bool((uniforms(key(0, RULE), [0, 1], 5, 4) < 1).all())
    True
    """
    workers = np.asarray(ids, np.int64)
    out = np.empty((len(workers), count), np.float64)
    _uniforms(key, workers, round, out)
    return out


def normals(
    key: np.uint64, ids: npt.ArrayLike, round: int, count: int, dtype: npt.DTypeLike = np.float32, out: Any = None
) -> npt.NDArray[Any]:
    """(Q, count) standard normals, one row per id, float32 or float64; written into `out` (Q, count) if given.

    A row is a function of (key, id, round): a longer row starts with the shorter one. About 1 ns per float32.

    >>> normals(key(0, ATTACK), [3, 5], 0, 1000).std().round(1)
    np.float32(1.0)
    """
    rows = np.asarray(ids, np.int64)
    if out is None:
        out = np.empty((len(rows), count), dtype)
    if out.dtype == np.float32:
        _normals_32(key, rows, round, out)
    elif out.dtype == np.float64:
        _normals_64(key, rows, round, out)
    else:
        raise ConfigError(f"dtype of normals must be float32 or float64, got {out.dtype}")
    return out  # type: ignore[no-any-return]


# Numba widens 32-bit integer arithmetic to 64 bits; the casts keep it in 32, which is what makes 8 lanes of AVX2.
# Every polynomial below is branch-free for the same reason.
_u32, _i32, _f32 = np.uint32, np.int32, np.float32


@exact
def hash_32(counter: Any, first: Any, second: Any) -> Any:
    """Keyed 32-bit hash: multiply and shift-xor rounds, the second key word enters after the first round."""
    x = _u32(_u32(counter + first) * _u32(0x9E3779B1))
    x = _u32(_u32(_u32(x ^ _u32(x >> _u32(16))) * _u32(0x85EBCA6B)) + second)
    x = _u32(_u32(x ^ _u32(x >> _u32(15))) * _u32(0xC2B2AE35))
    x = _u32(_u32(x ^ _u32(x >> _u32(14))) * _u32(0x2C1B3C6D))
    return _u32(x ^ _u32(x >> _u32(16)))


@exact
def key_words(state: Any) -> Any:
    """Four 32-bit key words of a stream."""
    other = mix(state + np.uint64(_G))
    low = np.uint64(0xFFFFFFFF)
    return _u32(state & low), _u32(state >> np.uint64(32)), _u32(other & low), _u32(other >> np.uint64(32))


@exact
def _normals_32(key: Any, ids: Any, round: Any, out: Any) -> None:
    """Fill rows with float32 normals, 64 at a time: 32 counters' cosines, then their sines.

    log: exponent split off, 2 atanh((m - 1)/(m + 1)) by its series; sine and cosine of half the angle by polynomials
    fitted on [-pi/2, pi/2] (error 5e-8), doubled by sin 2y = 2 sin y cos y. All in one loop: LLVM vectorises that.
    """
    count = out.shape[1]
    buffer = np.empty(2 * _BLOCK, out.dtype)
    for n in range(out.shape[0]):
        a, b, c, d = key_words(stream(key, ids[n], round))
        for start in range(0, count, 2 * _BLOCK):
            whole = start + 2 * _BLOCK <= count
            target = out[n, start : start + 2 * _BLOCK] if whole else buffer
            for j in range(_BLOCK):
                counter = _u32(start // 2 + j)
                u = _f32(_f32(_i32(hash_32(counter, a, b) >> _u32(1))) + _f32(0.5))
                bits = u.view(_i32)
                exponent = _i32(_i32(bits - _i32(0x3F3504F3)) >> _i32(23))
                m = _i32(bits - _i32(exponent << _i32(23))).view(_f32)
                s = (m - _f32(1)) / (m + _f32(1))
                q = s * s
                series = _f32(1) + q * (_f32(1 / 3) + q * (_f32(1 / 5) + q * _f32(1 / 7)))
                log = _f32(2) * s * series + _f32(_i32(exponent - _i32(31))) * _f32(0.6931471805599453)
                radius = np.sqrt(np.maximum(_f32(-2) * log, _f32(0)))
                t = _f32(_i32(hash_32(counter, c, d))) * _f32(2.0**-31)
                v = t * t
                sine = _f32(-0.00467415066890918) + v * _f32(0.0001516751177822477)
                sine = t * (
                    _f32(1.5707963200653532)
                    + v * (_f32(-0.6459637604384892) + v * (_f32(0.07968992260045947) + v * sine))
                )
                cosine = _f32(-0.020810571376254236) + v * _f32(0.0008581625433453355)
                cosine = _f32(0.9999999532476087) + v * (
                    _f32(-1.233698207654912) + v * (_f32(0.2536507095539085) + v * cosine)
                )
                target[j] = radius * (_f32(1) - _f32(2) * sine * sine)
                target[_BLOCK + j] = radius * (_f32(2) * sine * cosine)
            if not whole:
                out[n, start:] = buffer[: count - start]


_LN2 = 0.6931471805599453
_HALF_PI2 = 2.4674011002723395  # (pi/2)^2
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # sqrt(1/2) as float64
_TWO_52_BITS = 0x4330000000000000  # 2^52 as float64: its low bits count integers


@exact
def _normals_64(key: Any, ids: Any, round: Any, out: Any) -> None:
    """As `_normals_32`, with 62 random bits for the radius, 63 for the angle and longer series."""
    count = out.shape[1]
    buffer = np.empty(2 * _BLOCK, out.dtype)
    for n in range(out.shape[0]):
        a, b, c, d = key_words(stream(key, ids[n], round))
        for start in range(0, count, 2 * _BLOCK):
            whole = start + 2 * _BLOCK <= count
            target = out[n, start : start + 2 * _BLOCK] if whole else buffer
            for j in range(_BLOCK):
                counter = _u32(start // 2 + j)
                even, odd = _u32(counter + counter), _u32(_u32(counter + counter) + _u32(1))
                u = (np.float64(_i32(hash_32(odd, a, b) >> _u32(1))) + 0.5) * 2.0**-62
                u = np.float64(u + np.float64(_i32(hash_32(even, a, b) >> _u32(1))) * 2.0**-31)
                bits = u.view(np.uint64)
                exponent = (bits - np.uint64(_ROOT_HALF_BITS) + np.uint64(1024 << 52)) >> np.uint64(52)
                m = np.uint64(bits - ((exponent - np.uint64(1024)) << np.uint64(52))).view(np.float64)
                power = np.uint64(exponent | np.uint64(_TWO_52_BITS)).view(np.float64) - (2.0**52 + 1024.0)
                s = (m - 1.0) / (m + 1.0)
                q = s * s
                series = 1 / 13 + q * (1 / 15 + q * (1 / 17 + q * (1 / 19 + q * (1 / 21))))
                series = 1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * series)))))
                radius = np.sqrt(np.maximum(-2.0 * (2.0 * s * series + power * _LN2), 0.0))
                t = (
                    np.float64(_i32(hash_32(even, c, d))) * 2.0**-31
                    + np.float64(_i32(hash_32(odd, c, d) >> _u32(1))) * 2.0**-62
                )
                v = _HALF_PI2 * t * t
                sine, cosine = 1.0 - v * (1 / 342), 1.0 - v * (1 / 380)
                sine = 1.0 - v * (1 / 210) * (1.0 - v * (1 / 272) * sine)
                sine = 1.0 - v * (1 / 72) * (1.0 - v * (1 / 110) * (1.0 - v * (1 / 156) * sine))
                sine = 1.5707963267948966 * t * (1.0 - v * (1 / 6) * (1.0 - v * (1 / 20) * (1.0 - v * (1 / 42) * sine)))
                cosine = 1.0 - v * (1 / 182) * (1.0 - v * (1 / 240) * (1.0 - v * (1 / 306) * cosine))
                cosine = 1.0 - v * (1 / 56) * (1.0 - v * (1 / 90) * (1.0 - v * (1 / 132) * cosine))
                cosine = 1.0 - v * (1 / 2) * (1.0 - v * (1 / 12) * (1.0 - v * (1 / 30) * cosine))
                target[j] = radius * (1.0 - 2.0 * sine * sine)
                target[_BLOCK + j] = radius * (2.0 * sine * cosine)
            if not whole:
                out[n, start:] = buffer[: count - start]

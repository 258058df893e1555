"""Across the lanes of a vector (simd.py): their sums, and the largest of them.

    half_sums(lanes)                                the sums of the lower and of the upper half of the lanes
    add_sums(array, i, a, ..., h)                   array[i : i + 8] += the sums over the lanes of each, in float64
    add_folds(array, i, step, a, ..., h)            array[i : i + 4] += those of the first four times `FOLD` bytes,
                                                    array[i + step : i + step + 4] += those of the next four, and so on,
                                                    each added as in half_sums
    magnitude(lanes), larger(a, b), largest(m, n)   |x| as integers, which order like |x| with infinity and NaN on top

The order of every addition is written here: the same numbers on every processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from byzmesh.simd import Lanes, pick, pointer, positions

FOLD = 32
"""Bytes of the partial sums of one sum in `add_folds`."""


def _sum(builder: Any, lanes: Any, places: list[int]) -> Any:
    """The sum over some lanes: upper half added to lower half until one is left."""
    lanes = pick(builder, lanes, places)
    width = len(places)
    while width > 1:
        width //= 2
        lanes = builder.fadd(*(pick(builder, lanes, list(range(low, low + width))) for low in (0, width)))
    return builder.extract_element(lanes, ir.IntType(32)(0))


@intrinsic  # type: ignore[untyped-decorator]
def half_sums(typing: Any, lanes: Any) -> Any:
    """The sum of the lower half of the lanes, and that of the upper half."""
    pair = types.UniTuple(lanes.dtype, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = lanes.width // 2
        sums = [_sum(builder, arguments[0], list(range(low, low + half))) for low in (0, half)]
        return context.make_tuple(builder, pair, sums)

    return pair(lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def add_sums(
    typing: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    """array[index : index + 8] += the sums over the lanes of eight vectors: neighbours are added until one is left."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        level, width = list(arguments[2:]), a.width
        for _ in range(width.bit_length() - 1):
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [
                builder.fadd(
                    *(builder.shuffle_vector(*pair, positions(list(range(odd, 2 * width, 2)))) for odd in (0, 1))
                )
                for pair in pairs
            ]
        wide = ir.VectorType(ir.DoubleType(), width)
        for place, sums in enumerate(level):
            at = builder.add(arguments[1], arguments[1].type(place * width))
            address = pointer(context, builder, array, (arguments[0], at), wide)
            more = sums if a.dtype == types.float64 else builder.fpext(sums, wide)
            builder.store(builder.fadd(builder.load(address, align=8), more), address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, a, b, c, d, e, f, g, h), generate


@intrinsic  # type: ignore[untyped-decorator]
def add_folds(
    typing: Any, array: Any, i: Any, step: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    """array[i : i + 4] += the sums of the first four times `FOLD` bytes of the vectors, array[i + step : i + step + 4]
    += those of the next four, and so on: of each the upper half is added to the lower one until one number is left, for
    all of them at once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        level, width, group = list(arguments[3:]), a.width, 8 * FOLD // a.dtype.bitwidth
        while group > 1:
            starts = range(0, 2 * width, group)  # of the sums that lie side by side in two registers
            group //= 2
            low, high = ([first + odd + lane for first in starts for lane in range(group)] for odd in (0, group))
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [
                builder.fadd(*(builder.shuffle_vector(*pair, positions(half)) for half in (low, high)))
                for pair in pairs
            ]
        four = ir.VectorType(ir.DoubleType(), 4)
        at = arguments[1]
        for place in range(0, len(level) * width, 4):
            sums = pick(builder, level[place // width], list(range(place % width, place % width + 4)))
            more = sums if a.dtype == types.float64 else builder.fpext(sums, four)
            address = pointer(context, builder, array, (arguments[0], at), four)
            builder.store(builder.fadd(builder.load(address, align=8), more), address, align=8)
            at = builder.add(at, arguments[2])
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64, a, b, c, d, e, f, g, h), generate


@intrinsic  # type: ignore[untyped-decorator]
def magnitude(typing: Any, lanes: Any) -> Any:
    """The bits of |x| in each lane, as integers."""
    bits = lanes.dtype.bitwidth
    found = Lanes(types.Integer.from_bitwidth(bits, signed=True), lanes.width)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(bits)
        mask = ir.Constant(ir.VectorType(word, lanes.width), [(1 << bits - 1) - 1] * lanes.width)
        return builder.and_(builder.bitcast(arguments[0], mask.type), mask)

    return found(lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def larger(typing: Any, one: Any, two: Any) -> Any:
    """The larger integer in each lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.icmp_signed(">", *arguments), *arguments)

    return one(one, two), generate


@intrinsic  # type: ignore[untyped-decorator]
def largest(typing: Any, lanes: Any, like: Any) -> Any:
    """The float of the type of `like` whose magnitude is the largest of all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        top, width = arguments[0], lanes.width
        while width > 1:
            width //= 2
            low, high = (pick(builder, top, list(range(first, first + width))) for first in (0, width))
            top = builder.select(builder.icmp_signed(">", low, high), low, high)
        top = builder.extract_element(top, ir.IntType(32)(0))
        return builder.bitcast(top, context.get_value_type(like))

    return like(lanes, like), generate

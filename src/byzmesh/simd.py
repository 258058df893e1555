"""Vectors in registers, for kernels in which the compiler's vectoriser does not find them.

Numba unrolls a loop over 10 classes into scalar code, and it keeps no block of sums in registers. A `Lanes` value is an
LLVM vector of a power-of-two width:

    load(array, i, width), chunk(array, i, bytes)   array[i : i + width]; width or bytes is a constant
    store(array, i, lanes)
    lanes_of(array, bytes)                          how many of its numbers these bytes hold, known when compiling
    spread(x, like)                                 x in every lane
    plus, minus, times                              lane by lane
    fused(a, b, c), axpy(x, b, c)                   a b + c, x b + c, rounded once
    fma(x, y, z)                                    x y + z for numbers, rounded once
    twice(lanes), halves(lanes)                     the lanes and the lanes again; the lower and the upper half

In an `exact` kernel (in a `fast` one Numba lets LLVM reorder these, too) the arithmetic is IEEE in the order written:
the same numbers on every processor. Indices are uint64 offsets into the flat array and are not checked. `prefetch`
requests a cache line before its use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model


def _register_bytes() -> int:
    """Bytes of the widest vector registers of the processor that Numba compiles for."""
    features = config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten()
    return 64 if "+avx512f" in features.split(",") else 32


VECTOR = _register_bytes()
"""Bytes of a vector register: how wide a kernel works if its result does not depend on the width."""


def pieces(classes: int) -> tuple[int, int] | None:
    """Two powers of two, at most 8, that add up to `classes`; None if there are none.

    >>> pieces(10), pieces(3), pieces(16), pieces(1), pieces(7)
    ((8, 2), (2, 1), (8, 8), None, None)
    """
    for first in (8, 4, 2, 1):
        second = classes - first
        if second in (1, 2, 4, 8) and second <= first:
            return first, second
    return None


class Lanes(types.Type):  # type: ignore[misc]
    """Numba type of a vector of `width` numbers."""

    def __init__(self, dtype: Any, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Lanes({dtype}, {width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        element = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.width))


def pointer(context: Any, builder: Any, array_type: Any, arguments: Any, target: Any) -> Any:
    """Pointer to array[index], the first two arguments, as a pointer to `target`."""
    if array_type.layout != "C":
        raise TypingError(f"lanes need a contiguous array, got {array_type}")
    data = context.make_array(array_type)(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), target.as_pointer())


def _alignment(context: Any, array_type: Any) -> Any:
    return context.get_abi_sizeof(context.get_value_type(array_type.dtype))


def _load(width_of: Callable[[Any, int], int]) -> Any:
    @intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
    def load(typing: Any, array: Any, index: Any, size: Any) -> Any:
        lanes = Lanes(array.dtype, width_of(array, size.literal_value))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = pointer(context, builder, array, arguments, context.get_value_type(lanes))
            return builder.load(address, align=_alignment(context, array))

        return lanes(array, types.uint64, size), generate

    return load


load = _load(lambda array, width: width)
chunk = _load(lambda array, bytes: 8 * bytes // array.dtype.bitwidth)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def lanes_of(typing: Any, array: Any, size: Any) -> Any:
    """How many numbers of the array's type `size` bytes hold. Numba reads `array.itemsize` at run time; this is a
    constant, from which the compiler makes loops of fixed steps and addresses of fixed distances."""
    count = 8 * size.literal_value // array.dtype.bitwidth

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.uint64, count)

    return types.uint64(array, size), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """array[index : index + width] = lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, array, arguments, context.get_value_type(lanes))
        builder.store(arguments[2], address, align=_alignment(context, array))
        return context.get_dummy_value()

    return types.void(array, types.uint64, lanes), generate


def positions(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


def pick(builder: Any, lanes: Any, places: list[int]) -> Any:
    """The lanes at these places."""
    return builder.shuffle_vector(lanes, ir.Constant(lanes.type, ir.Undefined), positions(places))


def _spread(builder: Any, scalar: Any, width: int) -> Any:
    undefined = ir.Constant(ir.VectorType(scalar.type, width), ir.Undefined)
    return pick(builder, builder.insert_element(undefined, scalar, ir.IntType(32)(0)), [0] * width)


def fma_of_vectors(builder: Any, arguments: list[Any]) -> Any:
    """The LLVM value a b + c of three LLVM vectors, rounded once."""
    kind = arguments[2].type
    name = f"llvm.fma.v{kind.count}f{32 if isinstance(kind.element, ir.FloatType) else 64}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, arguments)


@intrinsic  # type: ignore[untyped-decorator]
def spread(typing: Any, scalar: Any, like: Any) -> Any:
    """A vector like `like` with the scalar in every lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, arguments[0], like.width)

    return like(like.dtype, like), generate


@intrinsic  # type: ignore[untyped-decorator]
def axpy(typing: Any, scalar: Any, vector: Any, total: Any) -> Any:
    """total + scalar * vector, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return fma_of_vectors(builder, [_spread(builder, arguments[0], total.width), arguments[1], arguments[2]])

    return total(total.dtype, vector, total), generate


@intrinsic  # type: ignore[untyped-decorator]
def fused(typing: Any, one: Any, two: Any, total: Any) -> Any:
    """total + one * two, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return fma_of_vectors(builder, list(arguments))

    return total(one, two, total), generate


@intrinsic  # type: ignore[untyped-decorator]
def fma(typing: Any, one: Any, two: Any, total: Any) -> Any:
    """total + one * two for numbers, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return total(total, total, total), generate


def _lane_by_lane(operation: str) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def apply(typing: Any, one: Any, two: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, operation)(*arguments)

        return one(one, two), generate

    return apply


plus, minus, times = _lane_by_lane("fadd"), _lane_by_lane("fsub"), _lane_by_lane("fmul")


@intrinsic  # type: ignore[untyped-decorator]
def twice(typing: Any, lanes: Any) -> Any:
    """The lanes, and the lanes again: a vector of twice the width."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return pick(builder, arguments[0], list(range(lanes.width)) * 2)

    return Lanes(lanes.dtype, 2 * lanes.width)(lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def halves(typing: Any, lanes: Any) -> Any:
    """The lower and the upper half of the lanes."""
    half = lanes.width // 2
    pair = types.UniTuple(Lanes(lanes.dtype, half), 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = [pick(builder, arguments[0], list(range(low, low + half))) for low in (0, half)]
        return context.make_tuple(builder, pair, parts)

    return pair(lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Start loading the cache line of array[index] for reading."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, array, arguments, ir.IntType(8))
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate

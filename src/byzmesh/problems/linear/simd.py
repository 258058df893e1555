"""Short vectors in registers, for kernels whose inner dimension is too short for the compiler's vectoriser.

Numba unrolls a loop over 10 classes into scalar code. A `Lanes` value is an LLVM vector of a power-of-two width in one
register: `load` reads it from a contiguous array, `axpy` is one fused multiply-add, `store` writes it back. Indices are
uint64 offsets into the flat array and are not checked. `prefetch` requests a cache line before its use.

Two values of width 8 and 2 cover ten classes (`pieces`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model


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


def _address(context: Any, builder: Any, array_type: Any, arguments: Any, target: Any) -> Any:
    """Pointer to array[index], the first two arguments, as a pointer to `target`."""
    data = context.make_array(array_type)(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), target.as_pointer())


def _alignment(context: Any, array_type: Any) -> Any:
    return context.get_abi_sizeof(context.get_value_type(array_type.dtype))


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def load(typing: Any, array: Any, index: Any, width: Any) -> Any:
    """array[index : index + width], `width` a constant."""
    lanes = Lanes(array.dtype, width.literal_value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, array, arguments, context.get_value_type(lanes))
        return builder.load(address, align=_alignment(context, array))

    return lanes(array, types.uint64, width), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """array[index : index + width] = lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, array, arguments, context.get_value_type(lanes))
        builder.store(arguments[2], address, align=_alignment(context, array))
        return context.get_dummy_value()

    return types.void(array, types.uint64, lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def axpy(typing: Any, scalar: Any, vector: Any, total: Any) -> Any:
    """total + scalar * vector, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(total)
        undefined = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(undefined, arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), total.width), [0] * total.width)
        spread = builder.shuffle_vector(first, undefined, zeros)
        name = f"llvm.fma.v{total.width}f{total.dtype.bitwidth}"
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(fma, [spread, arguments[1], arguments[2]])

    return total(total.dtype, vector, total), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Start loading the cache line of array[index] for reading."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, array, arguments, ir.IntType(8))
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate

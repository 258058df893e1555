"""Inner products of many rows in vector registers (simd.py): tiles of `SIDE` by `SIDE` of them at a time.

    add_tile(rows, i, j, stride, columns, sums, at, ahead)

Every product has a vector of partial sums. With AVX-512 a tile's 25 sums, five rows and a row of the others just fit
into the 32 registers, and each number that is loaded is used five times.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from byzmesh.simd import VECTOR, fma_of_vectors, pointer

SIDE = 5
_BYTE = ir.IntType(8).as_pointer()
_PREFETCH = ir.FunctionType(ir.VoidType(), [_BYTE, *[ir.IntType(32)] * 3]), "llvm.prefetch.p0i8"


@intrinsic  # type: ignore[untyped-decorator]
def add_tile(typing: Any, rows: Any, i: Any, j: Any, stride: Any, columns: Any, sums: Any, at: Any, ahead: Any) -> Any:
    """Add the products of the rows that begin at rows[i], rows[i + stride], ... with those at rows[j], ... over the
    columns, a multiple of a vector's lanes, to the vectors of partial sums at sums[at], row by row of the tile.

    Meanwhile the same columns from the address `ahead` are requested from memory, which need not be there.
    """
    lanes = 8 * VECTOR // rows.dtype.bitwidth

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(context.get_value_type(rows.dtype), lanes)
        matrix, first, second, step, width, totals, place, coming = arguments
        word, size = step.type, rows.dtype.bitwidth // 8

        def address(array_type: Any, array: Any, index: Any) -> Any:
            return pointer(context, builder, array_type, (array, index), vector)

        def starts(begin: Any) -> list[Any]:
            return [builder.add(begin, builder.mul(step, word(row))) for row in range(SIDE)]

        sides = starts(first), starts(second)
        held = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * lanes)) for _ in range(SIDE * SIDE)]
        for cell in held:
            builder.store(ir.Constant(vector, [0.0] * lanes), cell)
        request = cgutils.get_or_insert_function(builder.module, *_PREFETCH)
        with cgutils.for_range_slice(builder, word(0), width, word(lanes)) as (column, _):
            one, two = (
                [builder.load(address(rows, matrix, builder.add(start, column)), align=size) for start in side]
                for side in sides
            )
            line = builder.add(coming, builder.mul(column, word(size)))
            builder.call(request, [builder.inttoptr(line, _BYTE), *map(ir.IntType(32), (0, 2, 1))])
            for number, cell in enumerate(held):
                product = [one[number // SIDE], two[number % SIDE], builder.load(cell)]
                builder.store(fma_of_vectors(builder, product), cell)
        for number, cell in enumerate(held):
            target = address(sums, totals, builder.add(place, word(number * lanes)))
            builder.store(builder.fadd(builder.load(target, align=size), builder.load(cell)), target, align=size)
        return context.get_dummy_value()

    number = types.uint64
    return types.void(rows, number, number, number, number, sums, number, number), generate

"""Sorting networks in vector registers (simd.py): the comparators of a network become instructions.

    select(like, address, at, column, target, network)
    comparing(comparators, vectors)(lines, x, y)

A network is a text of four parts, "values|apart|places|steps", as `rules/ranks/registers.py` writes it from a program
of `rules/ranks/sorting_networks.py`. Every comparator is a minimum and a maximum of two registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from byzmesh.simd import VECTOR, fma_of_vectors, pointer


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def select(typing: Any, like: Any, address: Any, at: Any, column: Any, target: Any, network: Any) -> Any:
    """Write the means of one vector of coordinates to the address `target`; address[at + i] is where value i begins.

    The receiver's own value comes last. `like` has the type of the values.
    """
    size, apart, places, steps = network.literal_value.split("|")
    count, wanted = int(size), [int(place) for place in places.split()]
    moves = np.array(steps.split(), np.int64).reshape(-1, 4).tolist()
    width = 8 * VECTOR // like.dtype.bitwidth

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_value_type(like.dtype)
        vector, itemsize = ir.VectorType(element, width), like.dtype.bitwidth // 8
        rows = context.make_array(address)(context, builder, arguments[1]).data

        def load(value: int) -> Any:
            row = builder.load(builder.gep(rows, [builder.add(arguments[2], arguments[2].type(value))]))
            start = builder.inttoptr(row, element.as_pointer())
            return builder.load(
                builder.bitcast(builder.gep(start, [arguments[3]]), vector.as_pointer()), align=itemsize
            )

        inputs = {-1 - value: load(value) for value in range(count)}
        lines: dict[int, Any] = {}

        def value_at(place: int) -> Any:
            return lines[place] if place >= 0 else inputs[place]

        for one, two, low, high in moves:
            x, y = value_at(one), value_at(two)
            least, most = _compared(builder, x, y)
            lines |= {place: found for place, found in ((low, least), (high, most)) if place >= 0}
        chosen = [value_at(place) for place in wanted]
        own = load(count) if apart == "1" or not chosen else None
        values = [*chosen, *([] if own is None else [own])]
        mean = values[0] if len(values) == 1 else _mean(builder, vector, own, chosen)
        place = builder.inttoptr(arguments[4], vector.as_pointer())
        builder.store(mean, place, align=itemsize)
        return context.get_dummy_value()

    return types.void(like, address, types.uint64, types.uint64, types.uint64, network), generate


def _compared(builder: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The smaller and the larger of two vectors, lane by lane."""
    return tuple(builder.select(builder.fcmp_ordered(sign, x, y), x, y) for sign in "<>")


def comparing(comparators: list[tuple[int, int]], vectors: int) -> Any:
    """An intrinsic (lines, x, y) that sends a vector of coordinates through a network of at most 32 lines, in place.

    Wires 0 to 15 are the vector at lines[x] and those below it, wires 16 to 31 the same from lines[y]; every line is so
    many vectors long.
    """
    last = {wire: step for step, pair in enumerate(comparators) for wire in pair}

    @intrinsic  # type: ignore[untyped-decorator]
    def compare(typing: Any, lines: Any, x: Any, y: Any) -> Any:
        width, size = 8 * VECTOR // lines.dtype.bitwidth, lines.dtype.bitwidth // 8

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = ir.VectorType(context.get_value_type(lines.dtype), width)

            def address(wire: int) -> Any:
                start = arguments[1 + wire // 16]
                place = builder.add(start, start.type(wire % 16 * vectors * width))
                return pointer(context, builder, lines, (arguments[0], place), vector)

            held: dict[int, Any] = {}
            for step, pair in enumerate(comparators):
                for wire in pair:
                    if wire not in held:
                        held[wire] = builder.load(address(wire), align=size)
                held |= zip(pair, _compared(builder, *(held[wire] for wire in pair)))
                for wire in pair:
                    if last[wire] == step:
                        builder.store(held[wire], address(wire), align=size)
            return context.get_dummy_value()

        return types.void(lines, types.uint64, types.uint64), generate

    return compare


def _mean(builder: Any, vector: Any, own: Any, chosen: list[Any]) -> Any:
    """The mean in float64, weights first and one value after the other, as in `kernels.rank_mean`."""
    wide = ir.VectorType(ir.DoubleType(), vector.count)
    single = isinstance(vector.element, ir.FloatType)

    def constant(kind: Any, number: float) -> Any:
        return ir.Constant(kind, [number] * vector.count)

    def widened(values: Any) -> Any:
        return builder.fpext(values, wide) if single else values

    weight = constant(wide, 1.0 / (len(chosen) + (own is not None)))
    total = constant(wide, 0.0) if own is None else builder.fmul(weight, widened(own))
    for values in chosen:
        total = fma_of_vectors(builder, [weight, widened(values), total])
    mean = builder.fptrunc(total, vector) if single else total
    top = float(np.finfo(np.float32 if single else np.float64).max)
    most, least = constant(vector, top), constant(vector, -top)
    mean = builder.select(builder.fcmp_ordered("<", mean, most), mean, most)
    return builder.select(builder.fcmp_ordered(">", mean, least), mean, least)

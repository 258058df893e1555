"""float16 in kernels, which Numba does not know: conversions by the processor's own instructions."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_HALF = ir.HalfType()
HALVES = platform.machine() in ("aarch64", "arm64") or bool(llvmlite.binding.get_host_cpu_features().get("f16c"))
"""Whether the processor has them; without, LLVM would call a function that is not there."""


@intrinsic  # type: ignore[untyped-decorator]
def half_bits(typing: Any, number: Any) -> Any:
    """The bits of a float32 rounded to float16."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.fptrunc(arguments[0], _HALF), ir.IntType(16))

    return types.uint16(types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def of_half_bits(typing: Any, bits: Any) -> Any:
    """The float32 that has the value of a float16's bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], _HALF), ir.FloatType())

    return types.float32(types.uint16), generate

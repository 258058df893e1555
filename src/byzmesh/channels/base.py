"""Stages: what a channel (channel.py) does to a vector, one after another.

    channel: [{name: clip, radius: 1.0}, {name: gaussian-noise, sigma: 0.1}, {name: top-k, fraction: 0.1}, int8]

A *stage* is two pure functions on all senders at once. `send` turns numbers (N, W) into bytes (N, B) and numbers
(N, W') for the next stage; `receive` is the way back. The numbers after the last stage travel as they are, so that a
payload is

    bytes of stage 1 | bytes of stage 2 | ... | the numbers left, float32 or float64, little-endian

and its length depends only on D and the dtype. Some stages remember: their state is the vector that receivers made of
the last message, which the sender knows too, because it can read its own messages. Every draw is a function of (seed,
position of the stage, sender, round). Draws that hide something use the sender's secret besides; it is 0 in the
simulator. Draws that two neighbours share use a number that only they know (`Pairs`).

A stage that hides something may make its sender forget it too (`stays`): what it made is then the sender's own model,
and everything that happens later follows from messages alone.

A new stage is one class in this package, or anywhere with `bm.register_stage`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from byzmesh.channels.distortion import Distortion
from byzmesh.channels.pairs import Pairs
from byzmesh.entries import as_call
from byzmesh.errors import ByzmeshError
from byzmesh.registry import Registry
from byzmesh.types import Array, Integers

State = tuple[Array | None, ...]
"""For each stage the (N, D) vectors that receivers made of the last messages; None for stages without memory."""

Reader = tuple[type[np.generic], Callable[[Array, Array], float]]
"""The type of a payload's numbers (W,), and a kernel (numbers, out (W,)) that writes what they stand for and returns
the largest absolute value, NaN or infinity if there is one."""


class Undecodable(ByzmeshError):
    """A payload that no sender makes."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a stage knows besides the numbers.

    sender  (N,) ids
    round   number of the round
    public  key of draws that receivers repeat
    secret  key of draws that nobody can repeat but the sender
    copy    (N, D) for a stage that remembers: what receivers made of the last message
    dtype   of the numbers
    pairs   what senders share with their neighbours, for a stage that is `pairwise`
    spare   (N, D) memory that nobody needs any more; it may be that of `copy`
    """

    sender: Integers
    round: int
    public: np.uint64
    secret: np.uint64
    copy: Array | None
    dtype: np.dtype[Any]
    pairs: Pairs | None = None
    spare: Array | None = None

    def room(self, width: int) -> Array:
        """Memory for (N, W) numbers that are received; it may be that of `copy`."""
        if self.spare is not None and self.spare.shape[1] == width:
            return self.spare
        return np.empty((len(self.sender), width), self.dtype)


@dataclass(frozen=True, repr=False)
class Stage(ABC):
    """One stage; its fields are its options. The defaults are those of a stage that does nothing.

    remembers  what it needs of the past: "" (nothing), "sender" (the sender: what it said last), "receiver" (the
               receivers too: they fill in what a message leaves out)
    """

    name: ClassVar[str]
    remembers: ClassVar[str] = ""
    pairwise: ClassVar[bool] = False
    """Whether it needs what the sender shares with each neighbour."""
    screens: ClassVar[bool] = False
    """Whether receivers get a summary first and fetch whole messages only from some (`Sketch`)."""

    @property
    def options(self) -> dict[str, Any]:
        """Its options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def sizes(self, width: int) -> tuple[int, int]:
        """(bytes, numbers) that W numbers become."""
        return 0, width

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        """(N, W) finite numbers -> bytes (N, B) and numbers (N, W')."""
        return values[:, :0].view(np.uint8), values

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        """Bytes (N, B) and numbers (N, W') -> (N, W); `Undecodable` if no sender makes them."""
        return values

    def reader(self, dtype: np.dtype[Any]) -> Reader | None:
        """`receive` as one compiled call for a single message, if a number is made of a number; None: there is none."""
        return None

    @property
    def stays(self) -> bool:
        """Whether the sender goes on from what this stage makes of its model, as receivers do."""
        return False

    @property
    def distortion(self) -> Distortion | None:
        """How far what arrives may be from what was sent; None: that depends on the past."""
        return None

    def lying(self) -> Stage | None:
        """The stage as a liar uses it, who may send anything that can be read; None: not at all."""
        return self

    def __repr__(self) -> str:
        return as_call("stage", self.name, self.options)


stages: Registry[Stage] = Registry("stage", "byzmesh.stages", ("byzmesh.channels",), Stage)


def channel_stages(spec: Any) -> tuple[Stage, ...]:
    """The stages that a spec describes, in order: a name, a mapping, a `Stage`, or a list of these; None: none.

    >>> channel_stages(["bfloat16"]), channel_stages({"name": "rand-k", "fraction": 0.2})
    ((stage('bfloat16'),), (stage('rand-k', fraction=0.2, shared=True),))
    """
    if spec is None:
        return ()
    several = isinstance(spec, Sequence) and not isinstance(spec, str)
    return tuple(stages.build(item) for item in (spec if several else [spec]))


def part_of(fraction: float, width: int) -> int:
    """How many of W coordinates a fraction is: rounded up.

    >>> part_of(0.1, 100), part_of(0.001, 10)
    (10, 1)
    """
    return min(width, max(1, int(np.ceil(fraction * width - 1e-9))))


def as_numbers(data: Array, dtype: Any) -> Array:
    """(N, B) bytes of a payload as numbers of another type, aligned, because kernels are compiled for that."""
    numbers: Array = np.ascontiguousarray(data).view(dtype)
    return numbers if numbers.flags.aligned else numbers.copy()


def as_bytes(values: Array) -> Array:
    """(N, W) numbers as bytes (N, B)."""
    return np.ascontiguousarray(values).view(np.uint8)


Spec = str | Mapping[str, Any] | Stage | Sequence[str | Mapping[str, Any] | Stage] | None
"""What users write for a channel."""

"""A channel: what happens to a vector between its sender and its receivers, the same in the simulator and on the wire.

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

import json
import zlib
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from byzmesh import rng
from byzmesh.channels.distortion import Distortion
from byzmesh.channels.pairs import Pairs
from byzmesh.entries import as_call
from byzmesh.errors import ByzmeshError, ConfigError
from byzmesh.registry import Registry
from byzmesh.types import Array, Integers

if TYPE_CHECKING:
    from byzmesh.channels.sketch import Sketch

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


def canonical_channel(spec: Any) -> list[dict[str, Any]]:
    """Stages in order with every option written out.

    >>> canonical_channel("int8")
    [{'name': 'int8', 'rounding': 'stochastic'}]
    """
    made = [{"name": stage.name, **stage.options} for stage in channel_stages(spec)]
    if made:
        Channel(spec, 1 << 20)
    return made


class Channel:
    """Stages for vectors of one size.

    >>> channel = Channel(["rand-k", "float16"], dimension=100, dtype="float64")
    >>> state = channel.start(np.zeros((3, 100)))
    >>> payload = channel.send(np.ones((3, 100)), state, round=0, sender=np.arange(3))
    >>> vectors, state = channel.receive(payload, state, round=0, sender=np.arange(3))
    >>> payload.shape, vectors.sum(axis=1)
    ((3, 20), array([10., 10., 10.]))
    """

    def __init__(
        self,
        spec: Any,
        dimension: int,
        dtype: str = "float32",
        seed: int = 0,
        secret: int = 0,
        pairs: Pairs | None = None,
    ) -> None:
        self.spec, self.dimension, self.dtype, self.seed = spec, dimension, np.dtype(dtype), seed
        self.pairs = pairs
        self.stages = channel_stages(spec)
        self._last_to_stay = max((place for place, stage in enumerate(self.stages) if stage.stays), default=-1)
        self._use: tuple[Stage | None, ...] = self.stages
        self._public = [rng.key(seed, rng.CHANNEL, place) for place in range(len(self.stages))]
        self._secret = [rng.key(seed, rng.CHANNEL, place, 1, secret) for place in range(len(self.stages))]
        self.widths, self.bytes = [dimension], list[int]()
        for place, stage in enumerate(self.stages):
            width = self.widths[-1]
            if place and self.stages[place - 1].screens:
                raise ConfigError(
                    f"channel: {self.stages[place - 1].name} is of messages as they arrive; write it after {stage.name}"
                )
            if stage.screens and self.remembers == "receiver":
                raise ConfigError(
                    f"channel: with {stage.name} not everybody gets every message, on which top-k and rand-k build; "
                    "leave one of them out"
                )
            if width == 0 and not stage.screens:
                raise ConfigError(
                    f"channel: {self.stages[place - 1].name} must be the last stage; write {stage.name} before it"
                )
            if stage.stays and width != dimension:
                raise ConfigError(
                    f"channel: {stage.name} makes its sender's own model; write it before {self.stages[place - 1].name}"
                )
            if stage.remembers and width != dimension:
                raise ConfigError(
                    f"channel: {stage.name} needs whole vectors; write it before {self.stages[place - 1].name}"
                )
            before, after = stage.sizes(width)
            self.bytes.append(before)
            self.widths.append(after)

    @property
    def remembers(self) -> str:
        """What it needs of the past: the most that any stage needs."""
        return max((stage.remembers for stage in self.stages), key=["", "sender", "receiver"].index, default="")

    @property
    def payload(self) -> int:
        """Bytes of a payload."""
        return sum(self.bytes) + self.widths[-1] * self.dtype.itemsize

    @property
    def mark(self) -> int:
        """A byte from 16 to 255; another channel has the same by a chance of one in 240."""
        made = json.dumps([{"name": stage.name, **stage.options} for stage in self.stages], sort_keys=True)
        return 16 + zlib.crc32(made.encode()) % 240

    @property
    def reader(self) -> Reader | None:
        """How to read a payload in one compiled call, if it is that of a single stage which can; else None."""
        return self.stages[0].reader(self.dtype) if len(self.stages) == 1 else None

    @property
    def screen(self) -> Sketch | None:
        """The stage that screens messages, if there is one."""
        last = self.stages[-1] if self.stages else None
        return cast("Sketch", last) if last is not None and last.screens else None

    def sketches(self, vectors: Array) -> Array:
        """(N, D) as they arrive -> (N, W) what travels first, if the channel screens."""
        assert self.screen is not None  # noqa: S101 (callers ask)
        return self.screen.of(vectors, self._public[-1])

    def lying(self) -> Channel:
        """The channel as a liar uses it: its messages can be read, and that is all."""
        made = Channel(self.stages, self.dimension, self.dtype.name, self.seed)
        made._use = tuple(stage.lying() for stage in self.stages)
        return made

    def check_start(self, first: Array) -> None:
        """`ConfigError` unless the first models (N, D) are such that receivers can fill in what they were not told."""
        if self.remembers == "receiver" and (first != first[:1]).any():
            raise ConfigError("channel: top-k and rand-k need workers that start from one model; choose another init")

    def start(self, first: Array) -> State:
        """The state before the first message: receivers know the common first model, (N, D) rows of it."""
        return tuple(first if stage.remembers else None for stage in self.stages)

    @property
    def stays(self) -> bool:
        """Whether senders go on from what a stage made of their models."""
        return self._last_to_stay >= 0

    def send(self, vectors: Array, state: State, round: int, sender: Integers) -> Array:
        """(N, D) -> payloads (N, B) of bytes."""
        return self.send_and_keep(vectors, state, round, sender)[0]

    def send_and_keep(self, vectors: Array, state: State, round: int, sender: Integers) -> tuple[Array, Array]:
        """(N, D) -> payloads (N, B) of bytes, and what the senders go on from (N, D): the vectors unless it `stays`."""
        parts, values, kept = [], vectors, vectors
        for place, stage in enumerate(self._use):
            if stage is not None:
                data, values = stage.send(values, self._context(place, state, round, sender))
                parts.append(data)
            if place == self._last_to_stay:
                kept = values
        if self.widths[-1]:
            parts.append(np.ascontiguousarray(values, self.dtype).view(np.uint8))
        parts = [part for part in parts if part.shape[1]]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1), kept

    def receive(
        self, payload: Array, state: State, round: int, sender: Integers, spare: Array | None = None
    ) -> tuple[Array, State]:
        """Payloads (N, B) -> (N, D), and the state after these messages.

        spare  (N, D) memory to write to, if the caller needs it no longer; that of the state too
        """
        end = payload.shape[1]
        left = self.widths[-1] * self.dtype.itemsize
        values = _numbers(payload[:, end - left :], self.dtype)
        end -= left
        after = list(state)
        for place in reversed(range(len(self.stages))):
            stage, data = self.stages[place], payload[:, end - self.bytes[place] : end]
            end -= self.bytes[place]
            values = stage.receive(data, values, self.widths[place], self._context(place, state, round, sender, spare))
            if stage.remembers:
                after[place] = values
        return values, tuple(after)

    def _context(self, place: int, state: State, round: int, sender: Integers, spare: Array | None = None) -> Context:
        return Context(
            sender=sender,
            round=round,
            public=self._public[place],
            secret=self._secret[place],
            copy=state[place] if self.stages[place].remembers else None,
            dtype=self.dtype,
            pairs=self.pairs,
            spare=spare,
        )


def _numbers(data: Array, dtype: np.dtype[Any]) -> Array:
    """(N, B) bytes as numbers, aligned, because kernels are compiled for that."""
    numbers = np.ascontiguousarray(data).view(dtype)
    return numbers if numbers.flags.aligned else numbers.copy()


def part_of(fraction: float, width: int) -> int:
    """How many of W coordinates a fraction is: rounded up.

    >>> part_of(0.1, 100), part_of(0.001, 10)
    (10, 1)
    """
    return min(width, max(1, int(np.ceil(fraction * width - 1e-9))))


def as_numbers(data: Array, dtype: Any) -> Array:
    """(N, B) bytes of a payload as numbers of another type."""
    return _numbers(data, np.dtype(dtype))


def as_bytes(values: Array) -> Array:
    """(N, W) numbers as bytes (N, B)."""
    return np.ascontiguousarray(values).view(np.uint8)


Spec = str | Mapping[str, Any] | Stage | Sequence[str | Mapping[str, Any] | Stage] | None
"""What users write for a channel."""

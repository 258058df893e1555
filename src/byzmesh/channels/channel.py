"""A channel: stages (base.py) for vectors of one size, one after another; in the simulator and on the wire the same."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from byzmesh import rng
from byzmesh.channels.base import Context, Reader, Stage, State, as_numbers, channel_stages
from byzmesh.channels.pairs import Pairs
from byzmesh.errors import ConfigError
from byzmesh.types import Array, Integers

if TYPE_CHECKING:
    from byzmesh.channels.sketch import Sketch


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
        values = as_numbers(payload[:, end - left :], self.dtype)
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


def canonical_channel(spec: Any) -> list[dict[str, Any]]:
    """Stages in order with every option written out.

    >>> canonical_channel("int8")
    [{'name': 'int8', 'rounding': 'stochastic'}]
    """
    made = [{"name": stage.name, **stage.options} for stage in channel_stages(spec)]
    if made:
        Channel(spec, 1 << 20)
    return made

"""The wire format: one vector of one round as bytes, and back.

    offset size  field
    0      2     destination: a peer's id, or 65535 for every neighbour
    2      2     "bz"
    4      1     version
    5      1     encoding: 0 for a file, 1 float32, 2 float64, 3 float16, 4 int8 to the nearest,
                 5 for a part of a long message (parts.py), 6 and 7 for sketches and answers
                 (screening.py); from 16 on a hash of the channel
    6      2     sender
    8      8     round
    16     8     run: hash of what all peers must agree on
    24     4     number of coordinates D
    28     4     epoch: a hash of the network files that the sender knows; 0 if they are not signed
    32     8     zero
    40           payload (channels/base.py), padded with zeros to a multiple of 8 bytes

All integers are little-endian. Every message of a run has the same size, so a receiver knows it beforehand. A signed
network file travels in the same frame: encoding 0, D its length in bytes, the text as it is.

The version changes when a peer of the former version would misread a message; peers refuse messages of any other
version, and count them. Version 1 had a checksum where there are zeros now: links find damage by themselves
(frames.py), and a liar may send any finite vector.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.channels import Channel, Undecodable, frame_bytes
from byzmesh.channels.base import Reader, State
from byzmesh.channels.pairs import Pairs
from byzmesh.checks import choice, whole
from byzmesh.errors import PeerError
from byzmesh.peers.channel_key import FORMER, former_name
from byzmesh.peers.wire_kernels import LARGEST
from byzmesh.types import Array

EVERYONE = 65535
"""Destination of a message to all neighbours; ids are below it."""
HEADER = struct.Struct("<H2sBBHQQIIQ")
VERSION = 2
_MAGIC = b"bz"
_AS_CHECKED = struct.Struct("<H4sHQ12sI8s")
"""The header with those fields together that are the same in every message of a run."""
_ZEROS = bytes(8)
FILE = 0
"""Encoding of a network file."""
NUMBERS = {"float32": 1, "float64": 2}
"""Encodings of messages without a channel."""


class WireError(PeerError):
    """Bytes that are not the message they should be; `reason` is one word for counters."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(slots=True)
class Message:
    """A well-formed message: (D,) finite numbers in the models' dtype, and the channel's state after it.

    Not frozen: a frozen dataclass takes three times as long to make, and every message is made into one.
    """

    sender: int
    round: int
    vector: Array
    _: KW_ONLY
    epoch: int = 0
    state: State = ()
    top: float = np.inf
    """The largest absolute value in the vector, rounded up."""


@dataclass(frozen=True)
class Format:
    """The form of every message of a run: run, D, the models' dtype and the channel.

    seed, secret  of the channel's draws
    pairs         what the sender shares with its neighbours, for a channel that needs it

    >>> form = Format(run=7, dimension=3, dtype="float32")
    >>> data = form.encode(np.array([1.0, 2.0, 3.0], np.float32), sender=4, round=9)
    >>> len(data) == form.size, form.decode(data, sender=4).vector
    (True, array([1., 2., 3.], dtype=float32))
    >>> form.decode(data[:-1], sender=4)
    Traceback (most recent call last):
    byzmesh.peers.wire.WireError: message has 55 bytes, 56 expected
    """

    run: int
    dimension: int
    dtype: str = "float32"
    stages: Any = ()
    _: KW_ONLY
    seed: int = 0
    secret: int = 0
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        choice("dtype", self.dtype, ("float32", "float64"))
        whole("dimension", self.dimension, 1, (1 << 32) - 1)
        _ = self.channel

    @cached_property
    def channel(self) -> Channel:
        """What happens to the vectors on their way."""
        return Channel(self.stages, self.dimension, self.dtype, self.seed, self.secret, self.pairs)

    @cached_property
    def encoding(self) -> int:
        """The byte of every message that says how its payload is to be read."""
        if not self.channel.stages:
            return NUMBERS[self.dtype]
        former = former_name(self.stages)
        return self.channel.mark if former is None else 3 + list(FORMER).index(former)

    @cached_property
    def payload(self) -> int:
        """Bytes of every payload."""
        return self.channel.payload

    @cached_property
    def size(self) -> int:
        """Bytes of every message."""
        return frame_bytes(self.payload)

    @cached_property
    def largest(self) -> int:
        """Bytes of the largest message to listen to: a sketch may be longer than what it is of; and one without a
        channel is heard, to be refused with a reason."""
        screen = self.channel.screen
        sketch = 0 if screen is None else frame_bytes(4 * screen.width)
        return max(self.size, sketch, frame_bytes(self.dimension * self.channel.dtype.itemsize))

    @cached_property
    def initial(self) -> State:
        """The channel's state of a sender that never sent, if the first model is zero."""
        return self.channel.start(np.zeros((1, self.dimension), self.dtype))

    def lying(self) -> Format:
        """The same form as a liar uses it."""
        form = replace(self)
        form.__dict__["channel"] = self.channel.lying()
        form.__dict__["encoding"] = self.encoding
        return form

    def encode(
        self,
        vector: Array,
        sender: int,
        round: int,
        destination: int = EVERYONE,
        epoch: int = 0,
        state: State | None = None,
    ) -> bytearray:
        """The message with this (D,) vector; state is the channel's, after the sender's last message."""
        return self.encode_and_keep(vector, sender, round, destination, epoch, state)[0]

    def encode_and_keep(
        self,
        vector: Array,
        sender: int,
        round: int,
        destination: int = EVERYONE,
        epoch: int = 0,
        state: State | None = None,
    ) -> tuple[bytearray, Array]:
        """`encode`, and the (D,) vector that the sender goes on from: the given one unless the channel `stays`."""
        rows, known = np.asarray(vector, self.dtype)[None], self.initial if state is None else state
        payload, kept = self.channel.send_and_keep(np.ascontiguousarray(rows), known, round, np.array([sender]))
        if payload.shape[1] * payload.itemsize != self.payload:
            raise PeerError(f"channel {list(self.channel.stages)} gives {payload.nbytes} bytes, not {self.payload}")
        byte, filling = self.encoding, bytes(self.size - HEADER.size - self.payload)
        header = HEADER.pack(destination, _MAGIC, VERSION, byte, sender, round, self.run, self.dimension, epoch, 0)
        return bytearray().join((header, payload.view(np.uint8)[0], filling)), kept[0]

    def readdress(self, data: bytearray, destination: int) -> bytearray:
        """The same message to another destination."""
        copy = bytearray(data)
        struct.pack_into("<H", copy, 0, destination)
        return copy

    def decode(
        self, data: bytes | bytearray | memoryview, sender: int, largest: float = np.inf, state: State | None = None
    ) -> Message:
        """The message that `sender` sent; `WireError`, and no other error, if the bytes are not one.

        largest  absolute value that a coordinate may have; a larger vector is scaled down to it, so that it stays what
                 it is to a rule, an outlier, and no rule computes with numbers that a liar made huge
        state    the channel's, after the sender's last message
        """
        if len(data) != self.size:
            raise self._wrong(data, sender)
        _, kind, said, round, of_run, epoch, zeros = _AS_CHECKED.unpack_from(data)
        if kind != self._kind or said != sender or of_run != self._of_run or zeros != _ZEROS:
            raise self._wrong(data, sender)
        after = self.initial if state is None else state
        if self._reader is not None:
            numbers, read = self._reader
            vector: Array = np.empty(self.dimension, self.dtype)
            top = read(np.frombuffer(data, numbers, self.dimension, HEADER.size), vector)
        elif not self.channel.stages:
            vector = np.frombuffer(data, self.dtype, self.dimension, HEADER.size)
            top = self._top(vector)
        else:
            payload = memoryview(data)[HEADER.size : HEADER.size + self.payload]
            vector, after = self._decoded(payload, after, round, sender)
            top = peak(vector)
        if not top < np.inf:
            raise WireError("finite", "message contains NaN or infinity")
        if top > largest:
            vector, top = vector * vector.dtype.type(largest / top), 2.0 * largest
        return Message(sender, round, vector, epoch=epoch, state=after, top=top)

    @cached_property
    def _kind(self) -> bytes:
        return HEADER.pack(0, _MAGIC, VERSION, self.encoding, 0, 0, 0, 0, 0, 0)[2:6]

    @cached_property
    def _of_run(self) -> bytes:
        return HEADER.pack(0, _MAGIC, VERSION, 0, 0, 0, self.run, self.dimension, 0, 0)[16:28]

    @cached_property
    def _reader(self) -> Reader | None:
        return self.channel.reader

    @cached_property
    def _top(self) -> Callable[[Array], float]:
        return LARGEST[self.channel.dtype]

    def _wrong(self, data: bytes | bytearray | memoryview, sender: int) -> WireError:
        """Why a header is refused."""
        size = WireError("size", f"message has {len(data)} bytes, {self.size} expected")
        if len(data) < HEADER.size:
            return size
        _, magic, version, byte, said, _, _, dimension, _, zero = HEADER.unpack_from(data)
        if magic != _MAGIC or version != VERSION:
            return WireError("version", f"message starts with {magic!r} version {version}, not {_MAGIC!r} {VERSION}")
        if byte != self.encoding:
            if {byte, self.encoding} <= set(NUMBERS.values()):
                return WireError("dtype", f"message has encoding {byte}, {self.encoding} expected: the dtypes differ")
            return WireError(
                "channel",
                f"message has encoding {byte}, {self.encoding} expected: the channels of the network files differ",
            )
        if len(data) != self.size:
            return size
        if dimension != self.dimension:
            return WireError("shape", f"message has {dimension} coordinates, {self.dimension} expected")
        if said != sender:
            return WireError("sender", f"message says it is from {said}, but {sender} sent it")
        if zero != 0:
            return WireError("header", f"message has {zero:x} where zeros belong")
        return WireError("run", "message belongs to another run: the network files or --run differ")

    def _decoded(self, payload: memoryview, state: State, round: int, sender: int) -> tuple[Array, State]:
        # a liar chooses the bytes: whatever they do to a stage, the message is silence and the peer continues
        try:
            with np.errstate(all="ignore"):
                rows, after = self.channel.receive(
                    np.frombuffer(payload, np.uint8)[None], state, round, np.array([sender])
                )
        except Undecodable as error:
            raise WireError("payload", f"payload that no sender makes: {error}") from error
        except Exception as error:
            raise WireError("payload", f"channel {list(self.channel.stages)} cannot read it: {error}") from error
        vector = np.asarray(rows, self.dtype)
        if vector.shape != (1, self.dimension):
            raise WireError("payload", f"channel {list(self.channel.stages)} gives {vector.shape} numbers")
        return vector[0], after


def peak(vector: Array) -> float:
    """The largest absolute value of a (D,) vector of floats; infinity if it contains NaN or infinity.

    >>> peak(np.array([1.0, -3.0])), peak(np.array([np.nan, 0.0], np.float32))
    (3.0, inf)
    """
    top = LARGEST[vector.dtype](np.ascontiguousarray(vector))
    return top if top < np.inf else np.inf


def encode_file(text: bytes, run: int, sender: int, destination: int) -> bytes:
    """The frame that carries a signed network file.

    >>> frame = encode_file(b"epoch: 1", run=7, sender=3, destination=4)
    >>> carries_file(frame), decode_file(frame, run=7, sender=3)
    (True, b'epoch: 1')
    """
    return HEADER.pack(destination, _MAGIC, VERSION, FILE, sender, 0, run, len(text), 0, 0) + text


def carries_file(data: bytes | bytearray | memoryview) -> bool:
    """Whether the frame claims to carry a network file, not a vector."""
    return len(data) > HEADER.size and data[5] == FILE


def decode_file(data: bytes | bytearray | memoryview, run: int, sender: int) -> bytes:
    """The text of the file that `sender` sent; `WireError` if the frame is not one. Nobody vouches for it yet."""
    _, magic, version, byte, said, _, of_run, length, _, _ = HEADER.unpack_from(data)
    if (magic, version, byte) != (_MAGIC, VERSION, FILE):
        raise WireError("version", f"file starts with {magic!r} version {version}, not {_MAGIC!r} {VERSION}")
    if (said, of_run) != (sender, run):
        raise WireError("run", f"file of {sender} says it is from {said} and run {of_run:x}, not {run:x}")
    if HEADER.size + length != len(data):
        raise WireError("size", f"file has {len(data) - HEADER.size} bytes, {length} expected")
    return bytes(memoryview(data)[HEADER.size :])

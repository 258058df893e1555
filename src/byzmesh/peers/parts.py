"""Long messages in parts: a message of more than `PART_BYTES` bytes travels as several frames, in order.

    offset size  field
    0      2     destination, as in a message
    2      2     "bz"
    4      1     version
    5      1     encoding: 5, a part
    6      2     sender
    8      8     round
    16     8     run
    24     4     number of the part, from 0
    28     4     how many parts there are
    32     8     zero
    40           the bytes of the message (wire.py, with its own header) from number * `PART_BYTES` on

All parts but the last have the same size. A receiver knows number and size of the parts of every message beforehand, so
each of them passes the guards that a message passes: exact size, run, sender, budget. Whoever wrote a part is
not believed about memory: a neighbour has room for one message in the making, whatever it sends.

Links keep the order, so a part that is not the next one shows that something was lost: the message is given up, and
nothing else. That is nobody's lie, and is counted in `incomplete`, not among the refused.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from byzmesh.channels.sizes import PART_BYTES, parts_of
from byzmesh.checks import require, whole
from byzmesh.peers.wire import HEADER, VERSION, Format, WireError

PART = 5
"""Encoding of a part."""
_MAGIC = b"bz"
_SENDER, _ROUND = 6, 8


@dataclass
class _Making:
    """A message of which the first `parts` parts have arrived."""

    round: int
    data: bytearray
    parts: int = 0


@dataclass
class Parts:
    """The frames of every message of a run, and what has arrived of the messages in the making.

    limit  bytes of a message in one frame, a multiple of 8

    >>> import numpy as np
    >>> form = Format(run=7, dimension=9, dtype="float64")
    >>> parts = Parts(form, limit=64)
    >>> frames = list(parts.frames(form.encode(np.arange(9.0), sender=4, round=2)))
    >>> [len(frame) for frame in frames], parts.frame
    ([104, 88], 104)
    >>> parts.add(4, frames[0]) is None, form.decode(parts.add(4, frames[1]), sender=4).vector[-1]
    (True, np.float64(8.0))
    """

    form: Format
    limit: int = PART_BYTES
    incomplete: Counter[int] = field(default_factory=Counter)
    """Messages given up for a lost part, by neighbour."""

    def __post_init__(self) -> None:
        whole("part_bytes", self.limit, HEADER.size)
        require(self.limit % 8 == 0, f"part_bytes must be a multiple of 8, got {self.limit}")
        self.count = parts_of(self.form.size, self.limit)
        """Frames of a message."""
        self._making: dict[int, _Making] = {}

    @property
    def frame(self) -> int:
        """Bytes of the largest frame to listen to."""
        return self.form.largest if self.count == 1 else HEADER.size + self.limit

    @property
    def total(self) -> int:
        """Bytes of all frames of a message."""
        return self.form.size + (HEADER.size * self.count if self.count > 1 else 0)

    def frames(self, message: bytearray, destination: int | None = None) -> Iterator[bytes | bytearray]:
        """What to send for a message, to its own or to another destination; a part is made when it is asked for."""
        if self.count == 1:
            yield message if destination is None else self.form.readdress(message, destination)
            return
        (to,) = struct.unpack_from("<H", message) if destination is None else (destination,)
        (sender,), (round,) = struct.unpack_from("<H", message, _SENDER), struct.unpack_from("<Q", message, _ROUND)
        content = memoryview(message)
        for number in range(self.count):
            piece = content[number * self.limit : (number + 1) * self.limit]
            data = bytearray(HEADER.size + len(piece))
            HEADER.pack_into(data, 0, to, _MAGIC, VERSION, PART, sender, round, self.form.run, number, self.count, 0)
            data[HEADER.size :] = piece
            yield data

    def add(self, neighbour: int, data: Any) -> Any:
        """The message that this frame of a neighbour completes, else None; `WireError` if it is no part of one."""
        if self.count == 1:
            return data
        round, number = self._checked(neighbour, data)
        making = self._making.get(neighbour)
        if number == 0:
            self._give_up(neighbour)
            if making is None:
                making = self._making[neighbour] = _Making(round, bytearray(self.form.size))
            making.round = round
        elif making is None or (making.round, making.parts) != (round, number):
            self._give_up(neighbour)
            return None
        start = number * self.limit
        making.data[start : start + len(data) - HEADER.size] = memoryview(data)[HEADER.size :]
        making.parts += 1
        if making.parts < self.count:
            return None
        del self._making[neighbour]
        return making.data

    def forget(self, neighbours: Collection[int]) -> None:
        """Drop what these neighbours have not finished."""
        for neighbour in neighbours:
            self._making.pop(neighbour, None)

    def _give_up(self, neighbour: int) -> None:
        making = self._making.get(neighbour)
        if making is not None and making.parts > 0:
            self.incomplete[neighbour] += 1
            making.parts = 0  # its room is used again: to clear a long one for every first part would take long

    def _checked(self, neighbour: int, data: Any) -> tuple[int, int]:
        """Round and number of a part that is what it should be."""
        if len(data) < HEADER.size:
            raise WireError("size", f"part has {len(data)} bytes, at least {HEADER.size} expected")
        _, magic, version, byte, said, round, run, number, count, zero = HEADER.unpack_from(data)
        if magic != _MAGIC or version != VERSION:
            raise WireError("version", f"part starts with {magic!r} version {version}, not {_MAGIC!r} {VERSION}")
        if byte != PART:
            raise WireError(
                "part", f"message has encoding {byte}, but messages of this run travel in {self.count} parts"
            )
        if count != self.count or number >= count:
            raise WireError("part", f"message says part {number} of {count}, {self.count} parts expected")
        size = HEADER.size + min(self.limit, self.form.size - number * self.limit)
        if len(data) != size:
            raise WireError("size", f"part {number} has {len(data)} bytes, {size} expected")
        if said != neighbour:
            raise WireError("sender", f"part says it is from {said}, but {neighbour} sent it")
        if run != self.form.run:
            raise WireError("run", "part belongs to another run: the network files or --run differ")
        if zero != 0:
            raise WireError("header", f"part has {zero:x} where zeros belong")
        return round, number

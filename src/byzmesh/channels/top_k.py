"""The coordinates in which the model differs most from what receivers have; they keep the rest from earlier messages.

Of k coordinates, nine tenths are those with the largest |x - c|, c being the receivers' copy, and a tenth are next in
turn, if k > 1: so a receiver that missed messages is right again after 10 D / k rounds at most. What is left out stays
in the difference (error feedback); see rand_k.py on why differences choose and values travel.

    bytes     k - t indices, ascending, uint16 if D <= 65536, otherwise uint32
    numbers   the values at these indices, then the t values in turn, from (t round) mod D on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.base import Context, Stage, Undecodable, as_bytes, as_numbers, part_of, stages
from byzmesh.checks import fraction
from byzmesh.types import Array, Integers


@stages.register("top-k")
@dataclass(frozen=True, repr=False)
class TopK(Stage):
    """The coordinates that changed most since receivers last heard of them; they keep the others as they were.

    fraction  of the coordinates in a message, rounded up to at least one
    """

    fraction: float = 0.1
    name = "top-k"
    remembers = "receiver"

    def __post_init__(self) -> None:
        fraction("stage top-k: fraction", self.fraction, zero=False)

    def sizes(self, width: int) -> tuple[int, int]:
        count = part_of(self.fraction, width)
        return (count - in_turn(count)) * _index(width).itemsize, count

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        width = values.shape[1]
        count = part_of(self.fraction, width)
        largest = count - in_turn(count)
        with np.errstate(invalid="ignore", over="ignore"):
            change = np.abs(values - context.copy)
        chosen = np.sort(np.argpartition(change, width - largest, axis=1)[:, width - largest :], axis=1)
        turn = _turn(count, width, context.round)
        sent = np.concatenate([np.take_along_axis(values, chosen, axis=1), values[:, turn]], axis=1)
        return as_bytes(chosen.astype(_index(width))), sent

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        count = part_of(self.fraction, width)
        chosen = as_numbers(data, _index(width)).astype(np.int64)
        if chosen.size and (chosen[:, -1].max() >= width or (np.diff(chosen, axis=1) <= 0).any()):
            raise Undecodable(f"indices of top-k must ascend and be below {width}")
        out = context.room(width)
        if out is not context.copy:
            out[:] = context.copy
        np.put_along_axis(out, chosen, values[:, : chosen.shape[1]], axis=1)
        out[:, _turn(count, width, context.round)] = values[:, chosen.shape[1] :]
        return out


def in_turn(count: int) -> int:
    """How many of k coordinates are sent because it is their turn.

    >>> in_turn(1), in_turn(2), in_turn(100)
    (0, 1, 10)
    """
    return 0 if count == 1 else -(-count // 10)


def _turn(count: int, width: int, round: int) -> Integers:
    turns = in_turn(count)
    return (round * turns % width + np.arange(turns)) % width


def _index(width: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(np.uint16 if width <= 1 << 16 else np.uint32)

"""A random part of the coordinates in each message; receivers keep the rest from earlier ones.

The W coordinates are k / r stretches of equal length (to one), and of each a run of r is drawn, which may go on at the
beginning of its stretch: every coordinate travels with the same probability (to rounding), in O(k), and no indices are
needed, since receivers repeat the draw. Runs, because single numbers far apart take as long to read as whole lines of
memory; they are 16 long, and longer where there are at least 512 of them, up to 256.

A message replaces coordinates of the receivers' copy c by those of the model x, which is the same as adding the chosen
coordinates of the difference x - c: what is left out is not lost but part of the next difference (error feedback).
Differences, because a model is dense: setting nine tenths of it to zero would send another model. And values, not
differences, travel, because a receiver that misses a message is then right again once the coordinates are next drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.base import Context, Stage, part_of, stages
from byzmesh.checks import flag, fraction
from byzmesh.compiled import exact
from byzmesh.rng import below, stream
from byzmesh.types import Array, Integers

_ALL = np.zeros(1, np.int64)


def run_length(chosen: int) -> int:
    """How many of k coordinates are drawn together.

    >>> run_length(785), run_length(100_000), run_length(10**7)
    (16, 195, 256)
    """
    return min(256, max(16, chosen // 512))


@stages.register("rand-k", aliases=("random-k",))
@dataclass(frozen=True, repr=False)
class RandK(Stage):
    """A random part of the coordinates; receivers keep the others as they were.

    fraction  of the coordinates in a message, rounded up to at least one
    shared    whether all senders of a round leave out the same coordinates, so that distances between their vectors
              mean what they did; otherwise each draws its own
    """

    fraction: float = 0.1
    shared: bool = True
    name = "rand-k"
    remembers = "receiver"

    def __post_init__(self) -> None:
        fraction("stage rand-k: fraction", self.fraction, zero=False)
        flag("stage rand-k: shared", self.shared)

    def sizes(self, width: int) -> tuple[int, int]:
        return 0, part_of(self.fraction, width)

    def send(self, values: Array, context: Context) -> tuple[Array, Array]:
        chosen = np.empty((len(values), part_of(self.fraction, values.shape[1])), values.dtype)
        _pick(values, self._runs(values.shape[1], context), chosen)
        return chosen[:, :0].view(np.uint8), chosen

    def receive(self, data: Array, values: Array, width: int, context: Context) -> Array:
        out = context.room(width)
        if out is not context.copy:
            out[:] = context.copy
        _place(values, self._runs(width, context), out)
        return out

    def _runs(self, width: int, context: Context) -> Integers:
        """(N, k / r) where the run of each stretch begins, for each sender, or (1, k / r) for all of them."""
        sender, chosen = _ALL if self.shared else context.sender, part_of(self.fraction, width)
        out = np.empty((len(sender), -(-chosen // run_length(chosen))), np.int64)
        _draw(context.public, sender, context.round, width, out)
        return out


@exact
def _draw(key: Any, sender: Any, round: Any, width: Any, out: Any) -> None:
    count = out.shape[1]
    for n in range(out.shape[0]):
        state = stream(key, sender[n], round)
        for i in range(count):
            low, high = i * width // count, (i + 1) * width // count
            out[n, i] = low + below(state, i, high - low)


@exact
def _spans(n: Any, i: Any, runs: Any, width: Any, chosen: Any) -> Any:
    """Where run i of sender n lies in the whole vector and in the part that travels: a beginning in both and a length,
    twice, because a run that leaves its stretch goes on where the stretch begins."""
    count = runs.shape[1]
    low, high = i * width // count, (i + 1) * width // count
    first, end = i * chosen // count, (i + 1) * chosen // count
    begin = runs[min(n, runs.shape[0] - 1), i]
    left = min(end - first, high - begin)
    return (begin, first, left), (low, first + left, end - first - left)


@exact
def _pick(values: Any, runs: Any, out: Any) -> None:
    for n in range(out.shape[0]):
        for i in range(runs.shape[1]):
            for whole, part, length in _spans(n, i, runs, values.shape[1], out.shape[1]):
                for j in range(length):
                    out[n, part + j] = values[n, whole + j]


@exact
def _place(values: Any, runs: Any, out: Any) -> None:
    for n in range(out.shape[0]):
        for i in range(runs.shape[1]):
            for whole, part, length in _spans(n, i, runs, out.shape[1], values.shape[1]):
                for j in range(length):
                    out[n, whole + j] = values[n, part + j]

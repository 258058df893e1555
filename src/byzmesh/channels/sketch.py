"""Screening by sketches: a short summary of every message travels first, and only messages near one's own are fetched.

A Count Sketch adds the coordinates of x, each with a random sign, into W buckets:

    (S x)_b = sum of sign(i) x_i over the i with bucket(i) = b,        E ||S x||^2 = ||x||^2,  Var <= 2 ||x||^4 / W

S is the same for all senders of a run, so ||S x - S y|| tells the distance of two models. The coordinates are taken W
at a time; each stretch is turned by a random amount and added. So two coordinates share a bucket with probability 1/W,
or never if they are of one stretch, and that is all that the variance needs.

A receiver with d sketches, of which at most f lie, fetches the messages at most `slack` times as far from its own as
the (d - f)-th nearest: whatever liars send, that is no farther than the farthest honest one. The others count as
silent. S is known to everybody, so a liar can find a model far away with a near sketch. Therefore the rule sees whole
models, with the f that it was told, and a model that is not the one that was sketched is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.base import Stage, stages
from byzmesh.channels.distortion import Distortion
from byzmesh.checks import at_least, whole
from byzmesh.compiled import exact
from byzmesh.rng import below, hash_32, key_words, stream
from byzmesh.types import Array, Booleans, Integers


@stages.register("sketch")
@dataclass(frozen=True, repr=False)
class Sketch(Stage):
    """A summary of every message first; whole messages only from those whose summary is near. The last stage.

    width  numbers in a sketch, float32: distances are off by a part of about 1 / sqrt(2 width)
    slack  how many times as far as the (d - f)-th nearest a message may be, at least 1: with 1 just d - f of d messages
           are fetched
    """

    width: int = 256
    slack: float = 2.0
    name = "sketch"
    screens = True

    def __post_init__(self) -> None:
        whole("stage sketch: width", self.width, 1)
        at_least("stage sketch: slack", self.slack, 1.0)

    @property
    def distortion(self) -> Distortion:
        return Distortion()

    def of(self, vectors: Array, key: np.uint64) -> Array:
        """(N, D) -> (N, W) float32 sketches."""
        out = np.zeros((len(vectors), self.width))
        _sketch(np.ascontiguousarray(vectors), key, out)
        with np.errstate(over="ignore"):
            return out.astype(np.float32)

    def passing(self, sketches: Array, index: Integers, present: Booleans, f: Integers) -> Booleans:
        """(R, K) which messages to fetch of those present; slot 0, one's own, always.

        sketches  (Q, W) finite where present
        index     (R, K) whose sketch is in each slot

        >>> near = np.array([[0.0], [1.0], [2.0], [9.0]], np.float32)
        >>> Sketch(width=1).passing(near, np.arange(4)[None], np.ones((1, 4), bool), np.array([1]))
        array([[ True,  True,  True, False]])
        """
        out = np.zeros(present.shape, np.bool_)
        _passing(sketches, index, present, f, float(self.slack), out)
        return out


@exact
def _sketch(vectors: Any, key: Any, out: Any) -> None:
    width, size, state = out.shape[1], vectors.shape[1], stream(key, 0, 0)
    first, second, _, _ = key_words(state)
    signs = np.empty(width)
    for start in range(0, size, width):
        length = min(width, size - start)
        turn = below(state, start, width)
        for i in range(length):
            bit = np.int32(hash_32(np.uint32(np.uint32(start) + np.uint32(i)), first, second) >> np.uint32(31))
            signs[i] = 1.0 - 2.0 * np.float64(bit)
        left = min(length, width - turn)
        for n in range(vectors.shape[0]):
            read, end, begin = vectors[n, start : start + length], out[n, turn:], out[n]
            for i in range(left):
                end[i] += signs[i] * read[i]
            for i in range(left, length):
                begin[i - left] += signs[i] * read[i]


@exact
def _passing(sketches: Any, index: Any, present: Any, f: Any, slack: Any, out: Any) -> None:
    slots = index.shape[1]
    distance = np.empty(slots)
    for r in range(index.shape[0]):
        own, came = sketches[index[r, 0]], 0
        for k in range(1, slots):
            distance[k] = np.inf
            if present[r, k]:
                total = 0.0
                for i in range(sketches.shape[1]):
                    way = np.float64(sketches[index[r, k], i]) - np.float64(own[i])
                    total += way * way
                came += 1
                distance[k] = np.sqrt(total)
        nearest = np.sort(distance[1:])
        farthest = slack * nearest[came - f[r] - 1] if came > f[r] else -1.0
        out[r, 0] = present[r, 0]
        for k in range(1, slots):
            out[r, k] = present[r, k] and distance[k] <= farthest

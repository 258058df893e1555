"""From scores to losses and their derivatives: softmax, logistic, squares.

    delta(scores (R, B, C), labels (R, B))   scores become d(mean loss of the batch)/d(scores), in place
    measure(scores, labels, loss (R,), accuracy (R,))   mean loss and fraction of right answers; overwrites scores

    softmax   loss = log sum_c exp s_c - s_y                     y in 0..C-1; ties count for the lowest class
    logistic  loss = log(1 + exp s) - y s                        y in {0, 1}, C = 1; right if (s > 0) = y
    squares   loss = (s - y)^2 / 2                               C = 1; right if s and y have the same sign

A NaN score is never a right answer. Exponentials are polynomials in a plain loop, which LLVM vectorises. A derivative
too small to change a model (below 1e-30 of the largest, 1e-300 in float64) is 0: arithmetic with denormal numbers takes
a hundred times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.compiled import exact

_f32, _i32 = np.float32, np.int32
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.4286068203094172e-06  # the high part has 16 bits: n * high is exact


@dataclass(frozen=True)
class Link:
    """A loss as a function of scores."""

    delta: Callable[[Any, Any], None]
    measure: Callable[[Any, Any, Any, Any], None]
    curvature: float
    """Largest second derivative along any direction of the scores."""
    slope: float
    """Largest norm of the derivative by the scores: infinite for squares."""


@exact
def _exp_32(x: Any) -> None:
    """exp of each element <= 0 of a flat float32 array, in place: x = n log 2 + r, Taylor series of exp r, 2^n by bits.

    Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. The clip keeps NaN.
    """
    magic = _f32(12582912.0)
    for i in range(x.shape[0]):
        v = x[i]
        v = _f32(-87.0) if v < _f32(-87.0) else _f32(v)
        t = _f32(v * _f32(_LOG2E) + magic)
        n = t - magic
        r = (v - n * _f32(_LN2_HIGH)) - n * _f32(_LN2_LOW)
        e = _f32(1 / 120) + r * (_f32(1 / 720) + r * _f32(1 / 5040))
        e = _f32(1) + r * (_f32(1) + r * (_f32(1 / 2) + r * (_f32(1 / 6) + r * (_f32(1 / 24) + r * e))))
        x[i] = e * _i32(_i32(_i32(t.view(_i32) - _i32(0x4B400000)) + _i32(127)) << _i32(23)).view(_f32)


@exact
def _exp_64(x: Any) -> None:
    """As `_exp_32` in float64, with 1.5 * 2^52 and 13 terms."""
    magic = 6755399441055744.0
    for i in range(x.shape[0]):
        v = x[i]
        v = -708.0 if v < -708.0 else np.float64(v)
        t = np.float64(v * _LOG2E + magic)
        n = t - magic
        r = (v - n * _LN2_HIGH) - n * _LN2_LOW
        e = 1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800)))
        e = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * e)))
        e = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * e)))))
        bits = ((t.view(np.int64) - np.int64(0x4338000000000000)) + np.int64(1023)) << np.int64(52)
        x[i] = e * np.int64(bits).view(np.float64)


@exact
def _exponentials(scores: Any) -> None:
    """(B, C) scores become exp(s - max s), in place."""
    for s in range(scores.shape[0]):
        top = scores[s, 0]
        for c in range(1, scores.shape[1]):
            top = max(top, scores[s, c])
        for c in range(scores.shape[1]):
            scores[s, c] -= top
    if scores.itemsize == 4:
        _exp_32(scores.ravel())
    else:
        _exp_64(scores.ravel())


@exact
def _least(scores: Any) -> Any:
    """What counts as 0 beside 1."""
    return scores.dtype.type(1e-30 if scores.itemsize == 4 else 1e-300)


@exact
def softmax_delta(scores: Any, labels: Any) -> None:
    share, least = scores.dtype.type(1 / scores.shape[1]), _least(scores)
    for r in range(scores.shape[0]):
        batch = scores[r]
        _exponentials(batch)
        for s in range(batch.shape[0]):
            total = batch[s, 0]
            for c in range(1, batch.shape[1]):
                total += batch[s, c]
            factor = share / total
            for c in range(batch.shape[1]):
                batch[s, c] = scores.dtype.type(0) if batch[s, c] < least else batch[s, c] * factor
            batch[s, labels[r, s]] -= share


@exact
def _softmax_measure(scores: Any, labels: Any, loss: Any, accuracy: Any) -> None:
    for r in range(scores.shape[0]):
        batch = scores[r]
        right, total = 0, 0.0
        for s in range(batch.shape[0]):
            label = labels[r, s]
            own = batch[s, label]
            best = not math.isnan(own)
            top = own
            for c in range(batch.shape[1]):
                other = batch[s, c]
                best = best and (other < own or (other == own and c >= label))
                top = max(top, other)
            right += best
            total += float(top) - float(own)
        _exponentials(batch)
        for s in range(batch.shape[0]):
            mass = 0.0
            for c in range(batch.shape[1]):
                mass += batch[s, c]
            total += math.log(mass)
        loss[r] = total / batch.shape[0]
        accuracy[r] = right / batch.shape[0]


@exact
def _logistic_delta(scores: Any, labels: Any) -> None:
    least = _least(scores)
    for r in range(scores.shape[0]):
        for s in range(scores.shape[1]):
            decay = math.exp(-abs(scores[r, s, 0]))
            chance = 1.0 / (1.0 + decay) if scores[r, s, 0] >= 0 else decay / (1.0 + decay)
            gap = chance - labels[r, s]
            scores[r, s, 0] = 0.0 if abs(gap) < least else gap / scores.shape[1]


@exact
def _logistic_measure(scores: Any, labels: Any, loss: Any, accuracy: Any) -> None:
    for r in range(scores.shape[0]):
        right, total = 0, 0.0
        for s in range(scores.shape[1]):
            score, label = float(scores[r, s, 0]), labels[r, s]
            total += max(score, 0.0) - label * score + math.log1p(math.exp(-abs(score)))
            right += score > 0 if label else score <= 0
        loss[r] = total / scores.shape[1]
        accuracy[r] = right / scores.shape[1]


@exact
def _squares_delta(scores: Any, labels: Any) -> None:
    for r in range(scores.shape[0]):
        for s in range(scores.shape[1]):
            scores[r, s, 0] = (scores[r, s, 0] - labels[r, s]) / scores.shape[1]


@exact
def _squares_measure(scores: Any, labels: Any, loss: Any, accuracy: Any) -> None:
    for r in range(scores.shape[0]):
        right, total = 0, 0.0
        for s in range(scores.shape[1]):
            gap = float(scores[r, s, 0]) - labels[r, s]
            total += 0.5 * gap * gap
            right += scores[r, s, 0] > 0 if labels[r, s] > 0 else scores[r, s, 0] <= 0
        loss[r] = total / scores.shape[1]
        accuracy[r] = right / scores.shape[1]


SOFTMAX = Link(softmax_delta, _softmax_measure, 0.5, math.sqrt(2.0))
LOGISTIC = Link(_logistic_delta, _logistic_measure, 0.25, 1.0)
SQUARES = Link(_squares_delta, _squares_measure, 1.0, math.inf)


@exact
def shorten(slopes: Any, lengths: Any, picks: Any, longest: Any) -> None:
    """(R, B, C) slopes of batches' means, in place: those of a sample scaled so that its gradient is no longer.

    lengths  (M,) what the length of a sample's slopes is multiplied by in that of its gradient
    """
    batch = slopes.shape[1]
    for r in range(slopes.shape[0]):
        for s in range(batch):
            square = 0.0
            for c in range(slopes.shape[2]):
                square += np.float64(slopes[r, s, c]) * np.float64(slopes[r, s, c])
            length = batch * math.sqrt(square) * lengths[picks[r, s]]
            if length > longest:
                factor = slopes.dtype.type(longest / length)
                for c in range(slopes.shape[2]):
                    slopes[r, s, c] *= factor

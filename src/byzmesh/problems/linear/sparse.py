"""Products of linear models with samples stored as their non-zero pixels.

A sample is x_p = scale * pixel_p + offset. With the offset folded into sums over all features the products touch only
the non-zero pixels (19% of MNIST's):

    scores    s_c = sum_{p: pixel > 0} scale * pixel_p * W[p, c] + offset * sum_p W[p, c] + bias_c
    gradient  G[p, c] = sum_s scale * pixel_sp * delta_sc + offset * sum_s delta_sc,   G[bias, c] = sum_s delta_sc

    models, gradients  (R, (F + 1) C)  W row-major with the classes contiguous, then the bias
    picks              (R, B)          sample numbers of each row's batch
    scores, delta      (R, B, C)
    table              (256,)          scale * pixel in the models' dtype

The rows are taken one after the other, each through all of forward product, slopes, backward product and half step: its
model, its gradient and its samples, scattered over the data set, then come into the cache once. The forward product
prefetches a few samples ahead, the backward product those of the next row. Every addition to a sum waits for the one
before: each half of a sample has its own. (Two samples at a time, four sums, cost more at the ends of the loops, whose
lengths no processor foresees, than they save.)
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact, fast
from byzmesh.problems.descent import copy_row, descend_row
from byzmesh.problems.linear.losses import softmax_delta
from byzmesh.simd import axpy, load, pieces, plus, prefetch, store

_U = np.uint64
_AHEAD = 6  # samples


@exact
def _prefetch_sample(start: Any, column: Any, value: Any, picks: Any, position: Any) -> None:
    """Prefetch most of the sample at a position of the flat picks and the start of a later one.

    Always the same number of lines: a loop of unknown length costs more than the lines that are not needed.
    """
    last = len(picks) - 1
    prefetch(start, _U(picks[min(position + _AHEAD, last)]))
    low = _U(start[picks[min(position, last)]])
    for line in range(6):
        prefetch(column, low + _U(32 * line))
    for line in range(3):
        prefetch(value, low + _U(64 * line))


@cache
def lane_kernel(classes: int) -> Any:
    """All products of a row in one call, for a number of classes that is a sum of two register widths; else None.

    run(start, column, value, table, offset, picks, targets, models, scores, keep, step, out, peak, resting)

    with models     forward product: `scores` of them
    with targets    slopes: `scores` become the derivatives of the softmax loss
    with out        backward product of the scores: `out` gets the gradients or, with models, the half steps
                    keep * models - step * gradients, and `peak` (R,) their largest entries; those of rows that
                    are `resting` (R,) are their models

    An array of no rows stands for what is left out.
    """
    widths = pieces(classes)
    return None if widths is None else _lane_kernel(*widths)


def _lane_kernel(first: int, second: int) -> Any:
    classes, head = _U(first + second), _U(first)

    @exact
    def run(
        start: Any,
        column: Any,
        value: Any,
        table: Any,
        offset: Any,
        picks: Any,
        targets: Any,
        models: Any,
        scores: Any,
        keep: Any,
        step: Any,
        out: Any,
        peak: Any,
        resting: Any,
    ) -> None:
        features = _U(max(models.shape[1], out.shape[1])) // classes - _U(1)
        nothing = np.zeros(8, scores.dtype)
        zero_a, zero_b = load(nothing, _U(0), first), load(nothing, _U(0), second)
        flat, batch = picks.ravel(), picks.shape[1]
        for r in range(picks.shape[0]):
            if resting.size > 0 and resting[r]:
                peak[r] = copy_row(models[r], out[r])
                continue
            if models.shape[0] > 0:
                model = models[r]
                a, b, c, d = zero_a, zero_b, zero_a, zero_b
                for pair in range(features >> _U(1)):
                    w = pair * _U(2) * classes
                    a, b = plus(a, load(model, w, first)), plus(b, load(model, w + head, second))
                    w += classes
                    c, d = plus(c, load(model, w, first)), plus(d, load(model, w + head, second))
                if features & _U(1):
                    w = (features - _U(1)) * classes
                    a, b = plus(a, load(model, w, first)), plus(b, load(model, w + head, second))
                w = features * classes
                base_a = axpy(offset, plus(a, c), load(model, w, first))
                base_b = axpy(offset, plus(b, d), load(model, w + head, second))
                for s in range(batch):
                    here = r * batch + s
                    _prefetch_sample(start, column, value, flat, here + _AHEAD)
                    low = _U(start[flat[here]])
                    count = _U(start[flat[here] + 1]) - low
                    half = count >> _U(1)
                    a, b, c, d = base_a, base_b, zero_a, zero_b
                    for i in range(low, low + half):
                        v, w = table[value[i]], _U(column[i]) * classes
                        a, b = axpy(v, load(model, w, first), a), axpy(v, load(model, w + head, second), b)
                        v, w = table[value[half + i]], _U(column[half + i]) * classes
                        c, d = axpy(v, load(model, w, first), c), axpy(v, load(model, w + head, second), d)
                    if count & _U(1):
                        v, w = table[value[low + count - _U(1)]], _U(column[low + count - _U(1)]) * classes
                        a, b = axpy(v, load(model, w, first), a), axpy(v, load(model, w + head, second), b)
                    store(scores, _U(here) * classes, plus(a, c))
                    store(scores, _U(here) * classes + head, plus(b, d))
            if targets.shape[0] > 0:
                softmax_delta(scores[r : r + 1], targets[r : r + 1])
            if out.shape[0] > 0:
                gradient = out[r]
                a, b = zero_a, zero_b
                for s in range(batch):
                    source = _U(r * batch + s) * classes
                    a, b = plus(a, load(scores, source, first)), plus(b, load(scores, source + head, second))
                store(gradient, features * classes, a)
                store(gradient, features * classes + head, b)
                a, b = axpy(offset, a, zero_a), axpy(offset, b, zero_b)
                for p in range(features):
                    store(gradient, p * classes, a)
                    store(gradient, p * classes + head, b)
                for s in range(batch):
                    position = r * batch + s
                    _prefetch_sample(start, column, value, flat, position + batch)
                    source = _U(position) * classes
                    a, b = load(scores, source, first), load(scores, source + head, second)
                    for i in range(_U(start[flat[position]]), _U(start[flat[position] + 1])):
                        v, g = table[value[i]], _U(column[i]) * classes
                        store(gradient, g, axpy(v, a, load(gradient, g, first)))
                        store(gradient, g + head, axpy(v, b, load(gradient, g + head, second)))
                if models.shape[0] > 0:
                    peak[r] = descend_row(models[r], gradient, keep, step, gradient)

    return run


@fast
def plain_forward(
    start: Any, column: Any, value: Any, table: Any, offset: Any, picks: Any, models: Any, scores: Any
) -> None:
    classes = scores.shape[2]
    features = models.shape[1] // classes - 1
    base = np.empty(classes, models.dtype)
    for r in range(picks.shape[0]):
        model = models[r]
        base[:] = 0
        for p in range(features):
            for c in range(classes):
                base[c] += model[p * classes + c]
        for c in range(classes):
            base[c] = offset * base[c] + model[features * classes + c]
        for s in range(picks.shape[1]):
            for c in range(classes):
                scores[r, s, c] = base[c]
            for i in range(start[picks[r, s]], start[picks[r, s] + 1]):
                v, w = table[value[i]], np.int64(column[i]) * classes
                for c in range(classes):
                    scores[r, s, c] += v * model[w + c]


@fast
def plain_backward(
    start: Any, column: Any, value: Any, table: Any, offset: Any, picks: Any, delta: Any, out: Any
) -> None:
    classes = delta.shape[2]
    features = out.shape[1] // classes - 1
    for r in range(picks.shape[0]):
        gradient = out[r]
        for c in range(classes):
            total = out.dtype.type(0)
            for s in range(picks.shape[1]):
                total += delta[r, s, c]
            for p in range(features):
                gradient[p * classes + c] = offset * total
            gradient[features * classes + c] = total
        for s in range(picks.shape[1]):
            for i in range(start[picks[r, s]], start[picks[r, s] + 1]):
                v, g = table[value[i]], np.int64(column[i]) * classes
                for c in range(classes):
                    gradient[g + c] += v * delta[r, s, c]

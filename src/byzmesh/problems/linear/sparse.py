"""Products of linear models with samples stored as their non-zero pixels.

A sample is x_p = scale * pixel_p + offset. With the offset folded into sums over all features the products touch only
the non-zero pixels (19% of MNIST's):

    scores    s_c = sum_{p: pixel > 0} scale * pixel_p * W[p, c] + offset * sum_p W[p, c] + bias_c
    gradient  G[p, c] = sum_s scale * pixel_sp * delta_sc + offset * sum_s delta_sc,   G[bias, c] = sum_s delta_sc

    models, gradients  (R, (F + 1) C)  W row-major with the classes contiguous, then the bias
    picks              (R, B)          sample numbers of each row's batch
    scores, delta      (R, B, C)
    table              (256,)          scale * pixel in the models' dtype

The samples of a batch are scattered over the data set, so both kernels prefetch a few ahead, which halves their time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from byzmesh.compiled import fast
from byzmesh.problems.linear.simd import axpy, load, pieces, prefetch, store

_U = np.uint64
_AHEAD = 4  # samples; their index entries twice as far


@fast
def _prefetch_sample(start: Any, column: Any, value: Any, picks: Any, position: Any) -> None:
    """Prefetch the sample at `position + _AHEAD` of the flat picks and the start of a later one."""
    if position + 2 * _AHEAD < len(picks):
        prefetch(start, _U(picks[position + 2 * _AHEAD]))
    if position + _AHEAD < len(picks):
        sample = picks[position + _AHEAD]
        low, high = _U(start[sample]), _U(start[sample + 1])
        for line in range((high - low + _U(31)) >> _U(5)):
            prefetch(column, low + line * _U(32))
        for line in range((high - low + _U(63)) >> _U(6)):
            prefetch(value, low + line * _U(64))


@cache
def kernels(classes: int) -> tuple[Any, Any]:
    """(forward, backward) for a number of classes.

    forward(start, column, value, table, offset, picks, models, scores)
    backward(start, column, value, table, offset, picks, delta, gradients)
    """
    widths = pieces(classes)
    return _plain_kernels() if widths is None else _lane_kernels(*widths)


def _lane_kernels(first: int, second: int) -> tuple[Any, Any]:
    classes, head = _U(first + second), _U(first)

    @fast
    def forward(
        start: Any, column: Any, value: Any, table: Any, offset: Any, picks: Any, models: Any, scores: Any
    ) -> None:
        features = _U(models.shape[1]) // classes - _U(1)
        one = models.dtype.type(1)
        nothing = np.zeros(8, models.dtype)
        zero_a, zero_b = load(nothing, _U(0), first), load(nothing, _U(0), second)
        flat = picks.ravel()
        for r in range(picks.shape[0]):
            model = models[r]
            a, b, c, d = zero_a, zero_b, zero_a, zero_b
            for pair in range(features >> _U(1)):
                w = pair * _U(2) * classes
                a, b = axpy(one, load(model, w, first), a), axpy(one, load(model, w + head, second), b)
                w += classes
                c, d = axpy(one, load(model, w, first), c), axpy(one, load(model, w + head, second), d)
            if features & _U(1):
                w = (features - _U(1)) * classes
                a, b = axpy(one, load(model, w, first), a), axpy(one, load(model, w + head, second), b)
            w = features * classes
            base_a = axpy(offset, axpy(one, a, c), load(model, w, first))
            base_b = axpy(offset, axpy(one, b, d), load(model, w + head, second))
            for s in range(picks.shape[1]):
                position = r * picks.shape[1] + s
                _prefetch_sample(start, column, value, flat, position)
                low, high = _U(start[flat[position]]), _U(start[flat[position] + 1])
                half = (high - low) >> _U(1)
                # two independent sums hide the latency of the multiply-add
                a, b, c, d = base_a, base_b, zero_a, zero_b
                for i in range(low, low + half):
                    v, w = table[value[i]], _U(column[i]) * classes
                    a, b = axpy(v, load(model, w, first), a), axpy(v, load(model, w + head, second), b)
                    v, w = table[value[i + half]], _U(column[i + half]) * classes
                    c, d = axpy(v, load(model, w, first), c), axpy(v, load(model, w + head, second), d)
                if (high - low) & _U(1):
                    v, w = table[value[high - _U(1)]], _U(column[high - _U(1)]) * classes
                    a, b = axpy(v, load(model, w, first), a), axpy(v, load(model, w + head, second), b)
                target = _U(position) * classes
                store(scores, target, axpy(one, a, c))
                store(scores, target + head, axpy(one, b, d))

    @fast
    def backward(
        start: Any, column: Any, value: Any, table: Any, offset: Any, picks: Any, delta: Any, gradients: Any
    ) -> None:
        features = _U(gradients.shape[1]) // classes - _U(1)
        one = gradients.dtype.type(1)
        nothing = np.zeros(8, gradients.dtype)
        zero_a, zero_b = load(nothing, _U(0), first), load(nothing, _U(0), second)
        flat = picks.ravel()
        for r in range(picks.shape[0]):
            gradient = gradients[r]
            a, b = zero_a, zero_b
            for s in range(picks.shape[1]):
                source = _U(r * picks.shape[1] + s) * classes
                a, b = axpy(one, load(delta, source, first), a), axpy(one, load(delta, source + head, second), b)
            store(gradient, features * classes, a)
            store(gradient, features * classes + head, b)
            a, b = axpy(offset, a, zero_a), axpy(offset, b, zero_b)
            for p in range(features):
                store(gradient, p * classes, a)
                store(gradient, p * classes + head, b)
            for s in range(picks.shape[1]):
                position = r * picks.shape[1] + s
                _prefetch_sample(start, column, value, flat, position)
                source = _U(position) * classes
                a, b = load(delta, source, first), load(delta, source + head, second)
                for i in range(_U(start[flat[position]]), _U(start[flat[position] + 1])):
                    v, g = table[value[i]], _U(column[i]) * classes
                    store(gradient, g, axpy(v, a, load(gradient, g, first)))
                    store(gradient, g + head, axpy(v, b, load(gradient, g + head, second)))

    return forward, backward


def _plain_kernels() -> tuple[Any, Any]:
    return _plain_forward, _plain_backward


@fast
def _plain_forward(
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
def _plain_backward(
    start: Any, column: Any, value: Any, table: Any, offset: Any, picks: Any, delta: Any, gradients: Any
) -> None:
    classes = delta.shape[2]
    features = gradients.shape[1] // classes - 1
    for r in range(picks.shape[0]):
        gradient = gradients[r]
        for c in range(classes):
            total = gradients.dtype.type(0)
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

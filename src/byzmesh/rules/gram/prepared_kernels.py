"""The kernels of a prepared round of a Gram rule: whether it is usual, the rule's geometry, the mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.gram.slots import (
    combination_peaks,
    gather_blocks,
    lift_combinations,
    lifted_inner,
    lifted_weights,
    sums_to_one,
)
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products
from byzmesh.sums import row_sum


@exact
def lifted(index: Any, coefficient: Any, own: int, size: int) -> Any:
    """The matrix (P, M) from basis to pool rows, and whether the centre is a row of the basis; empty without lies."""
    if index.shape[0] == 0:
        return np.zeros((0, 0)), False
    centre_row = not sums_to_one(coefficient)
    lift = np.zeros((size, size - index.shape[0] + centre_row))
    lift_combinations(index, coefficient, np.ones(size), own, centre_row, lift)
    return lift, centre_row


@exact
def usual(peak: Any, index: Any, coefficient: Any, others: Any, largest: float, far: float) -> bool:
    """Whether no row of the pool has a larger number, and no own model is that many times as large as another."""
    low, high = np.inf, 0.0
    for row in range(peak.size):
        low, high = min(low, peak[row]), max(high, peak[row])
    if not high <= far * low:
        return False
    for bound in combination_peaks(index, coefficient, peak):
        high = max(high, bound)
    for bound in others:
        high = max(high, bound)
    return bool(high <= largest)


@exact
def blocks(
    own: Any,
    messages: Any,
    anchors: Any,
    peak: Any,
    combined: Any,
    coefficient: Any,
    others: Any,
    largest: float,
    far: float,
    centre_row: bool,
    lift: Any,
    height: int,
    index: Any,
    present: Any,
    out: Any,
) -> bool:
    """out (R, K, K) = the inner products of each receiver's slots; False if the rows are not usual."""
    if not usual(peak, combined, coefficient, others, largest, far):
        return False
    gram = np.zeros((height, height))
    centred_products(own, messages, anchors, centre_row, 0, own.shape[1], gram)
    if lift.shape[0] > 0:
        inner = np.empty((lift.shape[0], lift.shape[0]))
        lifted_inner(lift, gram, np.empty(lift.shape), inner)
        gather_blocks(inner, index, present, out)
    else:
        gather_blocks(gram, index, present, out)
    return True


@exact
def mixture(
    own: Any,
    messages: Any,
    anchors: Any,
    index: Any,
    chosen: Any,
    lift: Any,
    centre_row: bool,
    height: int,
    out: Any,
) -> bool:
    """out[r] = sum over the slots by the coefficients `chosen`; False if they are not finite, before it is written."""
    receivers, size, total = index.shape[0], max(height, lift.shape[0]), 0.0
    matrix, sums = np.zeros((receivers, size)), np.empty(receivers)
    for receiver in range(receivers):
        for slot in range(index.shape[1]):
            matrix[receiver, index[receiver, slot]] += chosen[receiver, slot]
        sums[receiver] = row_sum(matrix[receiver])
        total += sums[receiver]
    if not np.isfinite(total):
        return False
    weights, kind = matrix, own.dtype.type
    if lift.shape[0] > 0:
        weights = np.empty((receivers, height))
        lifted_weights(matrix, lift, weights)
    narrow, share = np.empty(weights.shape, own.dtype), np.empty(receivers, own.dtype)
    for receiver in range(receivers):
        for row in range(weights.shape[1]):
            narrow[receiver, row] = kind(weights[receiver, row])
        share[receiver] = kind(sums[receiver] + (weights[receiver, -1] if centre_row else 0.0))
    centred_mix(own, messages, anchors, narrow, share, 0, own.shape[1], out)
    return True


@exact
def weights_alone(inner: Any, weight: Any, present: Any, f: Any, room: Any, tie: Any, settings: Any, out: Any) -> None:
    """The mixing weights as coefficients: the `Choosing.kernel` of a rule that asks for no distances."""
    out[:] = weight

"""From inboxes to inner products, and from coefficients back to models.

Small or dense networks use one Gram matrix of the whole pool (basis.py), large sparse ones a K x K block per receiver,
O(R K^2 D); strategy.py chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import over_parts
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import LARGEST, power_of_two
from byzmesh.rules.gram.block_kernels import mix_rows, neighbourhood_products
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.gram.slots import gather_blocks, scatter
from byzmesh.types import Booleans, Floats, Integers

_TIE = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-12}


def tie_tolerance(dtype: Any) -> float:
    """Relative difference of squared distances that rounding alone can cause."""
    return _TIE[np.dtype(dtype)]


def inner_blocks(pool: Pool, index: Integers, present: Booleans) -> Floats:
    """(R, K, K) inner products <y_i - own, y_j - own> of each receiver's slots; zero where a slot is absent."""
    receivers, slots = index.shape
    out = np.empty((receivers, slots, slots))
    if not strategy.prefers_blocks(pool, receivers, slots):
        gather_blocks(pool.inner, index, present, out)
        return out
    anchors = pool.own[:0] if pool.anchors is None else pool.anchors
    scale = np.where(pool.usable, power_of_two(pool.peak, pool.dtype), 1.0)
    messages, factor, capped = pool.dense_messages(), 1.0 / scale, np.minimum(scale, LARGEST)

    def work(part: slice) -> None:
        neighbourhood_products(pool.own, messages, anchors, index[part], present[part], factor, capped, out[part])

    over_parts(work, receivers, strategy.RECEIVERS)
    return out


def mix(pool: Pool, index: Integers, coefficient: Floats) -> Any:
    """(R, D) sum_k coefficient[r, k] * y_{index[r, k]}: from coefficients to models."""
    receivers, slots = index.shape
    if strategy.prefers_blocks(pool, receivers, slots):
        out = np.empty((receivers, pool.own.shape[1]), pool.own.dtype)
        anchors = pool.own[:0] if pool.anchors is None else pool.anchors
        messages = pool.dense_messages()

        def work(part: slice) -> None:
            mix_rows(pool.own, messages, anchors, index[part], coefficient[part], True, out[part])

        over_parts(work, receivers, strategy.RECEIVERS)
        return out
    matrix = np.zeros((receivers, pool.size))
    scatter(index, coefficient, matrix)
    return pool.basis.mix(matrix)

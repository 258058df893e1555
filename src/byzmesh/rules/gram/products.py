"""From inboxes to inner products, and from coefficients back to models.

Small or dense networks use one Gram matrix of the whole pool (basis.py), large sparse ones a K x K block per receiver,
O(R K^2 D); strategy.py chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import over_parts
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import HUGE
from byzmesh.rules.gram.blocks import Sources, in_turn
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.gram.slots import gather_blocks, scatter
from byzmesh.rules.gram.small_kernels import own_products
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
    sources, every = Sources(pool, slots), np.ones(receivers, bool)

    def work(few: slice) -> None:
        out[few] = sources.products(index[few], present[few], every[few])

    in_turn(work, receivers)
    return out


def own_blocks(pool: Pool, index: Integers, present: Booleans) -> Floats | None:
    """(1, K, K) one receiver's block with nothing but the squared distances from its own model, on the diagonal.

    None if there are more receivers, if vectors are huge or on another device, or if messages are combinations.
    """
    if len(pool.own) != 1 or pool.messages is None or not isinstance(pool.own, np.ndarray):
        return None
    if pool.combination is not None or pool.anchors is not None or not pool.top <= HUGE[pool.dtype]:
        return None
    own, messages = np.ascontiguousarray(pool.own), np.ascontiguousarray(pool.messages)

    def work(part: slice) -> Floats:
        share = np.empty(len(messages))
        own_products(own, messages, part.start, part.stop, share)
        return share

    square = np.zeros(pool.size)
    square[1:] = sum(over_parts(work, own.shape[1], strategy.COLUMNS), square[1:])
    return np.where(present, square[index], 0.0)[:, :, None] * np.eye(index.shape[1])


def mix(pool: Pool, index: Integers, coefficient: Floats, out: Any = None) -> Any:
    """(R, D) sum_k coefficient[r, k] * y_{index[r, k]}: from coefficients to models; may be written to `out`."""
    receivers, slots = index.shape
    if strategy.prefers_blocks(pool, receivers, slots):
        out = np.empty((receivers, pool.own.shape[1]), pool.own.dtype) if out is None else out
        sources = Sources(pool, slots)
        in_turn(lambda few: sources.mix(index[few], coefficient[few], out[few]), receivers)
        return out
    matrix = np.zeros((receivers, pool.size))
    scatter(index, coefficient, matrix)
    return pool.basis.mix(matrix, out)

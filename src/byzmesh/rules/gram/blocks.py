"""Large, sparse networks: from the inboxes of a few receivers at a time to their mixtures.

A receiver's inbox is K rows of D numbers, and on a large network hardly two receivers have rows in common. So a thread
takes `strategy.TOGETHER` receivers, computes their blocks, asks for their coefficients and mixes while the rows are
still in the cache. Messages that are short combinations of own models are never built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.compiled import over_few
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import LARGEST, power_of_two
from byzmesh.rules.gram.block_kernels import mix_rows, neighbourhood_products
from byzmesh.rules.gram.pool import Pool
from byzmesh.types import Array, Booleans, Floats, Integers


class Sources:
    """The rows of a pool as the kernels take them; few messages of many terms are built once."""

    def __init__(self, pool: Pool, slots: int) -> None:
        own, none = np.ascontiguousarray(pool.own), pool.own[:0]
        messages = none if pool.messages is None else pool.messages
        anchors = none if pool.anchors is None else pool.anchors
        terms, share = (np.zeros((0, 1), np.int64), np.zeros((0, 1))) if pool.combination is None else pool.combination
        if strategy.builds_messages(pool, slots):
            if pool.anchors is None:  # what comes after the built ones need not be copied
                messages, anchors = pool.built(), messages
            else:
                messages = pool.dense_messages()
            terms, share = terms[:0], share[:0]
        self.rows: tuple[Array, Array, Array, Array, Array] = (
            own,
            np.ascontiguousarray(messages),
            terms,
            share,
            np.ascontiguousarray(anchors),
        )
        scale = np.where(pool.usable, power_of_two(pool.peak, pool.dtype), 1.0)
        self.factor, self.scale = 1.0 / scale, np.minimum(scale, LARGEST)

    def products(self, index: Integers, present: Booleans, needed: Booleans) -> Floats:
        """(R, K, K) inner products <y_i - own, y_j - own>; zero where a slot is absent or a receiver not `needed`."""
        out = np.empty((*index.shape, index.shape[1]))
        neighbourhood_products(*self.rows, index, present, needed, self.factor, self.scale, out)
        return out

    def mix(self, index: Integers, coefficient: Floats, out: Array) -> None:
        """out[r] = sum_k coefficient[r, k] y_{index[r, k]}."""
        mix_rows(*self.rows, index, coefficient, out)


def in_turn(work: Callable[[slice], None], receivers: int) -> None:
    """Call `work` on slices of a few receivers that cover all of them."""
    over_few(work, receivers, strategy.TOGETHER, strategy.RECEIVERS)


def mixed(
    pool: Pool,
    index: Integers,
    present: Booleans,
    needed: Booleans,
    decide: Callable[[slice, Floats], Floats],
    out: Any = None,
) -> tuple[Floats, Any]:
    """(coefficients (R, K), models (R, D)) of all receivers.

    decide  (some receivers, their inner products) -> their coefficients
    needed  (R,) whose inner products `decide` reads
    out     (R, D) where to write the models
    """
    sources = Sources(pool, index.shape[1])
    chosen = np.empty(index.shape)
    models = np.empty((len(index), pool.own.shape[1]), pool.own.dtype) if out is None else out

    def work(few: slice) -> None:
        chosen[few] = decide(few, sources.products(index[few], present[few], needed[few]))
        sources.mix(index[few], chosen[few], models[few])

    in_turn(work, len(index))
    return chosen, models

"""How a product is computed: the only place that chooses.

    pool of few rows          fused kernels (small_kernels.py), centred on the fly: no array of the pool's size is built
    larger, dense network     products by tiles in the registers of AVX-512 (many_kernels.py), mixtures, and without
                              AVX-512 or beside huge numbers products, too, by BLAS on chunks of the centred basis
    large, sparse network     a K x K block per receiver (block_kernels.py); a full Gram matrix would be mostly unused
    arrays on another device  array-API operations on the whole basis

All ways give the same decisions and the same numbers up to rounding; each way by itself is reproducible bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byzmesh.simd import VECTOR

if TYPE_CHECKING:
    from byzmesh.rules.gram.pool import Pool

FUSED_ROWS = 40
"""Up to this many rows the fused kernels beat BLAS, which is optimised for square products."""

CHUNK = 8192
"""Columns centred and multiplied at a time by BLAS, so that no copy of the whole pool is made."""

COLUMNS = 1 << 16
"""From this many columns a second thread pays off."""

TOGETHER = 32
"""Receivers of a large network whose inboxes are in the cache together."""

RECEIVERS = 64
"""From this many receivers a second thread pays off."""


def prefers_fused(rows: int) -> bool:
    """Whether the fused kernels are faster for a basis of this many rows.

    >>> prefers_fused(12), prefers_fused(1000)
    (True, False)
    """
    return rows <= FUSED_ROWS


def prefers_tiles(rows: int) -> bool:
    """Whether this processor computes the products of a basis of so many rows faster by tiles than by BLAS."""
    return VECTOR == 64 and not prefers_fused(rows)


def prefers_blocks(pool: Pool, receivers: int, slots: int) -> bool:
    """Whether separate K x K blocks cost less than the full Gram matrix: of all rows, or of the dense ones by BLAS."""
    return isinstance(pool.own, np.ndarray) and blocks_cost_less(pool.size, pool.size - pool.combined, receivers, slots)


def blocks_cost_less(rows: int, dense: int, receivers: int, slots: int) -> bool:
    """The same for a pool of so many rows, the dense ones of which are the basis.

    >>> blocks_cost_less(10, 10, 10, 6), blocks_cost_less(1000, 1000, 1000, 6), blocks_cost_less(80, 80, 1, 80)
    (False, True, False)
    """
    blocks = receivers * slots * slots
    if prefers_fused(dense):
        return 4 * blocks < rows * rows
    return slots < dense and blocks < 2 * dense * dense


def builds_messages(pool: Pool, slots: int) -> bool:
    """Whether to build combinations once: those of so many terms that an inbox has fewer rows."""
    return pool.combination is not None and pool.combination[0].shape[1] > 2 * slots

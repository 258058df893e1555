"""The Gram space of a pool: a centred basis, and the matrix that lifts basis coordinates to pool rows.

Before any product the vectors are centred on c, the mean of the *own* models: near consensus the differences are 1e-5
of the norms and float32 products of the raw vectors would lose them, and no liar can choose this centre. A receiver's
own model that is `FAR` times larger than most (a worker without defence that diverges) is left out of c, because it
would cost all others their precision. With the basis Z (centred rows, each divided by a power of two if it is huge, so
that 1e38 does not overflow) every pool row is

    y_p = c + sum_m lift[p, m] Z_m,

where lift is the identity for dense rows and small and exact (float64) for combinations. One product Z Z^T gives all
inner products, one product coefficients x lift x Z all outputs: cost O(M^2 D) + O(R M D), whatever the rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.compiled import over_parts
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.block_kernels import center_columns
from byzmesh.rules.gram.many_kernels import many_products
from byzmesh.rules.gram.slots import lift_combinations, lifted_inner, lifted_weights, sums_to_one
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Floats

if TYPE_CHECKING:
    from byzmesh.rules.gram.pool import Pool

FAR = 10.0
"""A model whose peak is this many times the median peak of the receivers' own does not count in the centre."""

LARGEST = 1e140
"""Larger scales count as this in distances, so that squares stay finite."""

HUGE = {np.dtype(np.float32): 1e15, np.dtype(np.float64): LARGEST}
"""Rows with a larger number are scaled down before any product."""


class Basis:
    """The centred basis of a pool and the matrix that lifts basis coordinates to pool rows."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        count = len(pool.own)
        empty = pool.own[:0]
        self.messages = empty if pool.messages is None else pool.messages
        self.anchors = empty if pool.anchors is None else pool.anchors
        self.centre_row = pool.combination is not None and not sums_to_one(pool.combination[1])
        self.dense = pool.size - pool.combined
        self.height = self.dense + int(self.centre_row)
        """Rows M of the basis: the dense rows and, if combinations need it, the centre."""
        self.plain = pool.top <= HUGE[pool.dtype]
        """Whether all rows are finite and none is so large that its square could overflow."""
        usual = self.plain and count > 0 and isinstance(pool.own, np.ndarray)
        self.fused = usual and strategy.prefers_fused(self.height) and self._together
        """Whether to use the fused kernels for small pools: few rows, none of them huge."""
        self.tiled = usual and strategy.prefers_tiles(self.height) and self._together
        """Whether to multiply by tiles in registers: more rows, none of them huge."""
        self.streams = self.fused or (usual and count == 1 and self.height == 1 + len(self.messages))
        """Whether to mix by the fused kernel: a single receiver's mixture reads every row once, however many."""

    @cached_property
    def _together(self) -> bool:
        """Whether no receiver's own model is far larger than another, as usual: all then count in the centre c."""
        peak = self.pool.peak[: len(self.pool.own)]
        return bool(peak.max(initial=0.0) <= FAR * peak.min(initial=np.inf))

    @cached_property
    def _peak(self) -> Floats:
        """(M,) peaks of the dense rows."""
        pool, count = self.pool, len(self.pool.own)
        return np.concatenate([pool.peak[:count], pool.peak[count + pool.combined :]])

    @cached_property
    def scale(self) -> Floats:
        """The divisor of each dense row in the basis: 1, or a power of two if it is huge."""
        if self.plain:
            return np.ones(self.dense)
        return np.where(np.isfinite(self._peak), power_of_two(self._peak, self.pool.dtype), 1.0)

    @cached_property
    def factor(self) -> Floats:
        """The factor of each dense row: 1 / scale, or 0 if it is unusable."""
        return np.where(np.isfinite(self._peak), 1.0 / self.scale, 0.0)

    def share(self) -> Floats:
        """(N,) weight of each own row in the centre: equal over the usable ones that are not far larger than most."""
        held = self.factor[: len(self.pool.own)] > 0.0
        if held.any() and not self._together:
            peak = self.pool.peak[: len(held)]
            held &= peak <= FAR * np.median(peak[held])
        return held / max(1, int(held.sum()))

    def chunks(self) -> Iterator[tuple[int, int, Any, Any]]:
        """(start, stop, basis (M, stop - start), centre (stop - start,)) over the columns."""
        own, columns = self.pool.own, self.pool.own.shape[1]
        if not isinstance(own, np.ndarray):
            yield 0, columns, *self._basis_elsewhere
            return
        for start in range(0, columns, strategy.CHUNK):
            stop = min(columns, start + strategy.CHUNK)
            basis = np.empty((self.height, stop - start), own.dtype)
            centre = np.empty(stop - start, own.dtype)
            center_columns(
                own, self.messages, self.anchors, self.share(), self.factor, start, self.centre_row, basis, centre
            )
            yield start, stop, basis, centre

    @cached_property
    def _basis_elsewhere(self) -> tuple[Any, Any]:
        """The basis by array-API operations, for arrays on another device."""
        from array_api_compat import array_namespace

        own = self.pool.own
        xp = array_namespace(own)
        rows = xp.concat([own, self.messages, self.anchors], axis=0)
        factor = from_host(self.factor[:, None], own)
        rows = xp.where(factor > 0, rows, xp.zeros_like(rows))
        centre = (from_host(self.share()[None, :], own) @ rows[: len(own)])[0]
        basis = rows * factor - centre[None, :] * factor
        if self.centre_row:
            basis = xp.concat([basis, centre[None, :]], axis=0)
        return basis, centre

    @cached_property
    def gram(self) -> Floats:
        """(M, M) inner products of the basis rows."""
        total = np.zeros((self.height, self.height))
        if not (self.fused or self.tiled):
            with np.errstate(over="ignore", invalid="ignore"):  # models of diverging workers may overflow
                for _, _, basis, _ in self.chunks():
                    total += to_host(basis @ basis.T)
            return total
        own, messages, anchors = self._contiguous()
        products = centred_products if self.fused else many_products

        def work(part: slice) -> Floats:
            share = np.empty_like(total)
            products(own, messages, anchors, self.centre_row, part.start, part.stop, share)
            return share

        return sum(over_parts(work, own.shape[1], strategy.COLUMNS), total)

    def _contiguous(self) -> tuple[Any, Any, Any]:
        """The dense rows as the fused kernels need them; they are rarely copied."""
        own, messages, anchors = map(np.ascontiguousarray, (self.pool.own, self.messages, self.anchors))
        return own, messages, anchors

    def lift(self, scale: Floats) -> Floats:
        """(P, M) with y_p - c = lift[p] @ basis, for the basis rows' scale."""
        lift = np.zeros((self.pool.size, self.height))
        if self.pool.combination is None:
            np.fill_diagonal(lift, scale)
        else:
            lift_combinations(*self.pool.combination, scale, len(self.pool.own), self.centre_row, lift)
        return lift

    @cached_property
    def plain_lift(self) -> Floats:
        """The lift if no row is huge: all scales are 1."""
        return self.lift(np.ones(self.dense))

    def inner(self) -> Floats:
        """(P, P) inner products of the centred pool rows; zero where a row is unusable."""
        if self.plain and self.pool.combination is None:
            return self.gram
        if not self.fused:
            lift = self.plain_lift if self.plain else self.lift(np.minimum(self.scale, LARGEST))
            with np.errstate(over="ignore", invalid="ignore"):
                product: Floats = lift @ self.gram @ lift.T
            return product
        inner = np.empty((self.pool.size, self.pool.size))
        lifted_inner(self.plain_lift, self.gram, np.empty(self.plain_lift.shape), inner)
        return inner

    def mix(self, matrix: Floats, out: Any = None) -> Any:
        """(R, D) sum_p matrix[r, p] y_p for a matrix (R, P) over the pool; written to `out` if it is given."""
        own = self.pool.own
        if out is None and isinstance(own, np.ndarray):
            out = np.empty((len(matrix), own.shape[1]), own.dtype)
        total = matrix.sum(axis=1)
        if self.fused and self.pool.combination is not None:
            narrow = np.empty((len(matrix), self.height))
            lifted_weights(matrix, self.plain_lift, narrow)
            matrix = narrow
        elif not (self.plain and self.pool.combination is None):
            matrix = matrix @ (self.plain_lift if self.plain else self.lift(self.scale))
        if self.streams:
            if self.centre_row:
                total = total + matrix[:, -1]
            weights, sums = matrix.astype(own.dtype, copy=False), total.astype(own.dtype, copy=False)

            rows = self._contiguous()

            def work(part: slice) -> None:
                centred_mix(*rows, weights, sums, part.start, part.stop, out)

            over_parts(work, own.shape[1], strategy.COLUMNS)
            return out
        weights, sums = from_host(matrix, own), from_host(total[:, None], own)
        for start, stop, basis, centre in self.chunks():
            mixed = weights @ basis + sums * centre
            if not isinstance(own, np.ndarray):
                return mixed
            out[:, start:stop] = mixed
        return out


def power_of_two(peak: Floats, dtype: np.dtype[Any]) -> Floats:
    """Per row 1, or the power of two above its peak where squares of it could overflow."""
    return np.where(peak > HUGE[dtype], np.exp2(np.minimum(np.ceil(np.log2(np.maximum(peak, 1.0))), 1023.0)), 1.0)

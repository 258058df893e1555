"""The Gram space: distances between all vectors of a round, and the way back from coefficients to models.

A pool holds every vector of a round once. Rows are numbered

    0 .. N-1              own models (of the receivers, in the simulator: all honest models)
    N .. N+Q-1            received messages: dense (Q, D), or `Combination`s of own models that are never built
    N+Q .. N+Q+A-1        anchors (points outside the inbox, e.g. centred clipping's memory)

Before any product the vectors are centred on c, the mean of the *own* models: near consensus the differences are 1e-5
of the norms and float32 products of the raw vectors would lose them, and no liar chooses the centre. With the basis Z
(centred rows, each divided by a power of two where it is huge, so that 1e38 does not overflow) every pool row is

    y_p = c + sum_m lift[p, m] Z_m,

where lift is the identity for dense rows and small and exact (float64) for combinations. One product Z Z^T gives all
inner products, one product coefficients x lift x Z all outputs: cost O(M^2 D) + O(R M D), whatever the rule.

On large sparse networks the full Gram matrix would be mostly unused; there each receiver's K x K block is computed by
itself, O(R K^2 D). Columns are processed in chunks, so nothing of the size of the pool is ever copied for large D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import over_parts
from byzmesh.rules.kernels import (
    center_columns,
    centred_mix,
    centred_products,
    combination_peaks,
    gather_blocks,
    lift_combinations,
    mix_rows,
    neighbourhood_products,
    peak_bits,
    scatter,
    sums_to_one,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

CHUNK = 8192
"""Columns centred and multiplied at a time by BLAS: nothing of the size of the pool is copied."""

SMALL = 40
"""Up to this many rows our own fused kernels beat BLAS, which is made for square products."""

COLUMNS, RECEIVERS = 1 << 16, 64
"""Columns or receivers for which a second thread pays."""

_HUGE = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e140}
_CAP = 1e140
_TIE = {np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-12}


def tie_tolerance(dtype: Any) -> float:
    """Relative difference of squared distances that rounding alone can make."""
    return _TIE[np.dtype(dtype)]


def peaks(rows: Any) -> Floats:
    """(P,) largest absolute value of each row; infinity where a row holds NaN or infinity.

    >>> peaks(np.array([[1.0, -3.0], [np.nan, 0.0]]))
    array([ 3., inf])
    """
    if not isinstance(rows, np.ndarray):
        return _peaks_elsewhere(rows)
    rows = np.ascontiguousarray(rows)
    integer = np.dtype(f"i{rows.itemsize}").type
    top = peak_bits(rows.view(integer), integer(np.iinfo(integer).max)).view(rows.dtype).astype(np.float64)
    return np.where(np.isnan(top), np.inf, top)


def _peaks_elsewhere(rows: Any) -> Floats:
    from array_api_compat import array_namespace

    xp = array_namespace(rows)
    if rows.shape[0] == 0:
        return np.zeros(0)
    top = to_host(xp.max(xp.abs(rows), axis=1)).astype(np.float64)
    return np.where(np.isfinite(top), top, np.inf)


def to_host(array: Any) -> npt.NDArray[Any]:
    """Any array as NumPy."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        array = array.detach().cpu()
    return np.asarray(array)


@dataclass(frozen=True)
class Pool:
    """All vectors of a round; see the module's docstring for the numbering.

    own          (N, D)
    messages     (Q, D) or None
    combination  (index (Q, J), coefficient (Q, J)): message q = sum_j coefficient[q, j] * own[index[q, j]], or None

    >>> pool = Pool(np.eye(2), messages=np.array([[3.0, 3.0]]))
    >>> pool.inner[2, 2] - 2 * pool.inner[2, 0] + pool.inner[0, 0]    # ||(3, 3) - (1, 0)||^2
    13.0
    """

    own: Any
    messages: Any = None
    combination: tuple[Integers, Floats] | None = None
    anchors: Any = None

    @property
    def size(self) -> int:
        """Number of rows P."""
        return len(self.own) + self.messages_count + (0 if self.anchors is None else len(self.anchors))

    @property
    def messages_count(self) -> int:
        """Number of message rows Q."""
        if self.combination is not None:
            return len(self.combination[0])
        return 0 if self.messages is None else len(self.messages)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the vectors."""
        return np.dtype(str(self.own.dtype).rsplit(".", 1)[-1])

    @cached_property
    def peak(self) -> Floats:
        """(P,) largest absolute value of each row, infinity if it is not finite; for combinations an upper bound."""
        parts = [peaks(self.own)]
        if self.combination is not None:
            parts.append(combination_peaks(*self.combination, parts[0]))
        elif self.messages is not None:
            parts.append(peaks(self.messages))
        if self.anchors is not None:
            parts.append(peaks(self.anchors))
        return np.concatenate(parts)

    @cached_property
    def top(self) -> float:
        """Largest absolute value of all, infinity if any row is not finite."""
        return float(self.peak.max(initial=0.0))

    @cached_property
    def usable(self) -> Booleans:
        """(P,) whether the row is finite."""
        finite: Booleans = np.isfinite(self.peak)
        return finite

    def with_anchors(self, anchors: Any) -> Pool:
        """The same pool with anchor rows at its end."""
        return Pool(self.own, self.messages, self.combination, anchors)

    def dense_messages(self) -> Any:
        """(Q, D) the messages as vectors."""
        if self.combination is None:
            return self.own[:0] if self.messages is None else self.messages
        index, coefficient = self.combination
        if isinstance(self.own, np.ndarray):
            out = np.empty((len(index), self.own.shape[1]), self.own.dtype)
            none = self.own[:0]
            mix_rows(self.own, none, none, index, coefficient, False, out)
            return out
        matrix = np.zeros((len(index), len(self.own)))
        scatter(index, coefficient, matrix)
        return from_host(matrix, self.own) @ self.own

    def rows(self) -> Any:
        """(P, D) every row as a vector, in pool numbering."""
        parts = [self.own, self.dense_messages()]
        if self.anchors is not None:
            parts.append(self.anchors)
        if isinstance(self.own, np.ndarray):
            return np.concatenate(parts)
        from array_api_compat import array_namespace

        return array_namespace(self.own).concat(parts, axis=0)

    @cached_property
    def frame(self) -> Frame:
        """Basis and lift of the full Gram matrix."""
        return Frame(self)

    @cached_property
    def inner(self) -> Floats:
        """(P, P) inner products of the centred rows; zero where a row is not usable."""
        return self.frame.inner()

    def prefers_blocks(self, receivers: int, slots: int) -> bool:
        """Whether separate K x K blocks cost less than the full Gram matrix."""
        return isinstance(self.own, np.ndarray) and receivers * slots * slots * 4 < self.size * self.size


def from_host(array: npt.NDArray[Any], like: Any) -> Any:
    """A NumPy array in the type, dtype and device of another array."""
    if isinstance(like, np.ndarray):
        return array.astype(like.dtype, copy=False)
    from array_api_compat import array_namespace, device

    return array_namespace(like).asarray(array, dtype=like.dtype, device=device(like))


class Frame:
    """The centred basis of a pool and the matrix that lifts basis coordinates to pool rows."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        count = len(pool.own)
        empty = pool.own[:0]
        combined = 0 if pool.combination is None else pool.messages_count
        self.messages = empty if combined or pool.messages is None else pool.messages
        self.anchors = empty if pool.anchors is None else pool.anchors
        self.centre_row = pool.combination is not None and not sums_to_one(pool.combination[1])
        self.dense = pool.size - combined
        self.height = self.dense + int(self.centre_row)
        """Rows M of the basis: the dense rows and, if combinations need it, the centre."""
        self.plain = pool.top <= _HUGE[pool.dtype]
        """Whether all rows are finite and none is so large that its square could overflow."""
        self.small = self.plain and self.height <= SMALL and isinstance(pool.own, np.ndarray) and count > 0

    @cached_property
    def _peak(self) -> Floats:
        """(M,) peaks of the dense rows."""
        pool, count = self.pool, len(self.pool.own)
        combined = pool.size - self.dense
        return np.concatenate([pool.peak[:count], pool.peak[count + combined :]])

    @cached_property
    def scale(self) -> Floats:
        """What each dense row is divided by in the basis: 1, or a power of two if it is huge."""
        if self.plain:
            return np.ones(self.dense)
        return np.where(np.isfinite(self._peak), power_of_two(self._peak, self.pool.dtype), 1.0)

    @cached_property
    def factor(self) -> Floats:
        """What each dense row is multiplied by: 1 / scale, or 0 if it is not usable."""
        return np.where(np.isfinite(self._peak), 1.0 / self.scale, 0.0)

    def share(self) -> Floats:
        """(N,) weight of each own row in the centre: equal over the usable ones."""
        held = self.factor[: len(self.pool.own)] > 0.0
        return held / max(1, int(held.sum()))

    def chunks(self) -> Iterator[tuple[int, int, Any, Any]]:
        """(start, stop, basis (M, stop - start), centre (stop - start,)) over the columns."""
        own, columns = self.pool.own, self.pool.own.shape[1]
        if not isinstance(own, np.ndarray):
            yield 0, columns, *self._basis_elsewhere
            return
        for start in range(0, columns, CHUNK):
            stop = min(columns, start + CHUNK)
            basis = np.empty((self.height, stop - start), own.dtype)
            centre = np.empty(stop - start, own.dtype)
            center_columns(
                own, self.messages, self.anchors, self.share(), self.factor, start, self.centre_row, basis, centre
            )
            yield start, stop, basis, centre

    @cached_property
    def _basis_elsewhere(self) -> tuple[Any, Any]:
        """The basis by array-API operations, for arrays that are not in this machine's memory."""
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
        if not self.small:
            for _, _, basis, _ in self.chunks():
                total += to_host(basis @ basis.T)
            return total
        own, messages, anchors = self.pool.own, self.messages, self.anchors

        def work(part: slice) -> Floats:
            share = np.empty_like(total)
            centred_products(own, messages, anchors, self.centre_row, part.start, part.stop, share)
            return share

        return sum(over_parts(work, own.shape[1], COLUMNS), total)

    def lift(self, scale: Floats) -> Floats:
        """(P, M) with y_p - c = lift[p] @ basis, for the basis rows' scale."""
        lift = np.zeros((self.pool.size, self.height))
        if self.pool.combination is None:
            np.fill_diagonal(lift, scale)
        else:
            lift_combinations(*self.pool.combination, scale, len(self.pool.own), self.centre_row, lift)
        return lift

    def inner(self) -> Floats:
        """(P, P) inner products of the centred pool rows; zero where a row is not usable."""
        if self.plain and self.pool.combination is None:
            return self.gram
        lift = self.lift(np.minimum(self.scale, _CAP))
        product: Floats = lift @ self.gram @ lift.T
        return product

    def mix(self, matrix: Floats) -> Any:
        """(R, D) sum_p matrix[r, p] y_p for a matrix (R, P) over the pool."""
        own = self.pool.own
        total = matrix.sum(axis=1)
        if not (self.plain and self.pool.combination is None):
            matrix = matrix @ self.lift(self.scale)
        if self.small:
            if self.centre_row:
                total = total + matrix[:, -1]
            out = np.empty((len(matrix), own.shape[1]), own.dtype)
            weights, sums = matrix.astype(own.dtype, copy=False), total.astype(own.dtype, copy=False)

            def work(part: slice) -> None:
                centred_mix(own, self.messages, self.anchors, weights, sums, part.start, part.stop, out)

            over_parts(work, own.shape[1], COLUMNS)
            return out
        weights, sums = from_host(matrix, own), from_host(total[:, None], own)
        parts = [weights @ basis + sums * centre for _, _, basis, centre in self.chunks()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def power_of_two(peak: Floats, dtype: np.dtype[Any]) -> Floats:
    """Per row 1, or the power of two above its peak where squares of it could overflow."""
    return np.where(peak > _HUGE[dtype], np.exp2(np.minimum(np.ceil(np.log2(np.maximum(peak, 1.0))), 1023.0)), 1.0)


def inner_blocks(pool: Pool, index: Integers, present: Booleans) -> Floats:
    """(R, K, K) inner products <y_i - own, y_j - own> of each receiver's slots; zero where a slot is absent."""
    receivers, slots = index.shape
    out = np.empty((receivers, slots, slots))
    if not pool.prefers_blocks(receivers, slots):
        gather_blocks(pool.inner, index, present, out)
        return out
    anchors = pool.own[:0] if pool.anchors is None else pool.anchors
    scale = np.where(pool.usable, power_of_two(pool.peak, pool.dtype), 1.0)
    messages, factor, capped = pool.dense_messages(), 1.0 / scale, np.minimum(scale, _CAP)

    def work(part: slice) -> None:
        neighbourhood_products(pool.own, messages, anchors, index[part], present[part], factor, capped, out[part])

    over_parts(work, receivers, RECEIVERS)
    return out


def mix(pool: Pool, index: Integers, coefficient: Floats) -> Any:
    """(R, D) sum_k coefficient[r, k] * y_{index[r, k]}: from coefficients to models."""
    receivers, slots = index.shape
    if pool.prefers_blocks(receivers, slots):
        out = np.empty((receivers, pool.own.shape[1]), pool.own.dtype)
        anchors = pool.own[:0] if pool.anchors is None else pool.anchors
        messages = pool.dense_messages()

        def work(part: slice) -> None:
            mix_rows(pool.own, messages, anchors, index[part], coefficient[part], True, out[part])

        over_parts(work, receivers, RECEIVERS)
        return out
    matrix = np.zeros((receivers, pool.size))
    scatter(index, coefficient, matrix)
    return pool.frame.mix(matrix)

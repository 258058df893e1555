"""The pool: every vector of a round, once. Rows are numbered

0 .. N-1              the receivers' own models (in the simulator: all honest models)
N .. N+C-1            messages that are combinations of own models and never built
N+C .. N+C+Q-1        other messages, dense (Q, D)
N+C+Q .. N+C+Q+A-1    anchors (points outside the inbox, e.g. centred clipping's memory)
"""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.compiled import over_parts
from byzmesh.rules.gram.basis import Basis
from byzmesh.rules.gram.block_kernels import build_messages, row_peaks
from byzmesh.rules.gram.slots import combination_peaks, scatter
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Booleans, Floats, Integers

PARALLEL = 64
"""From this many rows a second thread pays off."""


def peaks(rows: Any) -> Floats:
    """(P,) largest absolute value of each row; infinity if a row contains NaN or infinity.

    >>> peaks(np.array([[1.0, -3.0], [np.nan, 0.0]]))
    array([ 3., inf])
    """
    if not isinstance(rows, np.ndarray):
        return _peaks_elsewhere(rows)
    rows, out = np.ascontiguousarray(rows), np.empty(len(rows))
    if len(rows) < PARALLEL:
        row_peaks(rows, out)
        return out
    over_parts(lambda part: row_peaks(rows[part], out[part]), len(rows), PARALLEL)
    return out


def _peaks_elsewhere(rows: Any) -> Floats:
    from array_api_compat import array_namespace

    xp = array_namespace(rows)
    if rows.shape[0] == 0:
        return np.zeros(0)
    top = to_host(xp.max(xp.abs(rows), axis=1)).astype(np.float64)
    return np.where(np.isfinite(top), top, np.inf)


def stacked(*parts: Any) -> Any:
    """The rows of arrays of one kind, one after the other.

    >>> stacked(np.zeros((1, 2)), np.ones((1, 2)))
    array([[0., 0.],
           [1., 1.]])
    """
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from array_api_compat import array_namespace

    return array_namespace(parts[0]).concat(parts, axis=0)


@dataclass(frozen=True)
class Pool:
    """All vectors of a round; see the module's docstring for the numbering.

    own          (N, D)
    messages     (Q, D) or None
    combination  (index (C, J), coefficient (C, J)): message c = sum_j coefficient[c, j] * own[index[c, j]], or None
    own_peak     (N,) `peaks` of `own` if somebody has them already; message_peak (Q,) those of `messages`

    >>> pool = Pool(np.eye(2), messages=np.array([[3.0, 3.0]]))
    >>> float(pool.inner[2, 2] - 2 * pool.inner[2, 0] + pool.inner[0, 0])    # ||(3, 3) - (1, 0)||^2
    13.0
    """

    own: Any
    messages: Any = None
    combination: tuple[Integers, Floats] | None = None
    _: KW_ONLY
    anchors: Any = None
    own_peak: Floats | None = None
    message_peak: Floats | None = None

    @property
    def size(self) -> int:
        """Number of rows P."""
        return self.combined + sum(len(rows) for rows in (self.own, self.messages, self.anchors) if rows is not None)

    @property
    def combined(self) -> int:
        """Number of messages C that are combinations."""
        return 0 if self.combination is None else len(self.combination[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the vectors."""
        if isinstance(self.own, np.ndarray):
            held: np.dtype[Any] = self.own.dtype
            return held
        return np.dtype(str(self.own.dtype).rsplit(".", 1)[-1])

    @cached_property
    def peak(self) -> Floats:
        """(P,) largest absolute value of each row, infinity if it is not finite; for combinations an upper bound."""
        parts = [peaks(self.own) if self.own_peak is None else self.own_peak]
        if self.combination is not None:
            parts.append(combination_peaks(*self.combination, parts[0]))
        if self.messages is not None:
            parts.append(peaks(self.messages) if self.message_peak is None else self.message_peak)
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
        """The same pool with anchor rows at the end."""
        known = {"own_peak": self.own_peak, "message_peak": self.message_peak}
        return Pool(self.own, self.messages, self.combination, anchors=anchors, **known)

    def dense_messages(self) -> Any:
        """(C + Q, D) the messages as vectors."""
        if self.combination is None:
            return self.own[:0] if self.messages is None else self.messages
        built = self.built()
        return built if self.messages is None else stacked(built, self.messages)

    def built(self) -> Any:
        """(C, D) the combinations as vectors."""
        if self.combination is None:
            return self.own[:0]
        index, coefficient = self.combination
        if isinstance(self.own, np.ndarray):
            out = np.empty((len(index), self.own.shape[1]), self.own.dtype)
            own = np.ascontiguousarray(self.own)
            over_parts(
                lambda part: build_messages(own, index[part], coefficient[part], out[part]), len(index), PARALLEL
            )
            return out
        matrix = np.zeros((len(index), len(self.own)))
        scatter(index, coefficient, matrix)
        return from_host(matrix, self.own) @ self.own

    def rows(self) -> Any:
        """(P, D) every row as a vector, in pool numbering."""
        parts = [self.own, self.dense_messages()]
        if self.anchors is not None:
            parts.append(self.anchors)
        return stacked(*parts)

    @cached_property
    def basis(self) -> Basis:
        """The centred basis of the rows, from which the full Gram matrix and all mixtures come."""
        # made of a twin: a pool and a basis that refer to each other would live until the cyclic collector runs, and
        # with them the vectors of every round since
        _ = self.top
        return Basis(copy(self))

    @cached_property
    def inner(self) -> Floats:
        """(P, P) inner products of the centred rows; zero where a row is unusable."""
        return self.basis.inner()

"""n vectors to one: ByzFL's aggregators, and rules of ours that it does not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.checks import at_least, require, whole
from byzmesh.errors import ConfigError
from byzmesh.integrations.byzfl.vectors import back, rows_of
from byzmesh.integrations.server import ServerRule
from byzmesh.rules.aggregate import aggregate
from byzmesh.rules.base import Block, Rule, normalised
from byzmesh.rules.clipping import clip_towards
from byzmesh.rules.coordinate import rank_rule
from byzmesh.rules.feasible import BELOW_HALF_OF_ALL
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.interop import to_host
from byzmesh.rules.krum import krum_scores
from byzmesh.rules.nearest import pick_least
from byzmesh.types import Array, Floats


class _Aggregator:
    """n vectors to one by a rule on a server; subclasses name the rule."""

    def __init__(self, f: int = 0) -> None:
        self.f = whole(f"{type(self).__name__}: f", f, 0)

    def _rule(self) -> str | Rule:
        return type(self).__name__

    def _combine(self, rule: str | Rule, rows: Array, centre: Array | None = None) -> Array:
        """The rule's result; the vectors are seen from `centre`, by default their coordinate-wise median."""
        name = type(self).__name__
        require(2 * self.f < len(rows), f"{name}: f must be less than half of the {len(rows)} vectors, got {self.f}")
        good = rows[np.isfinite(rows).all(axis=1)]
        require(len(good) > 0, f"{name}: none of the {len(rows)} vectors is finite")
        f = max(0, self.f - (len(rows) - len(good)))
        if centre is None:
            centre = aggregate("coomed", good[0], good[1:])
        combine = ServerRule(rule, f)
        combine.check(len(good))
        found = combine(centre, good)
        if found is None:
            raise ConfigError(f"{name}: {len(good)} finite vectors are too few for f = {f}; use a smaller f")
        return found

    def __call__(self, vectors: Any) -> Any:
        """(D,) the aggregate of n vectors."""
        rows, like = rows_of(vectors)
        return back(self._combine(self._rule(), rows), like)


class Average(_Aggregator):
    """The mean of the vectors.

    >>> Average()(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([2., 3.])
    """

    def __init__(self) -> None:
        super().__init__(0)

    def _rule(self) -> str:
        return "mean"


class Median(Average):
    """The median of each coordinate.

    >>> Median()(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.5])
    """

    def _rule(self) -> str:
        return "coomed"


class TrMean(_Aggregator):
    """Per coordinate the mean without the f smallest and the f largest of the n values.

    >>> TrMean(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.5])
    """

    def _rule(self) -> Rule:
        return rank_rule("TrMean", lambda values, f: (f, values - f), feasible=BELOW_HALF_OF_ALL, symmetric=True)


class Krum(_Aggregator):
    """The vector with the smallest sum of squared distances to its n - f nearest, itself included.

    >>> Krum(1)(np.array([[1.0], [2.0], [2.5], [90.0]]))
    array([2.])
    """

    def _rule(self) -> Rule:
        return gram_rule(type(self).__name__, self._coefficients, feasible=BELOW_HALF_OF_ALL, symmetric=True)

    def _coefficients(self, block: Block) -> Floats:
        # our scores take the S - f - 2 nearest others, ByzFL's the n - f - 1 nearest
        scores = krum_scores(block.distance2, block.present, block.f - 1)
        return normalised(pick_least(scores, self._picks(block), block.tie))

    def _picks(self, block: Block) -> Any:
        return np.ones(len(block.f), np.int64)


class MultiKrum(Krum):
    """The mean of the n - f vectors with the smallest scores of `Krum`.

    >>> MultiKrum(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """

    def _picks(self, block: Block) -> Any:
        return block.present.sum(axis=1) - block.f


class GeometricMedian(_Aggregator):
    """T steps of the smoothed Weiszfeld iteration from 0: z <- sum_i b_i x_i / sum_i b_i, b_i = 1 / max(nu, |x_i - z|).

    >>> GeometricMedian()(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])).round(4)
    array([3.7879, 4.7879, 5.7879])
    """

    def __init__(self, nu: float = 0.1, T: int = 3) -> None:
        super().__init__(0)
        self.nu = at_least("GeometricMedian: nu", nu, 0.0)
        self.T = whole("GeometricMedian: T", T, 0)

    def __call__(self, vectors: Any) -> Any:
        """(D,) the aggregate of n vectors."""
        rows, like = rows_of(vectors)
        return back(self._combine(gram_rule("GeometricMedian", self._steps), rows, np.zeros_like(rows[0])), like)

    def _steps(self, block: Block) -> Floats:
        share = np.zeros(block.weight.shape)
        share[:, 0] = 1.0  # slot 0 is where the iteration starts; it has no vote
        for _ in range(self.T):
            lean = np.einsum("rij,rj->ri", block.inner, share)
            middle = np.einsum("ri,ri->r", share, lean)
            gap2 = np.einsum("rii->ri", block.inner) - 2.0 * lean + middle[:, None]
            pull = 1.0 / np.maximum(np.sqrt(np.maximum(gap2, 0.0)), max(self.nu, 1e-300))
            pull[:, 0] = 0.0
            share = normalised(np.where(block.present, pull, 0.0))
        return share


class CenteredClipping(_Aggregator):
    """L times v <- v + (1/n) sum_i clip(x_i - v, tau), from the previous output (`m`, at first 0).

    >>> clip = CenteredClipping(tau=1.0)
    >>> clip(np.array([[0.5], [90.0]])), clip(np.array([[0.5], [90.0]]))
    (array([0.75]), array([1.125]))
    """

    def __init__(self, m: Any = None, L: int = 1, tau: float = 100.0) -> None:
        super().__init__(0)
        self.m = m
        self.L = whole("CenteredClipping: L", L, 0)
        self.tau = at_least("CenteredClipping: tau", tau, 0.0)

    def __call__(self, vectors: Any) -> Any:
        """(D,) the aggregate of n vectors, remembered for the next call."""
        rows, like = rows_of(vectors)
        start = np.zeros_like(rows[0]) if self.m is None else to_host(self.m).astype(rows.dtype)
        self.m = back(self._combine(gram_rule("CenteredClipping", self._clip, uses_weights=True), rows, start), like)
        return self.m

    def _clip(self, block: Block) -> Floats:
        start = np.zeros(block.weight.shape)
        start[:, 0] = 1.0
        return clip_towards(block.inner, start, block.weight, self.tau, self.L)


class MDA(_Aggregator):
    """The mean of the n - f vectors with the smallest diameter (exact search).

    >>> MDA(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """


class MoNNA(_Aggregator):
    """The mean of the n - f vectors nearest to the one at `idx`, which is trusted.

    >>> MoNNA(1, idx=2)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """

    def __init__(self, f: int = 0, idx: int = 0) -> None:
        super().__init__(f)
        self.idx = whole("MoNNA: idx", idx, 0)

    def __call__(self, vectors: Any) -> Any:
        """(D,) the aggregate of n vectors."""
        rows, like = rows_of(vectors)
        require(self.idx < len(rows), f"MoNNA: idx must be less than n = {len(rows)}, got {self.idx}")
        require(2 * self.f < len(rows), f"MoNNA: f must be less than half of the {len(rows)} vectors, got {self.f}")
        others = np.delete(rows, self.idx, axis=0)
        good = others[np.isfinite(others).all(axis=1)]
        f = max(0, self.f - (len(others) - len(good)))
        return back(aggregate("nna", rows[self.idx], good, f=f), like)


class Meamed(_Aggregator):
    """Per coordinate the mean of the n - f values nearest the median.

    >>> Meamed(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """


class CAF(_Aggregator):
    """The covariance-bound agnostic filter; `byzmesh.rules.caf` has the formula.

    >>> CAF(1)(np.array([[1.0], [2.0], [3.0], [90.0]])).round(2)
    array([2.01])
    """


class SMEA(_Aggregator):
    """The mean of the n - f vectors whose largest variance in any direction is smallest (exact search).

    >>> SMEA(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """


class IOS(_Aggregator):
    """f times cut the vector farthest from the mean, then the mean.

    >>> IOS(1)(np.array([[1.0], [2.0], [3.0], [90.0]]))
    array([2.])
    """


class LazyIOS(_Aggregator):
    """IOS, but what is cut counts as the coordinate-wise median."""


class Reprieve(_Aggregator):
    """IOS, then what was cut comes back if it is near; see docs/reprieve.md."""


class Tether(_Aggregator):
    """About IOS's mean, what is far is left out and the rest is shortened; see docs/recommendation.md."""


class Bulyan(_Aggregator):
    """n - 2f vectors by repeated Krum, then the mean of the n - 4f values nearest their median, n >= 4f + 3."""


class Phocas(_Aggregator):
    """Per coordinate the mean of the n - f values nearest the trimmed mean."""

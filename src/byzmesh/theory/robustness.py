"""r-robustness: can a graph split into two camps that ignore each other? It decides what trimmed means tolerate.

A node set S is r-reachable if some node in it has at least r neighbours outside S. A graph is r-robust if among every
two disjoint non-empty sets at least one is r-reachable. With reach(S) = max_{i in S} |N_i without S|,

    r = min over disjoint non-empty S, T of max(reach(S), reach(T)).

(2f + 1)-robustness suffices for trimmed means against f liars in every neighbourhood. Exact for small graphs: reach of
all 2^n sets, then the best subset of every complement by dynamic programming, O(n 2^n). Larger graphs: a mixed-integer
programme by HiGHS. With 0/1 vectors s, t of the sets and the Laplacian L, (L s)_i is |N_i without S| for i in S and at
most 0 elsewhere, so

    minimise r   such that   L s <= r,  L t <= r,  s + t <= 1,  sum s >= 1,  sum t >= 1.

When its time runs out the programme still gives bounds: lower <= r <= upper.
Reference: LeBlanc, Zhang, Koutsoukos and Sundaram 2013; Usevitch and Panagou 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byzmesh.checks import choice
from byzmesh.errors import ConfigError
from byzmesh.types import Booleans

EXHAUSTIVE = 15
"""Graphs of up to this many nodes are decided by checking every set."""


@dataclass(frozen=True)
class Robustness:
    """The largest r for which a graph is r-robust is in [lower, upper]; method is "exhaustive" or "milp"."""

    lower: int
    upper: int
    method: str

    @property
    def exact(self) -> bool:
        """Whether r is known."""
        return self.lower == self.upper

    def bears(self, f: int) -> str:
        """Whether trimmed means tolerate f liars per neighbourhood by (2f + 1)-robustness: "yes", "no" or "unknown".

        >>> Robustness(3, 5, "milp").bears(1), Robustness(3, 5, "milp").bears(2)
        ('yes', 'unknown')
        """
        if self.lower >= 2 * f + 1:
            return "yes"
        return "no" if self.upper < 2 * f + 1 else "unknown"


def robustness(adjacency: Booleans, *, seconds: float = 30.0, method: str | None = None) -> Robustness:
    """r-robustness of a graph (n, n); `seconds` limits the programme for graphs of more than 15 nodes.

    >>> from byzmesh.networks import network
    >>> robustness(network("complete", n=7).adjacency)
    Robustness(lower=4, upper=4, method='exhaustive')
    """
    n = len(adjacency)
    if n < 2:
        raise ConfigError(f"r-robustness needs at least 2 nodes, got {n}")
    chosen = choice("method", method or ("exhaustive" if n <= EXHAUSTIVE else "milp"), ("exhaustive", "milp"))
    if chosen == "exhaustive":
        if n > 20:
            raise ConfigError(f"method 'exhaustive' is for up to 20 nodes, got {n}; use 'milp'")
        exact = _every_set(adjacency)
        return Robustness(exact, exact, chosen)
    lower, upper = _programme(adjacency, seconds)
    return Robustness(lower, upper, chosen)


def _every_set(adjacency: Booleans) -> int:
    n = len(adjacency)
    sets = np.arange(1 << n, dtype=np.int64)
    reach = np.zeros(1 << n, np.int64)
    for node in range(n):
        outside = np.zeros(1 << n, np.int64)
        for neighbour in np.flatnonzero(adjacency[node]).tolist():
            outside += 1 - (sets >> neighbour & 1)
        reach = np.where(sets >> node & 1, np.maximum(reach, outside), reach)
    reach[0] = n  # the empty set is no camp
    best = reach.copy()
    for node in range(n):
        # best[S] becomes the smallest reach over the subsets of S that differ from it in nodes up to this one.
        view = best.reshape(-1, 2, 1 << node)
        np.minimum(view[:, 1], view[:, 0], out=view[:, 1])
    return int(np.maximum(reach, best[::-1]).min())  # the complement of set number k is number 2^n - 1 - k


def _programme(adjacency: Booleans, seconds: float) -> tuple[int, int]:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import bmat, csr_array, eye_array

    n = len(adjacency)
    highest = (n + 1) // 2  # no graph of n nodes is more robust
    laplacian = csr_array(np.diag(adjacency.sum(axis=1)) - adjacency.astype(np.float64))
    minus = csr_array(-np.ones((n, 1)))
    ones, none = csr_array(np.ones((1, n))), csr_array((1, n))
    zero = csr_array((n, 1))
    one = csr_array((1, 1))
    rows = bmat(
        [
            [laplacian, None, minus],
            [None, laplacian, minus],
            [eye_array(n), eye_array(n), zero],
            [-ones, none, one],
            [none, -ones, one],
        ],
        format="csr",
    )
    upper = np.concatenate([np.zeros(2 * n), np.ones(n), [-1.0, -1.0]])
    cost = np.zeros(2 * n + 1)
    cost[-1] = 1.0
    limit = np.ones(2 * n + 1)
    limit[-1] = highest
    result = milp(
        cost,
        constraints=LinearConstraint(rows, -np.inf, upper),
        integrality=np.ones(2 * n + 1),
        bounds=Bounds(np.zeros(2 * n + 1), limit),
        options={"time_limit": float(seconds)},
    )
    reached = highest if result.x is None else round(float(result.fun))
    proved = getattr(result, "mip_dual_bound", None)
    floor = 0 if proved is None or not np.isfinite(proved) else max(0, math.ceil(proved - 1e-6))
    return (reached, reached) if result.status == 0 else (min(floor, reached), reached)

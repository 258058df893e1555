"""f, the bound on lying neighbours, as users write it: one number, one per worker, `exact` or `max`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.checks import is_whole
from byzmesh.errors import ConfigError, nearest
from byzmesh.types import Integers


def resolve_bounds(f: Any, honest: Integers, lying_neighbours: Integers, n: int) -> Integers:
    """(N,) one bound per honest worker.

    f is a whole number >= 0 for all, a sequence of N (one per honest worker) or n (one per node) of them, a mapping
    from node id, "exact" (each worker's true count) or "max" (the largest true count, for all).

    >>> honest, lying = np.array([0, 2, 3]), np.array([1, 0, 1])
    >>> resolve_bounds("exact", honest, lying, 4), resolve_bounds([5, 6, 7, 8], honest, lying, 4)
    (array([1, 0, 1]), array([5, 7, 8]))
    """
    if isinstance(f, str):
        if f == "exact":
            return lying_neighbours.copy()
        if f == "max":
            return np.full(len(honest), lying_neighbours.max(), np.int64)
        raise ConfigError(f"f must be a whole number, one per worker, 'exact' or 'max', got {f!r}: {_hint(f)}")
    if isinstance(f, Mapping):
        return _from_mapping(f, honest, n)
    try:
        given = np.asarray(f)
    except ValueError:
        raise ConfigError(f"f must be one whole number per worker, got {f!r}") from None
    if given.dtype.kind not in "iu":
        raise ConfigError(f"f must be a whole number of at least 0, or one per worker, got {f!r}")
    if given.ndim == 0:
        chosen = np.full(len(honest), given, np.int64)
    elif given.shape == (len(honest),):
        chosen = given.astype(np.int64)
    elif given.shape == (n,):
        chosen = given[honest].astype(np.int64)
    else:
        raise ConfigError(
            f"f must give one bound for each of the {len(honest)} honest workers or {n} nodes, got shape {given.shape}"
        )
    return _not_negative(chosen, honest)


def _from_mapping(f: Mapping[Any, Any], honest: Integers, n: int) -> Integers:
    for node in f:
        if not is_whole(node) or not 0 <= node < n:
            raise ConfigError(f"f names node {node!r}, but nodes are numbered 0 to {n - 1}")
    missing = [worker for worker in honest.tolist() if worker not in f]
    if missing:
        raise ConfigError(f"f must name every honest worker; add worker {missing[0]}")
    chosen = np.asarray([f[worker] for worker in honest.tolist()])
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise ConfigError(f"f must map node ids to whole numbers, got {dict(f)!r}")
    return _not_negative(chosen.astype(np.int64), honest)


def _not_negative(chosen: Integers, honest: Integers) -> Integers:
    negative = np.flatnonzero(chosen < 0)
    if len(negative):
        raise ConfigError(f"f must be at least 0, got {chosen[negative[0]]} for worker {honest[negative[0]]}")
    return chosen


def _hint(word: str) -> str:
    return nearest(word, ["exact", "max"])

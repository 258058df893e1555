"""Who lies: a list, a number placed at random, or none."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from byzmesh.checks import is_whole
from byzmesh.errors import ConfigError
from byzmesh.types import Integers


def place(byzantine: Any, n: int, seed: int = 0) -> Integers:
    """(B,) ids of the liars among n nodes, ascending.

    `byzantine` is "none", ids, or how many; in the last case `seed` draws them, every set of that size equally likely.

    >>> place([3, 1], 5), place("none", 5), place(2, 5, seed=1)
    (array([1, 3]), array([], dtype=int64), array([0, 2]))
    """
    if isinstance(byzantine, str):
        if byzantine != "none":
            raise ConfigError(f"byzantine must be 'none', a list of node ids or a number of liars, got {byzantine!r}")
        return np.zeros(0, np.int64)
    if is_whole(byzantine):
        liars = _drawn(int(byzantine), n, seed)
    elif isinstance(byzantine, Iterable):
        liars = _listed(list(byzantine), n)
    else:
        raise ConfigError(f"byzantine must be 'none', a list of node ids or a number of liars, got {byzantine!r}")
    if len(liars) == n:
        raise ConfigError(f"byzantine names all {n} nodes; at least one worker must be honest")
    return liars


def _drawn(count: int, n: int, seed: int) -> Integers:
    if not 0 <= count < n:
        raise ConfigError(f"byzantine must be a number from 0 to {n - 1} on {n} nodes, got {count}")
    if not is_whole(seed):
        raise ConfigError(f"seed must be a whole number, got {seed!r}")
    # Python promises that random() gives the same numbers for a seed forever, but not sample() or shuffle().
    draw = random.Random(f"byzantine placement {int(seed)}")
    order = np.argsort([draw.random() for _ in range(n)], kind="stable")
    return np.sort(order[:count]).astype(np.int64)


def _listed(ids: list[Any], n: int) -> Integers:
    for node in ids:
        if not is_whole(node) or not 0 <= node < n:
            raise ConfigError(f"byzantine names node {node!r}, but nodes are numbered 0 to {n - 1}")
    liars = np.unique(np.asarray(ids, np.int64))
    if len(liars) < len(ids):
        raise ConfigError(f"byzantine names a node twice: {ids!r}; list every liar once")
    return liars

"""The bound on lying neighbours as users write it: f, how many they are, or b, how much they weigh.

    f: 2, one per worker, a mapping   as counted by the user
    f: exact, max                     as counted on the network: for simulations, where it is known who lies
    f: tolerable                      the largest f that a worker's weights allow, h < 1/3 (Theorem 3)
    b: 0.25                           the lies weigh at most this; written f: {weight: 0.25} in a canonical config

The last two follow from the weights. They count at most d - 1 of d neighbours, and no more than the rule allows: where
that is less than the weights say, where lies may weigh half, or where nothing is tolerable, a `WeakBound` warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byzmesh.checks import is_number, is_whole
from byzmesh.errors import ConfigError, WeakBound, nearest
from byzmesh.heaviest import THIRD, most_below, most_within
from byzmesh.networks.layout import Layout
from byzmesh.types import Booleans, Floats, Integers

WORDS = ("exact", "max", "tolerable")
WEIGHT = "weight"
"""The key of a bound on the weight of the lies."""


FEW = 4
"""Most workers that a warning names."""
OTHERWISE = "give them more neighbours, take another rule, or give "
"""The ways out where the rule or the graph is too weak."""


def unlimited(neighbours: int) -> int:
    """`largest` of no rule in particular, and of those that do not use f: more than there are neighbours."""
    return neighbours + 1


def weight_bounds(f: Any, workers: int) -> Floats | None:
    """(N,) what the lying neighbours of each worker weigh at most; None if `f` counts them.

    >>> weight_bounds({"weight": 0.25}, 2), weight_bounds("exact", 2)
    (array([0.25, 0.25]), None)
    """
    if not isinstance(f, Mapping) or WEIGHT not in f:
        return None
    given = f[WEIGHT]
    each = given if isinstance(given, (list, tuple, np.ndarray)) else [given] * workers
    if len(f) > 1 or len(each) != workers or not all(is_number(b) and 0.0 <= b < 1.0 for b in each):
        raise ConfigError(
            f"b must be a weight of at least 0 and below 1, or one per honest worker ({workers}), got {given!r}"
        )
    return np.asarray(each, np.float64)


def by_weight(f: Any, layout: Layout, largest: Callable[[int], int]) -> Integers | None:
    """(N,) the bounds that follow from the weights; None if `f` does not ask for them.

    largest  neighbours -> the largest f that the rule allows; more than there are if it does not use f

    >>> from byzmesh.networks import network
    >>> layout = network("complete", n=7).layout
    >>> by_weight("tolerable", layout, lambda d: d)[0], by_weight({"weight": 0.45}, layout, lambda d: d)[0]
    (np.int64(2), np.int64(3))
    """
    bound = weight_bounds(f, len(layout.degree))
    weight, degree = layout.weight[:, 1:], layout.degree
    if bound is not None:
        most = most_within(weight, degree, bound)
    elif isinstance(f, str) and f == "tolerable":
        most = most_below(weight, degree, THIRD)
    else:
        return None
    counts, place = np.unique(degree, return_inverse=True)
    by_rule = np.array([largest(count) for count in counts.tolist()], np.int64)[place]
    allowed = np.maximum(np.minimum(degree - 1, by_rule), 0)
    uses_f = by_rule <= degree
    if bound is not None:
        why = "b lets more neighbours lie than the rule allows, and it resists fewer"
        _warn(why, f"{OTHERWISE}a smaller b", uses_f & (most > allowed), layout.receiver)
        why = "b lets lies weigh half or more, which no rule resists"
        _warn(why, "give a smaller b", uses_f & (bound >= 0.5) & (most <= allowed), layout.receiver)
    else:
        why = "f tolerable is 0, and every lie is taken"
        _warn(why, f"{OTHERWISE}f as a number", uses_f & (np.minimum(most, allowed) == 0), layout.receiver)
    return np.minimum(most, allowed)


def _warn(why: str, way_out: str, where: Booleans, workers: Integers) -> None:
    weak = workers[where].tolist()
    if weak:
        named = f"worker{'s' * (len(weak) > 1)} {', '.join(map(str, weak[:FEW]))}{', ...' if len(weak) > FEW else ''}"
        warnings.warn(WeakBound(f"{why}, at {named} ({len(weak)} of {len(workers)}); {way_out}"), stacklevel=4)


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
        raise ConfigError(
            f"f must be a whole number, one per worker, 'exact', 'max' or 'tolerable', got {f!r}: {_hint(f)}"
        )
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
    return nearest(word, WORDS)

"""The functions of this package by array-API operations, for arrays on other devices and for very many values.

Receivers with the same number of values and the same ranks are sorted together, in chunks of coordinates of at most
`CHUNK` values. Results equal the compiled ones up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from byzmesh.types import Booleans, Integers

CHUNK = 1 << 22
"""Values gathered and sorted at a time."""


def rank_mean(
    first: Any, second: Any, index: Integers, ranked: Booleans, lower: Integers, upper: Integers, *, apart: bool
) -> Any:
    """(R, D) mean of the ranks lower .. upper - 1 of the ranked slots, with its own value where `apart`."""

    def combine(values: Any, own: Any, lower: int, upper: int) -> Any:
        xp = array_namespace(own)
        ordered = _ascending(values)[:, lower:upper, :]
        if apart:
            ordered = xp.concat([ordered, own[:, None, :]], axis=1)
        return _mean(ordered)

    return _by_group(first, second, index, ranked, (lower, upper), combine)


def near_middle_mean(
    first: Any, second: Any, index: Integers, present: Booleans, trimmed: Integers, keep: Integers, tie: float
) -> Any:
    """(R, D) mean of the `keep` values nearest the mean without the `trimmed` smallest and largest."""

    def combine(values: Any, own: Any, trimmed: int, keep: int) -> Any:
        xp = array_namespace(values)
        ordered = _ascending(values)
        count = ordered.shape[1]
        if count - 2 * trimmed <= 2:
            middle = 0.5 * ordered[:, (count - 1) // 2, :] + 0.5 * ordered[:, count // 2, :]
        else:
            middle = _mean(ordered[:, trimmed : count - trimmed, :])
        current = ordered[:, :keep, :]
        # every window of `keep` ranks contains one of l, l + keep, ...: see kernels.near_middle_mean
        for start in range(keep, count, keep):
            rivals = ordered[:, start : start + keep, :]
            some = current[:, : rivals.shape[1], :]
            with np.errstate(over="ignore"):
                nearer = middle[:, None, :] - some <= tie * (rivals - middle[:, None, :])
            current = xp.concat([xp.where(nearer, some, rivals), current[:, rivals.shape[1] :, :]], axis=1)
        return _mean(current)

    return _by_group(first, second, index, present, (trimmed, keep), combine)


def sign_sum(first: Any, second: Any, index: Integers, present: Booleans, reference: Any) -> Any:
    """(R, D) sum of the signs of the present rows minus the reference."""
    xp = array_namespace(first)
    out = xp.zeros_like(reference)
    for slot in range(index.shape[1]):
        here = np.flatnonzero(present[:, slot])
        chosen = _indices(here, first)
        rows = _take(first, second, index[here, slot])
        out[chosen] = out[chosen] + xp.sign(rows - xp.take(reference, chosen, axis=0))
    return out


def sign_histogram(first: Any, second: Any, index: Integers, present: Booleans, reference: Any) -> Integers:
    """(R, K, 3) counts of negative, zero and positive differences."""
    xp = array_namespace(first)
    out = np.zeros((*index.shape, 3), np.int64)
    for slot in range(index.shape[1]):
        here = np.flatnonzero(present[:, slot])
        gap = _take(first, second, index[here, slot]) - xp.take(reference, _indices(here, first), axis=0)
        for place, matches in enumerate((gap < 0, gap == 0, gap > 0)):
            out[here, slot, place] = [int(count) for count in xp.sum(xp.astype(matches, xp.int64), axis=1)]
    return out


def _by_group(
    first: Any,
    second: Any,
    index: Integers,
    ranked: Booleans,
    parameters: tuple[Integers, ...],
    combine: Callable[..., Any],
) -> Any:
    """(R, D) `combine`(values (G, n, C), own (G, C), *parameters) for all receivers that share n and the parameters."""
    xp = array_namespace(first)
    out = xp.empty((len(index), first.shape[1]), dtype=first.dtype, device=device(first))
    for group, count, shared in _groups(ranked, parameters):
        rows = np.stack([index[receiver, ranked[receiver]] for receiver in group])
        columns = max(1, CHUNK // max(1, len(group) * (count + 1)))
        for left in range(0, first.shape[1], columns):
            span = slice(left, left + columns)
            values = _take(first[:, span], second[:, span], rows.reshape(-1))
            own = _take(first[:, span], second[:, span], index[group, 0])
            values = xp.reshape(values, (len(group), count, own.shape[1]))
            out[_indices(group, first), span] = combine(values, own, *shared)
    return out


def _groups(ranked: Booleans, parameters: tuple[Integers, ...]) -> Iterator[tuple[Integers, int, list[int]]]:
    keys = np.stack([ranked.sum(axis=1), *parameters], axis=1)
    distinct, member = np.unique(keys, axis=0, return_inverse=True)
    for number, key in enumerate(distinct.tolist()):
        everyone = np.flatnonzero(member.reshape(-1) == number)
        # the columns of a chunk would become too few for a large group of large inboxes
        largest = max(1, CHUNK // (64 * max(1, key[0])))
        for start in range(0, len(everyone), largest):
            yield everyone[start : start + largest], key[0], key[1:]


def _indices(rows: Integers, like: Any) -> Any:
    return rows if isinstance(like, np.ndarray) else array_namespace(like).asarray(rows, device=device(like))


def _take(first: Any, second: Any, rows: Integers) -> Any:
    """(len(rows), C) rows of two consecutive arrays."""
    xp = array_namespace(first)
    if len(second) == 0:
        return xp.take(first, _indices(rows, first), axis=0)
    out = xp.empty((len(rows), first.shape[1]), dtype=first.dtype, device=device(first))
    for part, offset in ((first, 0), (second, len(first))):
        here = np.flatnonzero((rows >= offset) & (rows < offset + len(part)))
        out[_indices(here, first)] = xp.take(part, _indices(rows[here] - offset, first), axis=0)
    return out


def _ascending(values: Any) -> Any:
    """(G, n, C) sorted along the middle axis."""
    if values.shape[1] < 2:
        return values
    return array_namespace(values).sort(values, axis=1)


def _mean(values: Any) -> Any:
    """(G, C) mean over the middle axis; rounding near the largest number does not make it infinite."""
    xp = array_namespace(values)
    share = 1.0 / values.shape[1]
    with np.errstate(over="ignore"):
        mean = xp.astype(xp.sum(xp.astype(values, xp.float64) * share, axis=1), values.dtype)
    largest = float(xp.finfo(values.dtype).max)
    return xp.clip(mean, -largest, largest)

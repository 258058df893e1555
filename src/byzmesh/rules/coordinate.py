"""Rules that work on each coordinate by itself: medians and trimmed means.

    CooMed    median of the S = d + 1 values, own included
    TriMean   mean of own and the d - 2f neighbours' values left without the f least and the f largest: r_n = 1/(d-2f+1)
    MeaMed    mean of the S - f values nearest the median
    Bulyan    S - 2f vectors by repeated Krum, then MeaMed's mean of the S - 4f values nearest their median

They have no coefficients: which neighbour counts differs from coordinate to coordinate. The selection along the short
axis is selection.py's compiled network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Booleans, Floats, Inbox, Integers, Outcome, Rule, State, rules, settle
from byzmesh.rules.gram import block_of, keep_own
from byzmesh.rules.selection import near_median_mean, rank_mean


def coordinate_rule(
    name: str,
    models: Callable[[Inbox, Integers, Booleans], Any],
    *,
    largest_f: Callable[[int], int] | None = None,
    self_weight: Callable[[Inbox, Integers], Floats] | None = None,
    **facts: Any,
) -> Rule:
    """A rule from `models`(inbox, f (R,), present (R, K)) -> (R, D).

    Receivers that keep their own model are shown with nothing present but that and f = 0.
    """

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = (inbox.f, np.zeros(len(inbox.f), bool)) if largest_f is None else settle(inbox, largest_f)
        present = inbox.present
        if kept.any():
            f, present = np.where(kept, 0, f), present.copy()
            present[kept, 1:] = False
        weight = None if self_weight is None else self_weight(inbox, f)
        if weight is not None:
            weight[kept] = 1.0
        return Outcome(keep_own(inbox, models(inbox, f, present), kept), None, kept, None, weight), state

    bound: dict[str, Any] = {} if largest_f is None else {"largest_f": largest_f, "uses_f": True}
    return Rule(name, apply, coordinatewise=True, **bound, **facts)


def vectors(inbox: Inbox) -> tuple[Any, Any]:
    """The pool as two arrays that continue each other: nothing is copied unless messages are combinations."""
    return inbox.pool.own, inbox.pool.dense_messages()


@rules.register("CooMed", aliases=("median", "cm", "coordinate-wise-median"), published={"even": "lower"})
def coomed(even: str = "middle") -> Rule:
    """Coordinate-wise median of own and neighbours.

    even="middle": of an even number of values the middle of the two medians; "lower": the lower one, as published.

    >>> coomed("upper")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: CooMed's even must be 'middle' or 'lower', got 'upper'
    """
    if even not in ("middle", "lower"):
        raise ConfigError(f"CooMed's even must be 'middle' or 'lower', got {even!r}")

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        held = present.sum(axis=1)
        lower = (held - 1) // 2
        upper = held // 2 + 1 if even == "middle" else lower + 1
        return rank_mean(vectors(inbox), inbox.index, present, lower, upper)

    return coordinate_rule("CooMed", models, options={"even": even})


def largest_trimmed(neighbours: int) -> int:
    """2f < d; a worker without neighbours keeps its own model, f = 0.

    >>> [largest_trimmed(d) for d in range(6)]
    [0, 0, 0, 1, 1, 2]
    """
    return max(0, (neighbours - 1) // 2)


@rules.register("TriMean", aliases=("trimmed-mean", "tm"), facts={"feasible": "2f < d"})
def trimean() -> Rule:
    """Trimmed mean of own and, per coordinate, the neighbours without the f least and f largest; equal weights."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return rank_mean(vectors(inbox), inbox.index, present, f, present.sum(axis=1) - 1 - f, apart=True)

    def self_weight(inbox: Inbox, f: Integers) -> Floats:
        weight: Floats = 1.0 / (inbox.present.sum(axis=1) - 2 * f)
        return weight

    return coordinate_rule("TriMean", models, largest_f=largest_trimmed, self_weight=self_weight)


def largest_mea_med(neighbours: int) -> int:
    """2f < S = d + 1: beyond, the median itself may be a lie."""
    return neighbours // 2


@rules.register("MeaMed", aliases=("mean-around-median",), facts={"feasible": "2f < d + 1"})
def meamed() -> Rule:
    """Mean around the median: per coordinate the mean of the S - f values nearest the median, own included.

    Of two values equally near the median the smaller counts as nearer.
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return near_median_mean(vectors(inbox), inbox.index, present, present.sum(axis=1) - f)

    return coordinate_rule("MeaMed", models, largest_f=largest_mea_med)


@exact
def repeated_krum(distance2: Floats, present: Booleans, f: Integers, picks: Integers, tie: float) -> Booleans:
    """(R, K) the slots picked one after the other, each the Krum choice of those not yet picked.

    With n slots left the score counts the n - f - 2 nearest others, at least one. Each slot's distances are sorted once
    and the picked ones skipped: O(K^2 log K + picks K^2).
    """
    receivers, slots = present.shape
    chosen = np.zeros((receivers, slots), np.bool_)
    order = np.empty((slots, slots), np.int64)
    scores = np.empty(slots)
    for receiver in range(receivers):
        left = present[receiver].copy()
        for slot in range(slots):
            if left[slot]:
                order[slot] = np.argsort(distance2[receiver, slot])
        for _ in range(picks[receiver]):
            nearest = max(1, left.sum() - f[receiver] - 2)
            least = np.inf
            for slot in range(slots):
                if left[slot]:
                    scores[slot] = 0.0
                    counted = 0
                    for other in order[slot]:
                        if counted == nearest:
                            break
                        if other != slot and left[other]:
                            scores[slot] += distance2[receiver, slot, other]
                            counted += 1
                    least = min(least, scores[slot])
            for slot in range(slots):
                if left[slot] and scores[slot] <= least * (1.0 + tie):
                    chosen[receiver, slot] = True
                    left[slot] = False
                    break
    return chosen


def largest_bulyan(neighbours: int) -> int:
    """S >= 4f + 3 with S = d + 1.

    >>> [largest_bulyan(d) for d in (1, 2, 5, 6, 10)]
    [-1, 0, 0, 1, 2]
    """
    return (neighbours - 2) // 4 if neighbours >= 2 else -1


@rules.register("Bulyan", facts={"feasible": "d >= 4f + 2"})
def bulyan() -> Rule:
    """Bulyan: S - 2f vectors by repeated Krum, then per coordinate the mean of the S - 4f nearest their median."""

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        block = block_of(inbox, f)
        held = present.sum(axis=1)
        picked = repeated_krum(block.distance2, present, f, held - 2 * f, block.tie)
        return near_median_mean(vectors(inbox), inbox.index, picked, held - 4 * f)

    return coordinate_rule("Bulyan", models, largest_f=largest_bulyan)

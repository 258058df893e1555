"""What the heaviest neighbours weigh together, and how many of them a limit allows.

h(f) = the sum of the f largest weights: what f lying neighbours weigh at most
"""

from __future__ import annotations

import numpy as np

from byzmesh.types import Booleans, Floats, Integers

ROUNDING = 1e-12
"""Sums of weights that differ by less than this, as a fraction of 1 or of all of them, count as equal."""
THIRD = 1.0 / 3.0


def heaviest(weight: Floats) -> Floats:
    """(R, K + 1) entry f of a row is the sum of its f largest weights (R, K).

    >>> heaviest(np.array([[0.1, 0.3, 0.2]])).round(3)
    array([[0. , 0.3, 0.5, 0.6]])
    """
    falling = -np.sort(-weight, axis=1)
    return np.concatenate([np.zeros((len(weight), 1)), np.cumsum(falling, axis=1)], axis=1)


def of_the_heaviest(f: Integers, weight: Floats) -> Floats:
    """(R,) the sum of the f largest weights of each row (R, K); f (R,) beyond K counts as K.

    >>> of_the_heaviest(np.array([2, 9]), np.array([[0.1, 0.3, 0.2], [0.1, 0.1, 0.0]])).round(3)
    array([0.5, 0.2])
    """
    total = heaviest(weight)
    picked: Floats = total[np.arange(len(total)), np.minimum(f, total.shape[1] - 1)]
    return picked


def below(value: Floats, limit: float) -> Booleans:
    """Whether each value is strictly below the limit, beyond rounding."""
    strict: Booleans = value < limit - ROUNDING  # a sum of weights equal to its limit up to rounding is not below it
    return strict


def most_below(weight: Floats, count: Integers, limit: float) -> Integers:
    """(R,) the largest f whose f heaviest of `count` (R,) neighbours weigh less than the limit; -1 if not even 0 do.

    >>> most_below(np.array([[0.2, 0.2, 0.2], [0.5, 0.0, 0.0]]), np.array([3, 1]), THIRD)
    array([1, 0])
    """
    most: Integers = np.minimum(below(heaviest(weight), limit).sum(axis=1) - 1, count)
    return most


def most_within(weight: Floats, count: Integers, bound: Floats) -> Integers:
    """(R,) how many of `count` (R,) neighbours can weigh at most `bound` (R,) together: the lightest ones.

    >>> most_within(np.array([[0.1, 0.3, 0.2], [0.5, 0.0, 0.0]]), np.array([3, 1]), np.array([0.3, 0.3]))
    array([2, 0])
    """
    rising = np.sort(np.where(np.arange(weight.shape[1]) < count[:, None], weight, np.inf), axis=1)
    most: Integers = (np.cumsum(rising, axis=1) <= bound[:, None] * (1.0 + ROUNDING)).sum(axis=1)
    return most

"""Feasibility: the condition on f under which a rule can run, and conditions that several rules use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Feasible:
    """A condition on f for d neighbours, S = d + 1 vectors with the receiver's own.

    condition  in words, as a listing shows it
    largest    d -> the largest f that meets it; -1 if the rule cannot run even with f = 0

    >>> most = Feasible("f <= d - 3", lambda neighbours: max(-1, neighbours - 3))
    >>> most.condition, most.largest(5)
    ('f <= d - 3', 2)
    """

    condition: str
    largest: Callable[[int], int]


def below_neighbours(neighbours: int) -> int:
    """f < d: at least one neighbour must be left.

    >>> [below_neighbours(d) for d in range(4)]
    [0, 0, 1, 2]
    """
    return max(0, neighbours - 1)


def below_half(neighbours: int) -> int:
    """2f < d: most neighbours are honest. A worker without neighbours keeps its own model, f = 0.

    >>> [below_half(d) for d in range(6)]
    [0, 0, 0, 1, 1, 2]
    """
    return max(0, (neighbours - 1) // 2)


BELOW_NEIGHBOURS = Feasible("f < d", below_neighbours)
BELOW_HALF = Feasible("2f < d", below_half)

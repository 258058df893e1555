"""Feasibility conditions that several rules share: the largest f for a number of neighbours d."""

from __future__ import annotations


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

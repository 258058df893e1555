"""Feasibility: the condition on f under which a rule can run, and conditions that several rules use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Feasible:
    """A condition on f for d neighbours, S = d + 1 vectors with the receiver's own.

    condition  in words, as a listing shows it
    largest    d -> the largest f that meets it; -1 if the rule cannot run even with f = 0
    resists    number of messages -> how many of them may be lies, however far away, while the result stays near the
               honest ones (with equal weights); None: as many as `largest` allows. A rule may run beyond that, as the
               published runs do, but then f lies that agree with each other outweigh the rest.

    >>> most = Feasible("f <= d - 3", lambda neighbours: max(-1, neighbours - 3), below_half)
    >>> most.condition, most.largest(5), most.resisted(5)
    ('f <= d - 3', 2, 2)
    >>> most.largest(9), most.resisted(9)
    (6, 4)
    """

    condition: str
    largest: Callable[[int], int]
    resists: Callable[[int], int] | None = None

    def resisted(self, messages: int) -> int:
        """How many lies among this many messages the rule resists."""
        return self.largest(messages) if self.resists is None else self.resists(messages)


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


def below_half_of_all(neighbours: int) -> int:
    """2f < d + 1: most vectors are honest, with the receiver's own.

    >>> [below_half_of_all(d) for d in range(6)]
    [0, 0, 1, 1, 2, 2]
    """
    return neighbours // 2


BELOW_NEIGHBOURS = Feasible("f < d", below_neighbours, lambda messages: messages)
"""For rules that measure from the receiver's own model: lies farther from it than every honest message never count."""
CUTS_FARTHEST = Feasible("f < d", below_neighbours, below_half_of_all)
"""For rules that measure from a mean: once the lies are half of it, the honest messages are the outliers."""
BELOW_HALF = Feasible("2f < d", below_half)
BELOW_HALF_OF_ALL = Feasible("2f < d + 1", below_half_of_all)

"""Sorting networks that deliver only the ranks somebody asks for.

A sorting network is a fixed list of comparators (i, j): wires i < j become their minimum and maximum. Batcher's
odd-even merge sort has O(n log^2 n) of them; as they do not depend on the data, each comparator works on many coordinates at
once. Walking the list backwards from the wanted ranks drops the comparators, and the halves of
comparators, that no wanted rank depends on: the median of 11 needs 32 of 38 comparators, and only half of 10 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

NOWHERE = -1
"""Target of the half of a comparator that is not needed."""


def odd_even_merge_sort(size: int) -> Iterator[tuple[int, int]]:
    """Batcher's comparators for `size` wires.

    >>> list(odd_even_merge_sort(4))
    [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]
    """
    run = 1
    while run < size:
        gap = run
        while gap >= 1:
            for first in range(gap % run, size - gap, 2 * gap):
                for i in range(first, min(first + gap, size - gap)):
                    if i // (2 * run) == (i + gap) // (2 * run):
                        yield i, i + gap
            gap //= 2
        run *= 2


def pruned(size: int, lower: int, upper: int) -> list[tuple[int, int, bool, bool]]:
    """Comparators (i, j, minimum needed, maximum needed) for the ranks lower .. upper - 1 of `size` values.

    >>> pruned(3, 1, 2)
    [(0, 1, True, True), (0, 2, False, True), (1, 2, True, False)]
    """
    wanted = set(range(lower, upper))
    kept = []
    for i, j in reversed(list(odd_even_merge_sort(size))):
        if i in wanted or j in wanted:
            kept.append((i, j, i in wanted, j in wanted))
            wanted |= {i, j}
    return kept[::-1]


@lru_cache(maxsize=4096)
def selection_program(size: int, lower: int, upper: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The network as (M, 4) steps (source, source, target of the minimum, of the maximum), and where the ranks end.

    Sources >= 0 are lines of a work buffer, sources < 0 the inputs -1, -2, ... themselves, so nothing is copied before
    the first comparison. Targets are never sources of the same step: a compiler turns a value that may stay where it is
    into a masked store, which is many times slower. Two lines more than inputs suffice.

    >>> steps, ranks = selection_program(3, 1, 2)
    >>> steps.tolist(), ranks.tolist()
    ([[-1, -2, 0, 1], [0, -3, -1, 2], [1, 2, 0, -1]], [0])
    """
    place = [-1 - wire for wire in range(size)]
    free = list(range(size + 2))[::-1]
    steps = []
    for i, j, minimum, maximum in pruned(size, lower, upper):
        sources = place[i], place[j]
        place[i] = free.pop() if minimum else NOWHERE
        place[j] = free.pop() if maximum else NOWHERE
        steps.append((*sources, place[i], place[j]))
        free.extend(source for source in reversed(sources) if source >= 0)
    return np.array(steps, np.int64).reshape(-1, 4), np.array(place[lower:upper], np.int64)

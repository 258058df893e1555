"""Comparator networks that compute only the wanted ranks.

A network is a fixed list of comparators (i, j): the minimum of the two wires goes to i, the maximum to j. It does not
depend on the data, so each comparator works on many coordinates at once. Two ways to build one:

    merging   Batcher's odd-even merge sort, O(n log^2 n) comparators, sorts
    peeling   repeatedly drop the smallest and the largest of just enough values to know that they are cut: O(n f)
              comparators for n values and f cuts at each end; the middle remains unsorted

Walking a list backwards from the wanted wires removes the comparators, and the halves of comparators, on which no
wanted wire depends. For 10 values without the 2 smallest and 2 largest: 22 comparators by peeling, 29 by merging.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Comparators = list[tuple[int, int]]
Halves = list[tuple[int, int, bool, bool]]
Program = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

NOWHERE = -1
"""Target of the half of a comparator that is not needed."""


def merging(size: int) -> Iterator[tuple[int, int]]:
    """Batcher's comparators: afterwards wire k holds rank k.

    >>> list(merging(4))
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


def peeling(size: int, lower: int, upper: int) -> tuple[Comparators, list[int]]:
    """Comparators, and the wires that then hold the ranks lower .. upper - 1 in some order.

    The smallest of m values is among the c smallest of n if m > n - c, so the first cut does not need all values.

    >>> peeling(3, 1, 2)
    ([(0, 1), (0, 2), (2, 1)], [2])
    """
    comparators: Comparators = []
    working: list[int] = []
    waiting = list(range(size))[::-1]
    cut_low, cut_high = lower, size - upper
    while cut_low or cut_high:
        left = len(working) + len(waiting)
        cuts = [cut for cut in (cut_low, cut_high) if cut]
        while len(working) <= left - min(cuts):
            working.append(waiting.pop())
        lows = highs = working
        if len(cuts) == 2:
            half = len(working) // 2
            pairs = list(zip(working[:half], working[half : 2 * half]))
            comparators += pairs
            odd = working[2 * half :]
            lows, highs = [low for low, _ in pairs] + odd, [high for _, high in pairs] + odd
        if cut_low:
            comparators += [(lows[0], other) for other in lows[1:]]
            cut_low -= 1
        if cut_high:
            comparators += [(other, highs[0]) for other in highs[1:]]
            cut_high -= 1
        gone = {lows[0]} if len(cuts) == 1 else {lows[0], highs[0]}
        working = [wire for wire in working if wire not in gone]
    return comparators, working + waiting[::-1]


def pruned(comparators: Comparators, size: int, wanted: list[int], *, ordered: bool) -> Halves:
    """Comparators (i, j, minimum needed, maximum needed) that the wanted wires depend on.

    Unless `ordered`, wanted wires may be swapped: a comparator between two of them is not needed.

    >>> pruned([(0, 1), (0, 2), (2, 1)], 3, [2], ordered=False)
    [(0, 1, True, True), (0, 2, False, True), (2, 1, True, False)]
    """
    unused, anyhow, exact = 0, 1, 2
    state = [unused] * size
    for wire in wanted:
        state[wire] = exact if ordered else anyhow
    kept = []
    for i, j in reversed(comparators):
        if state[i] != state[j] or state[i] == exact:
            kept.append((i, j, state[i] != unused, state[j] != unused))
            state[i] = state[j] = exact
    return kept[::-1]


def program(halves: Halves, size: int, wanted: list[int]) -> Program:
    """(M, 4) steps (source, source, target of the minimum, target of the maximum), and where the wanted wires end.

    Sources >= 0 are lines of a work buffer, sources < 0 the inputs -1, -2, ... themselves, so nothing is copied before
    the first comparison. Targets are never sources of the same step: otherwise the compiler emits a masked store, which
    is many times slower. Two lines more than inputs suffice.

    >>> steps, places = program([(0, 1, True, True), (0, 2, False, True), (2, 1, True, False)], 3, [2])
    >>> steps.tolist(), places.tolist()
    ([[-1, -2, 0, 1], [0, -3, -1, 2], [2, 1, 0, -1]], [0])
    """
    place = [-1 - wire for wire in range(size)]
    free = list(range(size + 2))[::-1]
    steps = []
    for i, j, minimum, maximum in halves:
        sources = place[i], place[j]
        place[i] = free.pop() if minimum else NOWHERE
        place[j] = free.pop() if maximum else NOWHERE
        steps.append((*sources, place[i], place[j]))
        free.extend(source for source in sources if source >= 0)
    return np.array(steps, np.int64).reshape(-1, 4), np.array([place[wire] for wire in wanted], np.int64)


@lru_cache(maxsize=4096)
def selecting(size: int, lower: int, upper: int) -> Program:
    """The cheaper program for the ranks lower .. upper - 1 of `size` values, in no order."""
    peels, middle = peeling(size, lower, upper)
    ranks = list(range(lower, upper))
    choices = [
        (pruned(peels, size, middle, ordered=False), middle),
        (pruned(list(merging(size)), size, ranks, ordered=False), ranks),
    ]
    halves, wanted = min(choices, key=lambda choice: sum(low + high for _, _, low, high in choice[0]))
    return program(halves, size, wanted)


@lru_cache(maxsize=1024)
def sorting(size: int) -> Program:
    """The program that sorts `size` values."""
    ranks = list(range(size))
    return program(pruned(list(merging(size)), size, ranks, ordered=True), size, ranks)

"""Sorting and selecting programs by the zero-one principle."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from byzmesh.rules.ranks import sorting_networks


def run(steps: Any, places: Any, values: np.ndarray) -> np.ndarray:
    """A program on columns (n, lanes) -> (wanted, lanes), by the definition of a step."""
    lines: dict[int, np.ndarray] = {-1 - wire: column for wire, column in enumerate(values)}
    for a, b, low, high in steps.tolist():
        least, largest = np.minimum(lines[a], lines[b]), np.maximum(lines[a], lines[b])
        for target, result in ((low, least), (high, largest)):
            if target != sorting_networks.NOWHERE:
                assert target not in (a, b)
                lines[target] = result
    return np.array([lines[place] for place in places.tolist()]).reshape(-1, values.shape[1])


def zeros_and_ones(size: int) -> np.ndarray:
    """(size, 2^size): a network that sorts all of these sorts everything."""
    return np.array(list(itertools.product([0, 1], repeat=size))).T


@pytest.mark.parametrize("size", range(1, 12))
def test_sorting_programs_by_the_zero_one_principle(size: int) -> None:
    values = zeros_and_ones(size)
    assert np.array_equal(run(*sorting_networks.sorting(size), values), np.sort(values, axis=0))


@pytest.mark.parametrize("size", range(1, 12))
def test_selecting_programs_by_the_zero_one_principle(size: int) -> None:
    values = zeros_and_ones(size)
    ordered = np.sort(values, axis=0)
    for lower in range(size):
        for upper in range(lower + 1, size + 1):
            for halves, wanted in (
                (sorting_networks.peeling(size, lower, upper)),
                (list(sorting_networks.merging(size)), list(range(lower, upper))),
            ):
                pruned = sorting_networks.pruned(halves, size, wanted, ordered=False)
                chosen = run(*sorting_networks.program(pruned, size, wanted), values)
                assert np.array_equal(np.sort(chosen, axis=0), ordered[lower:upper]), (lower, upper)


def test_pruning_pays() -> None:
    def stored(program: Any) -> int:
        return int((program[0][:, 2:] >= 0).sum())

    assert stored(sorting_networks.selecting(11, 5, 6)) <= 48
    assert stored(sorting_networks.selecting(10, 2, 8)) <= 42
    assert stored(sorting_networks.sorting(11)) == 76

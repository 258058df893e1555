"""The evaluations that a run's value averages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.training.final import last_evaluations, mean_of_last


@pytest.mark.parametrize(
    ("rounds", "every", "last", "expected"),
    [
        (50_000, 500, None, list(range(45_500, 50_001, 500))),  # the published cells: the last 10 of 100
        (150_000, 500, None, list(range(145_500, 150_001, 500))),  # a tenth would be 30
        (20, 1, None, [19, 20]),
        (100, 50, None, [100]),
        (100, 50, 10, [50, 100]),  # asked for 10, there are two beside the start
        (10, 4, None, [10]),  # 0, 4, 8, 10
        (0, 1, None, [0]),  # nothing but the start
        (20, 1, 3, [18, 19, 20]),
    ],
)
def test_last_evaluations(rounds: int, every: int, last: int | None, expected: list[int]) -> None:
    evaluated = np.unique([*range(0, rounds + 1, every), rounds])
    assert evaluated[last_evaluations(evaluated, last)].tolist() == expected


@given(rounds=st.integers(0, 500), every=st.integers(1, 100), last=st.none() | st.integers(1, 30))
def test_the_start_never_counts_and_something_always_does(rounds: int, every: int, last: int | None) -> None:
    evaluated = np.unique([*range(0, rounds + 1, every), rounds])
    chosen = evaluated[last_evaluations(evaluated, last)]
    assert len(chosen) >= 1 and chosen[-1] == rounds and (rounds == 0 or chosen[0] > 0)
    if last is None:
        assert len(chosen) <= 10 and (len(chosen) == 1 or (10 * chosen > 9 * rounds).all())
    else:
        assert len(chosen) == max(1, min(last, len(evaluated) - 1))


def test_mean_of_last_leaves_out_what_was_not_measured() -> None:
    assert mean_of_last([math.nan, math.nan, 3.0], [0, 50, 100], last=2) == 3.0
    assert math.isnan(mean_of_last([math.nan, math.nan], [0, 50]))
    with pytest.raises(ConfigError, match="last must be a whole number of at least 1, got 0"):
        mean_of_last([1.0], [0], last=0)

"""Means of ranks of many values, by sorted runs, against sorting; and the programs, by the zero-one principle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.rules import ranks
from byzmesh.rules.ranks.runs import ROWS, merged


def merge(size: int, lower: int, upper: int, values: Any) -> Any:
    """The lines of the wanted ranks, by the definitions of the four operations; what is finished must be bitonic."""
    lines = np.ones((-(-size // ROWS), ROWS, values.shape[1]))
    lines.reshape(-1, values.shape[1])[:size] = values
    steps, places = merged(size, lower, upper)
    for kind, x, y in steps.tolist():
        if kind == 0:
            lines[x] = np.sort(lines[x], axis=0)
        elif kind == 3:
            turned = np.diff(np.concatenate([lines[x], lines[x][:1]]), axis=0)  # around the ring it changes but twice
            assert (np.count_nonzero(turned, axis=0) <= 2).all()
            lines[x] = np.sort(lines[x], axis=0)
        else:
            other = lines[y][::-1] if kind == 1 else lines[y]
            low, high = np.minimum(lines[x], other), np.maximum(lines[x], other)
            lines[x], lines[y] = low, high[::-1] if kind == 1 else high
    return lines.reshape(-1, values.shape[1])[places]


@pytest.mark.parametrize("size", [17, 33, 48, 63, 64, 65, 100, 130, 195, 300])
def test_programs_separate_the_wanted_ranks(size: int) -> None:
    generator = np.random.default_rng(size)
    share = generator.random(60)
    values = (generator.random((size, 60)) < share).astype(float)
    for lower, upper in ((0, size), (0, 1), (size - 1, size), (size // 5, size - size // 5), (size // 2, size // 2)):
        found = merge(size, lower, upper, values)
        np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(values, axis=0)[lower:upper])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(34, 300), st.sampled_from([1, 15, 64, 130]), st.booleans(), st.booleans())
def test_means(seed: int, slots: int, columns: int, apart: bool, ties: bool) -> None:
    random = np.random.default_rng(seed)
    dtype = (np.float32, np.float64)[seed % 2]
    rows: Any = random.normal(size=(slots + 5, columns)).astype(dtype)
    if ties:
        rows = np.round(rows)
    index = np.stack([random.permutation(slots + 5)[:slots] for _ in range(3)])
    present = random.random((3, slots)) < 0.95
    present[:, 0] = True
    counts = present.sum(axis=1) - apart
    lower = np.array([random.integers(0, count) for count in counts])
    upper = np.array([random.integers(low, count + 1) for low, count in zip(lower, counts)])
    result = ranks.rank_mean((rows[:7], rows[7:]), index, present, lower, upper, apart=apart)
    for receiver in range(3):
        held = rows[index[receiver, present[receiver]]].astype(np.float64)
        kept = np.sort(held[int(apart) :], axis=0)[lower[receiver] : upper[receiver]]
        expected = np.concatenate([kept, held[:1]] if apart or not len(kept) else [kept]).mean(axis=0)
        assert result[receiver] == pytest.approx(expected, rel=2e-7 if dtype == np.float32 else 1e-14, abs=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_numbers_stay_finite(dtype: Any) -> None:
    top = np.finfo(dtype).max
    rows = np.full((50, 3), top, dtype)
    rows[:20, 1] = -top
    index, present = np.arange(50)[None], np.ones((1, 50), bool)
    mean = ranks.rank_mean(rows, index, present, np.array([20]), np.array([50]))
    np.testing.assert_allclose(mean[0], [top, top, top], rtol=1e-15)

"""Ranks and signs per coordinate against library sorts, for the compiled path and the array path alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.rules import ranks
from byzmesh.rules.ranks import array_api
from tests.rules.oracles import mean_near_median, phocas

Case = tuple[np.ndarray, np.ndarray, np.ndarray]


def make_case(seed: int, receivers: int, slots: int, columns: int, dtype: Any = np.float64) -> Case:
    """Rows with ties, an index with repeated rows, and slots that are absent at random (own never)."""
    random = np.random.default_rng(seed)
    rows = np.round(random.normal(size=(receivers + slots, columns)) * 4) / 4
    noise = random.normal(size=rows.shape) * random.integers(0, 2, size=rows.shape)
    index = random.integers(0, len(rows), size=(receivers, slots))
    present = random.random((receivers, slots)) < 0.8
    present[:, 0] = True
    return (rows + noise).astype(dtype), index, present


PATHS = ["compiled", "pair", "numpy", "torch"]


def through(path: str, function: str, rows: np.ndarray, *arguments: Any, **options: Any) -> np.ndarray:
    """The function by one of the paths: compiled on one or two arrays, or the array path with NumPy or torch."""
    if path == "compiled":
        return np.asarray(getattr(ranks, function)(rows, *arguments, **options))
    cut = len(rows) // 2
    if path == "pair":
        return np.asarray(getattr(ranks, function)((rows[:cut], rows[cut:]), *arguments, **options))
    if path == "numpy":
        if function == "rank_mean":
            index, present, lower, upper = arguments
            ranked = present.copy()
            ranked[:, 0] &= not options.get("apart", False)
            arguments, options = (index, ranked, lower, upper), {"apart": options.get("apart", False)}
        elif function.startswith("near"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ranks, "LARGEST_NETWORK", 0)
                return np.asarray(getattr(ranks, function)((rows[:cut], rows[cut:]), *arguments))
        return np.asarray(getattr(array_api, function)(rows[:cut], rows[cut:], *arguments, **options))
    tensors = (torch.from_numpy(rows[:cut]), torch.from_numpy(rows[cut:]))
    if function.startswith("sign"):
        arguments = (*arguments[:-1], torch.from_numpy(arguments[-1]))
    result = getattr(ranks, function)(tensors, *arguments, **options)
    if function == "sign_histogram":
        return np.asarray(result)
    assert isinstance(result, torch.Tensor)
    return np.asarray(result.numpy())


@pytest.mark.parametrize("path", PATHS)
@given(seed=st.integers(0, 10**6), slots=st.integers(1, 14), columns=st.sampled_from([1, 3, 70, 600]))
@settings(max_examples=15, deadline=None)
def test_rank_mean(path: str, seed: int, slots: int, columns: int) -> None:
    dtype = (np.float32, np.float64)[seed % 2]
    rows, index, present = make_case(seed, 3, slots, columns, dtype)
    random = np.random.default_rng(seed)
    for apart in (False, True):
        counts = present.sum(axis=1) - apart
        lower = np.array([random.integers(0, max(count, 1)) for count in counts])
        upper = np.array([random.integers(low + 1, count + 1) if count else 0 for low, count in zip(lower, counts)])
        result = through(path, "rank_mean", rows, index, present, lower, upper, apart=apart)
        assert result.dtype == dtype
        for receiver in range(3):
            held = rows[index[receiver, present[receiver]]].astype(np.float64)
            kept = np.sort(held[int(apart) :], axis=0)[lower[receiver] : upper[receiver]]
            expected = np.concatenate([kept, held[:1]] if apart else [kept]).mean(axis=0)
            assert result[receiver] == pytest.approx(expected, rel=2e-7 if dtype == np.float32 else 1e-14, abs=1e-14)


@pytest.mark.parametrize("path", PATHS)
@given(seed=st.integers(0, 10**6), slots=st.integers(1, 14))
@settings(max_examples=15, deadline=None)
def test_near_median_mean(path: str, seed: int, slots: int) -> None:
    rows, index, present = make_case(seed, 3, slots, 40)
    keep = np.random.default_rng(seed).integers(1, present.sum(axis=1) + 1)
    result = through(path, "near_median_mean", rows, index, present, keep)
    for receiver in range(3):
        held = rows[index[receiver, present[receiver]]]
        expected = [mean_near_median(column, int(keep[receiver])) for column in held.T]
        assert result[receiver] == pytest.approx(np.array(expected), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("path", PATHS)
@given(seed=st.integers(0, 10**6), slots=st.integers(1, 14))
@settings(max_examples=15, deadline=None)
def test_near_trimmed_mean(path: str, seed: int, slots: int) -> None:
    rows, index, present = make_case(seed, 3, slots, 40)
    f = np.random.default_rng(seed).integers(0, (present.sum(axis=1) + 1) // 2)
    result = through(path, "near_trimmed_mean", rows, index, present, f)
    for receiver in range(3):
        own, *received = rows[index[receiver, present[receiver]]]
        expected = phocas(own, received, None, int(f[receiver]))
        assert result[receiver] == pytest.approx(expected, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_decide_who_is_nearer(path: str, dtype: Any) -> None:
    rows = np.array([[-2.2], [-0.3], [0.0], [1.9]], dtype)  # -2.2 and 1.9 are equally near -0.15
    result = through(path, "near_trimmed_mean", rows, np.arange(4)[None, :], np.ones((1, 4), bool), np.array([1]))
    assert result[0, 0] == pytest.approx(-2.5 / 3, rel=1e-6)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs(path: str, dtype: Any) -> None:
    rows, index, present = make_case(3, 4, 7, 1100, dtype)
    reference = np.round(np.random.default_rng(1).normal(size=(4, 1100))).astype(dtype)
    rows = np.round(rows)
    gap = rows[index] - reference[:, None, :]
    signs = np.where(present[:, :, None], np.sign(gap), 0.0).sum(axis=1)
    assert np.array_equal(through(path, "sign_sum", rows, index, present, reference), signs)
    counts = np.stack([(gap < 0).sum(axis=2), (gap == 0).sum(axis=2), (gap > 0).sum(axis=2)], axis=2)
    counts[~present] = 0
    assert counts[:, :, 1].any()
    assert np.array_equal(through(path, "sign_histogram", rows, index, present, reference), counts)


@pytest.mark.parametrize("largest", [400, 399])
def test_many_values(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "LARGEST_NETWORK", largest)
    count = 400
    rows = np.random.default_rng(0).normal(size=(count, 130)).astype(np.float32)
    index = np.stack([np.arange(count), np.roll(np.arange(count), 1)])
    present = np.ones((2, count), bool)
    present[1, 5:] = False
    held = present.sum(axis=1)
    median = ranks.rank_mean(rows, index, present, (held - 1) // 2, held // 2 + 1)
    assert median[0] == pytest.approx(np.median(rows.astype(np.float64), axis=0), rel=2e-7)
    assert np.array_equal(median[1], np.median(rows[index[1, :5]], axis=0))
    near = ranks.near_median_mean(rows, index, present, held - 2)
    assert near[0, 0] == pytest.approx(mean_near_median(rows[:, 0].tolist(), count - 2), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ends_of_the_range_stay_finite(path: str, dtype: Any) -> None:
    largest = np.finfo(dtype).max
    rows = np.array([[0, largest], [largest, largest], [largest, largest], [-largest, largest]], dtype)
    index, present = np.arange(4)[None, :], np.ones((1, 4), bool)
    everything = through(path, "rank_mean", rows, index, present, np.array([0]), np.array([4]))
    assert everything[0] == pytest.approx(np.array([largest / 4, largest]))
    inner = through(path, "near_median_mean", rows, index, present, np.array([3]))
    assert np.isfinite(inner).all()
    assert inner[0, 1] == pytest.approx(largest)


@pytest.mark.parametrize("path", PATHS)
def test_rounding_beyond_the_largest_number_stays_finite(path: str) -> None:
    # for some of these counts count * (1 / count) rounds above 1
    for count in range(2, 60):
        rows = np.full((count, 3), np.finfo(np.float64).max)
        index, present = np.arange(count)[None, :], np.ones((1, count), bool)
        for sign in (1.0, -1.0):
            result = through(path, "rank_mean", sign * rows, index, present, np.array([0]), np.array([count]))
            assert np.isfinite(result).all(), count


def test_equal_values_return_exactly_that_value_in_float32() -> None:
    value = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    for count in range(1, 12):
        rows = np.tile(value, (count, 1))
        index, present = np.arange(count)[None, :], np.ones((1, count), bool)
        result = ranks.rank_mean(rows, index, present, np.array([0]), np.array([count]))
        assert np.array_equal(result[0], value)


def test_inputs_may_be_read_only_and_are_not_changed() -> None:
    rows, index, present = make_case(0, 3, 6, 50)
    before = rows.copy()
    for array in (rows, index, present):
        array.flags.writeable = False
    held = present.sum(axis=1)
    ranks.rank_mean((rows[:4], rows[4:].copy()), index, present, held // 2, held // 2 + 1)
    ranks.near_median_mean(rows, index, present, held)
    ranks.sign_sum(rows, index, present, rows[:3])
    ranks.sign_histogram(rows, index, present, rows[:3])
    assert np.array_equal(rows, before)

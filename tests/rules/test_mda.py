"""MDA's search against all subsets, ties and crowded networks included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.errors import InfeasibleBound
from byzmesh.rules.mda import LARGEST_F, tightest


def first_of_all_subsets(gaps: np.ndarray, size: int) -> tuple[int, ...]:
    """The lexicographically first of the subsets with the least diameter."""
    best = np.inf
    chosen: tuple[int, ...] = ()
    for subset in itertools.combinations(range(len(gaps)), size):
        diameter = max((gaps[i, j] for i, j in itertools.combinations(subset, 2)), default=0.0)
        if diameter < best:
            best, chosen = diameter, subset
    return chosen


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 11),
    share=st.floats(0.0, 0.999),
    dimension=st.sampled_from([1, 2, 9]),
    coarse=st.booleans(),
)
def test_the_subset_is_that_of_an_exhaustive_search(
    seed: int, size: int, share: float, dimension: int, coarse: bool
) -> None:
    f = int(share * size)
    vectors = np.random.default_rng(seed).normal(size=(size, dimension))
    if coarse:
        vectors = np.round(vectors)
    gaps = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    chosen = tightest(gaps[None], np.ones((1, size), bool), np.array([f]), 1e-12)[0]
    assert tuple(np.flatnonzero(chosen)) == first_of_all_subsets(gaps, size - f)


def test_rounding_that_differs_between_the_two_ways_changes_nothing() -> None:
    """Liars that send the same: ties, in a matrix of distances that is symmetric up to rounding only."""
    random = np.random.default_rng(3)
    for _ in range(100):
        vectors = random.normal(size=(9, 4))
        vectors[7] = vectors[8]
        gaps = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
        rough = gaps * (1.0 + 2e-16 * random.integers(-2, 3, size=gaps.shape))
        for f in range(5):
            chosen = tightest(rough[None], np.ones((1, 9), bool), np.array([f]), 1e-12)[0]
            assert tuple(np.flatnonzero(chosen)) == first_of_all_subsets(gaps.round(12), 9 - f)


def test_absent_slots_are_never_chosen() -> None:
    vectors = np.random.default_rng(1).normal(size=(8, 3))
    gaps = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    present = np.array([True, False, True, True, False, True, True, True])
    chosen = tightest(gaps[None], present[None], np.array([2]), 1e-12)[0]
    held = np.flatnonzero(present)
    want = held[list(first_of_all_subsets(gaps[np.ix_(held, held)], len(held) - 2))]
    assert np.flatnonzero(chosen).tolist() == want.tolist()


def test_thirty_vectors_without_ten() -> None:
    """30,045,015 subsets: the ten lies, each in another direction, are left out."""
    random = np.random.default_rng(2)
    honest, lies = random.normal(size=(20, 2048)), 3.0 * random.normal(size=(10, 2048))
    received = np.concatenate([honest[1:10], lies, honest[10:]])
    np.testing.assert_allclose(bm.aggregate("mda", honest[0], received, f=10), honest.mean(axis=0), atol=1e-12)


def test_larger_bounds_are_refused() -> None:
    with pytest.raises(InfeasibleBound, match=f"the largest feasible f is {LARGEST_F}"):
        bm.aggregate("mda", np.zeros(1), np.zeros((60, 1)), f=LARGEST_F + 1)

"""SMEA's search by branch and bound is exact, also among ties, and is refused where it would take long."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.errors import InfeasibleBound
from byzmesh.rules.smea import largest_searchable, narrowest
from byzmesh.types import Booleans, Floats


def first_of_all_sets(vectors: Floats, size: int) -> tuple[int, ...]:
    """The first set of this size with the smallest largest singular value about its mean, by trying all."""
    best = np.inf
    answer: tuple[int, ...] = ()
    for chosen in itertools.combinations(range(len(vectors)), size):
        gaps = vectors[list(chosen)] - vectors[list(chosen)].mean(axis=0)
        value = np.linalg.svd(gaps, compute_uv=False)[0] ** 2
        if value < best * (1.0 - 1e-9) - 1e-12:
            best, answer = value, chosen
    return answer


def found(vectors: Floats, present: Booleans, f: int) -> list[int]:
    gaps = vectors - vectors[0]
    return np.flatnonzero(narrowest((gaps @ gaps.T)[None], present[None], np.array([f]), 1e-12)[0]).tolist()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 9),
    share=st.floats(0.0, 0.99),
    dimension=st.integers(1, 5),
    coarse=st.booleans(),
)
def test_the_search_equals_the_exhaustive_one(seed: int, size: int, share: float, dimension: int, coarse: bool) -> None:
    vectors = np.random.default_rng(seed).normal(size=(size, dimension))
    if coarse:
        vectors = np.round(vectors)  # ties and duplicates
    f = int(share * size)
    assert tuple(found(vectors, np.ones(size, bool), f)) == first_of_all_sets(vectors, size - f)


def test_absent_slots_are_never_chosen() -> None:
    vectors = np.random.default_rng(1).normal(size=(9, 3))
    present = np.array([True, False, True, True, False, True, True, True, False])
    there = np.flatnonzero(present)
    want = there[list(first_of_all_sets(vectors[there], 4))]
    assert found(vectors, present, 2) == want.tolist()


def test_seventeen_vectors_without_eight() -> None:
    random = np.random.default_rng(2)
    honest, lies = random.normal(size=(9, 500)), random.normal(size=(8, 500)) + 1.0
    received = np.concatenate([lies[:4], honest[1:], lies[4:]])
    np.testing.assert_allclose(bm.aggregate("smea", honest[0], received, f=8), honest.mean(axis=0), atol=1e-12)


def test_long_searches_are_refused() -> None:
    assert largest_searchable(29) == 3
    with pytest.raises(InfeasibleBound, match="the largest feasible f is 3"):
        bm.aggregate("smea", np.zeros(1), np.zeros((29, 1)), f=4)

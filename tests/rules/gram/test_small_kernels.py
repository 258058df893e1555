"""Products and mixtures of small pools against the formulas in float64, whatever the numbers of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products
from byzmesh.types import Array

EPS = {"float32": 1e-6, "float64": 1e-14}


def pool_of(seed: int, rows: tuple[int, int, int], columns: int, dtype: str) -> tuple[Array, Array, Array]:
    generator = np.random.default_rng(seed)
    own, messages, anchors = (generator.normal(size=(count, columns)).astype(dtype) for count in rows)
    return own, messages, anchors


ROWS = st.tuples(st.integers(1, 13), st.integers(0, 5), st.integers(0, 4))
COLUMNS = st.one_of(st.integers(1, 80), st.sampled_from([255, 256, 257, 511, 513, 530, 1100]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), ROWS, COLUMNS, st.sampled_from(["float32", "float64"]), st.booleans(), st.integers(0, 7))
def test_products(seed: int, rows: Any, columns: int, dtype: str, centre_row: bool, first: int) -> None:
    own, messages, anchors = pool_of(seed, rows, columns, dtype)
    first = min(first, columns)
    got = np.full((sum(rows) + centre_row,) * 2, np.nan)
    centred_products(own, messages, anchors, centre_row, first, columns, got)
    wide = np.concatenate([own, messages, anchors]).astype(np.float64)[:, first:]
    centre = wide[: rows[0]].mean(axis=0)
    basis = np.concatenate([wide - centre, centre[None][: int(centre_row)]])
    np.testing.assert_allclose(got, basis @ basis.T, rtol=0, atol=EPS[dtype] * 10 * max(1, columns))
    np.testing.assert_array_equal(got, got.T)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), ROWS, COLUMNS, st.sampled_from(["float32", "float64"]), st.integers(1, 9), st.integers(0, 7))
def test_mixtures(seed: int, rows: Any, columns: int, dtype: str, receivers: int, first: int) -> None:
    own, messages, anchors = pool_of(seed, rows, columns, dtype)
    generator = np.random.default_rng(seed)
    weights = generator.normal(size=(receivers, sum(rows))).astype(dtype)
    sums = generator.normal(size=receivers).astype(dtype)
    first = min(first, columns)
    got = np.full((receivers, columns), np.nan, dtype)
    centred_mix(own, messages, anchors, weights, sums, first, columns, got)
    wide = np.concatenate([own, messages, anchors]).astype(np.float64)
    centre = wide[: rows[0]].mean(axis=0)
    expected = sums[:, None] * centre + weights @ (wide - centre)
    assert np.isnan(got[:, :first]).all()
    np.testing.assert_allclose(got[:, first:], expected[:, first:], rtol=0, atol=EPS[dtype] * 100)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_order_of_a_sum_is_the_same_wherever_a_block_begins(dtype: str) -> None:
    """Columns that end with a whole block or overlap the one before are mixed alike, bit for bit."""
    own, none, _ = pool_of(1, (5, 0, 0), 1000, dtype)
    weights, sums = np.random.default_rng(0).normal(size=(3, 5)).astype(dtype), np.ones(3, dtype)
    whole, parts = np.empty((3, 1000), dtype), np.empty((3, 1000), dtype)
    centred_mix(own, none, none, weights, sums, 0, 1000, whole)
    for first, last in ((0, 3), (3, 500), (500, 611), (611, 1000)):
        centred_mix(own, none, none, weights, sums, first, last, parts)
    np.testing.assert_array_equal(whole, parts)


def test_rows_with_gaps_give_the_same() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 200))
    gaps, copy = Pool(rows[:, ::2]), Pool(rows[:, ::2].copy())
    np.testing.assert_array_equal(gaps.inner, copy.inner)
    np.testing.assert_array_equal(gaps.basis.mix(np.eye(4)[:2]), copy.basis.mix(np.eye(4)[:2]))

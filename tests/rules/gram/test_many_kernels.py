"""Products by tiles against the formula in float64, whatever the numbers of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.rules.gram.many_kernels import many_products

ROWS = st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(0, 4))
COLUMNS = st.one_of(st.integers(1, 80), st.sampled_from([639, 640, 641, 1300, 8000]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), ROWS, COLUMNS, st.sampled_from(["float32", "float64"]), st.booleans(), st.integers(0, 7))
def test_products(seed: int, rows: Any, columns: int, dtype: str, centre_row: bool, first: int) -> None:
    generator = np.random.default_rng(seed)
    own, messages, anchors = (generator.normal(3.0, size=(count, columns)).astype(dtype) for count in rows)
    first = min(first, columns)
    got = np.full((sum(rows) + centre_row,) * 2, np.nan)
    many_products(own, messages, anchors, centre_row, first, columns, got)
    wide = np.concatenate([own, messages, anchors]).astype(np.float64)[:, first:]
    centre = wide[: rows[0]].mean(axis=0)
    basis = np.concatenate([wide - centre, centre[None][: int(centre_row)]])
    rounding = {"float32": 1e-6, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(got, basis @ basis.T, rtol=0, atol=rounding * 10 * max(1, columns))
    np.testing.assert_array_equal(got, got.T)


def test_small_differences_of_large_vectors_keep_their_digits() -> None:
    generator = np.random.default_rng(0)
    rows = (100.0 + 1e-3 * generator.normal(size=(50, 9000))).astype(np.float32)
    got = np.empty((50, 50))
    many_products(rows[:1], rows[1:], rows[:0], False, 0, 9000, got)
    gap = rows.astype(np.float64) - rows[0]
    np.testing.assert_allclose(got, gap @ gap.T, rtol=0, atol=2e-6 * (gap**2).sum(axis=1).max())

"""Medians and trimmed means by weights against their loop-written definitions: ties, no weight, several blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from byzmesh.rules.ranks import weighted
from tests.rules.oracles import weighted_coo_med, weighted_tri_mean


def case(seed: int, columns: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Rows with ties; (R, K) slots, some absent, some without weight; for even seeds all others weigh alike."""
    random = np.random.default_rng(seed)
    slots = int(random.integers(1, 9))
    rows = np.round(random.normal(size=(10, columns)) * 2) / 2 + random.normal(size=(10, 1)) * random.integers(2)
    index = np.array([random.permutation(10)[:slots] for _ in range(4)])
    present = random.random((4, slots)) < 0.8
    weight = np.where(random.random((4, slots)) < 0.1, 0.0, random.random((4, slots)) if seed % 2 else 0.5)
    present[:, 0], weight[:, 0] = True, 0.5
    return rows.astype(dtype), index, present, weight / weight.sum(axis=1, keepdims=True)


def farthest(trimmed: bool, columns: int, dtype: Any) -> float:
    """How far the compiled function is from its oracle, at most, over some cases."""
    worst = 0.0
    for seed in range(20):
        rows, index, present, weight = case(seed, columns, dtype)
        counts = present & (weight > 0.0)
        heard = [[k for k in range(1, index.shape[1]) if counts[n, k]] for n in range(len(index))]
        cut = np.array([max((weight[n, k] for k in slots), default=0.0) for n, slots in enumerate(heard)])
        if trimmed:
            got = weighted.weighted_trimmed_mean(rows, index, present, weight, cut)
        else:
            got = weighted.weighted_median(rows, index, present, weight)
        for n, slots in enumerate(heard):
            oracle = partial(weighted_tri_mean, f=1) if trimmed else weighted_coo_med
            want = oracle(rows[index[n, 0]], rows[index[n, slots]], weight[n, [0, *slots]])
            worst = max(worst, float(np.abs(got[n] - want).max()))
    return worst


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 5, 300])
@pytest.mark.parametrize("trimmed", [False, True])
def test_the_oracle_says_the_same(trimmed: bool, columns: int, dtype: Any) -> None:
    assert farthest(trimmed, columns, dtype) < (1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("trimmed", [False, True])
def test_weights_that_stay_behind_when_values_move_are_noticed(monkeypatch: pytest.MonkeyPatch, trimmed: bool) -> None:
    """The mutant sorts the values and leaves the weights where they were."""
    for name in ("_sort", "_take_middle", "_add_between", "_heard", "_median", "_trimmed", "_read"):
        monkeypatch.setattr(weighted, name, getattr(weighted, name).py_func)

    def forgetful(low: Any, high: Any, *_: Any) -> None:
        low[:], high[:] = np.minimum(low, high), np.maximum(low, high)

    monkeypatch.setattr(weighted, "_exchange", forgetful)
    assert farthest(trimmed, 5, np.float64) > 1e-3

"""Inboxes of whole networks: what is too far away is treated alike, whoever sent it and however it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.rules.inbox import FARTHEST

CLIPPING = ["CC", "SCC", "CS+", "ClippedGossip", "GeoMed", "IOS", "Reprieve", "NNA", "TriMean", "BALANCE"]
NETWORKS = [
    ("paper/two-castle", {}),
    ("ring", {"n": 60, "byzantine": [3, 30]}),
    ("complete", {"n": 50, "byzantine": [4]}),
]
"""One for each way of computing products: fused kernels, blocks, BLAS."""


def lied_to(network: Any, models: np.ndarray, towards: np.ndarray, far: float) -> Any:
    """Every liar tells every victim the same lie, this far off."""
    pairs = bm.forge("zero", network, models)
    rows: np.ndarray = np.tile((far * towards).astype(models.dtype), (int(pairs.row.max()) + 1, 1))
    return bm.Forged(pairs.liar, pairs.victim, pairs.row, models, rows=rows)


@pytest.mark.parametrize("name", CLIPPING)
@pytest.mark.parametrize(("topology", "parameters"), NETWORKS, ids=str)
def test_far_lies_move_nobody_farther_than_near_ones(name: str, topology: str, parameters: dict[str, Any]) -> None:
    network = bm.network(topology, **parameters)
    random = np.random.default_rng(5)
    models, towards = random.normal(size=(len(network.honest), 40)), random.uniform(0.5, 1.0, 40)
    towards /= towards.max()
    f = 0 if topology == "ring" and name in ("CS+", "TriMean") else 1
    want = bm.aggregate_all(name, network, models, lied_to(network, models, towards, 1e9), f=f).models
    if not np.abs(want).max() < 1e3:
        return  # f = 0: the rule is a mean
    for dtype in (np.float32, np.float64):
        for far in (1e36, float(np.finfo(dtype).max)):
            held: np.ndarray = models.astype(dtype)
            lies = lied_to(network, held, towards, far)
            got = bm.aggregate_all(name, network, held, lies, f=f).models
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)
            tensors = bm.Forged(lies.liar, lies.victim, lies.row, held, rows=torch.from_numpy(lies.rows))
            same = bm.aggregate_all(name, network, torch.from_numpy(held), tensors, f=f).models
            np.testing.assert_array_equal(same.numpy(), got)


@pytest.mark.parametrize("name", ["CC", "SCC", "CS+", "ClippedGossip", "GeoMed", "IOS"])
def test_lies_that_combine_honest_models_may_be_far_too(name: str) -> None:
    network = bm.network("paper/two-castle")
    models = np.random.default_rng(6).normal(size=(10, 40))
    near = bm.aggregate_all(name, network, models, bm.forge("ipm", network, models, eps=1e12)).models
    far = bm.aggregate_all(name, network, models, bm.forge("ipm", network, models, eps=1e300)).models
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["CC", "SCC", "CS+", "ClippedGossip", "GeoMed", "IOS", "WeiMean"])
def test_an_honest_worker_that_diverges_does_not_take_others_along(name: str) -> None:
    network = bm.network("paper/two-castle", byzantine=[])
    models = np.random.default_rng(7).normal(size=(12, 40))
    results = []
    for far in (1e12, 1e200):
        models[4] = far
        results.append(bm.aggregate_all(name, network, models, f=1).models)
        assert np.isfinite(results[-1]).all()
    if name == "WeiMean":
        assert FARTHEST / 20 < np.abs(np.delete(results[1], 4, axis=0)).max() < FARTHEST
    else:
        rest = [np.delete(models, 4, axis=0) for models in results]
        np.testing.assert_allclose(rest[1], rest[0], rtol=0, atol=1e-6)

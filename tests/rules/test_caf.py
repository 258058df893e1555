"""CAF where its direction is not unique, and where lies repeat each other."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from tests.rules.oracles import ORACLES


def rotation(random: np.random.Generator, dimension: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(random.normal(size=(dimension, dimension)))[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_of_equal_variance_count_together(dtype: type) -> None:
    """Three vectors around the others, in a plane of equal variance: all three go at once, or by f = 1 none of them."""
    random = np.random.default_rng(1)
    angle = 2.0 * np.pi * np.arange(3) / 3.0
    for _ in range(10):
        vectors = np.zeros((8, 7))
        vectors[:5, 2:] = 0.1 * random.normal(size=(5, 5))
        vectors[5:, 0], vectors[5:, 1] = np.cos(angle), np.sin(angle)
        turned: np.ndarray = (random.permutation(vectors) @ rotation(random, 7)).astype(dtype)
        out = bm.aggregate("caf", turned[0], turned[1:], f=1)
        np.testing.assert_allclose(out, turned.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("far", [1e2, 1e6, 1e12])
def test_lies_that_repeat_each_other_are_removed(far: float) -> None:
    random = np.random.default_rng(5)
    honest = random.normal(size=(7, 5))
    lies = far + random.choice([0.0, 1e-3], size=(6, 1)) * random.normal(size=(6, 5))
    out = bm.aggregate("caf", honest[0], np.concatenate([lies[:3], honest[1:], lies[3:]]), f=6)
    np.testing.assert_allclose(out, honest.mean(axis=0), atol=0.2)
    assert np.abs(out).max() < np.abs(honest).max()


def test_one_receiver_of_many_equals_itself_alone() -> None:
    """Receivers stop after different numbers of passes."""
    network = bm.network("erdos-renyi", n=30, p=0.4, seed=3, byzantine=[4, 9])
    random = np.random.default_rng(6)
    models = random.normal(size=(28, 6)) * np.exp(random.normal(size=(28, 1)))
    forged = bm.forge("gaussian", network, models)
    bounds = {int(worker): int(worker) % 3 for worker in network.honest}
    out = bm.aggregate_all("caf", network, models, forged, f=bounds)
    row_of = {int(worker): row for row, worker in enumerate(network.honest)}
    for worker, row in row_of.items():
        received = [
            models[row_of[near]] if near in row_of else forged[near, worker]
            for near in map(int, network.neighbours(worker))
        ]
        equal = np.full(len(received) + 1, 1.0 / (len(received) + 1))
        want = ORACLES["CAF"](models[row], received, equal, bounds[worker])
        np.testing.assert_allclose(out.models[row], want, atol=1e-9)

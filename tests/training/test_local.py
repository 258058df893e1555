"""Local updates against their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.training.local import LocalOptions, local_update


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("momentum", ["none", "heavy-ball", "exponential"])
def test_local_update_follows_its_formula(momentum: str, dtype: type) -> None:
    generator = np.random.default_rng(0)
    update = local_update(LocalOptions(decay=0.01, momentum=momentum, beta=0.8))
    models: np.ndarray = generator.normal(size=(3, 50)).astype(dtype)
    state = update.init(models)
    wide, velocity = models.astype(np.float64), np.zeros((3, 50))
    for k in range(5):
        gradients: np.ndarray = generator.normal(size=(3, 50)).astype(dtype)
        before = gradients.copy()
        half = np.empty_like(models)
        state = update.apply(models, gradients, 0.5 / (k + 1), state, half)
        np.testing.assert_array_equal(gradients, before)
        direction = gradients.astype(np.float64)
        if momentum != "none":
            velocity = 0.8 * velocity + (0.2 if momentum == "exponential" else 1.0) * direction
            direction = velocity
        wide = (1 - 0.01 * 0.5 / (k + 1)) * wide - 0.5 / (k + 1) * direction
        np.testing.assert_allclose(half, wide, rtol=0, atol=20 * float(np.finfo(dtype).eps))
        assert half.dtype == dtype
        models = half
    assert (state is None) == (momentum == "none")


@pytest.mark.parametrize("momentum", ["none", "heavy-ball"])
def test_local_update_may_write_over_its_inputs(momentum: str) -> None:
    update = local_update(LocalOptions(decay=0.1, momentum=momentum))
    models, gradients = np.ones((2, 70)), np.full((2, 70), 2.0)
    results = []
    for target in ("new", "models", "gradients"):
        x, g = models.copy(), gradients.copy()
        out = {"new": np.empty_like(x), "models": x, "gradients": g}[target]
        update.apply(x, g, 0.1, update.init(x), out)
        results.append(out)
    np.testing.assert_allclose(results[0], 0.79)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_resumed_momentum_continues() -> None:
    """The state is all that the next round needs."""
    generator = np.random.default_rng(1)
    gradients = generator.normal(size=(6, 2, 9))
    update = local_update(LocalOptions(momentum="heavy-ball"))
    models = np.zeros((2, 9))
    state = update.init(models)
    for k in range(6):
        if k == 3:
            models, state = models.copy(), None if state is None else state.copy()
            update = local_update(LocalOptions(momentum="heavy-ball"))
        state = update.apply(models, gradients[k], 0.1, state, models)
    straight, held = np.zeros((2, 9)), np.zeros((2, 9))
    for k in range(6):
        held = 0.9 * held + gradients[k]
        straight = straight - 0.1 * held
    np.testing.assert_allclose(models, straight, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decay": -0.1}, "decay must be a number of at least 0, got -0.1"),
        ({"momentum": "nesterov"}, "momentum must be none, heavy-ball or exponential, got 'nesterov'"),
        ({"beta": 1.0}, "beta must be a number in \\[0, 1\\), got 1.0"),
        ({"beta": "x"}, "beta must be a number in \\[0, 1\\), got 'x'"),
    ],
)
def test_local_update_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        LocalOptions(**options)

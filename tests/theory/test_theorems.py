"""The theorems in numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.theory.constants import constants_of, estimate_constants, linear_model_smoothness
from byzmesh.theory.theorems import corollary_1, delta, omega, promise, step_limit_1, step_limit_2, theorem_1, theorem_2

PROBLEM: dict[str, Any] = {"smoothness": 2.0, "delta_in": 1.0, "delta_out": 2.0}


def test_by_hand() -> None:
    assert omega(0.9, 0.0125, 16) == pytest.approx(0.5)
    assert delta(0.5) == 48.0
    assert step_limit_1(2.0) == pytest.approx(1 / (4 * math.sqrt(3)))
    assert step_limit_2(2.0, 0.5) == pytest.approx(math.sqrt(1.5 * 0.25 / 5) / 6)
    assert theorem_2(0.1, 0.5, 1.0, 2.0) == pytest.approx(0.01 * 48 * 5)
    # e = 0.0125^2 * 16 + 0.01 = 0.0125
    assert corollary_1(0.0125, 0.01, 16, 0.5, 1.0, 2.0) == pytest.approx((96 + 36 * 48) * 0.0125 * 5)
    value = theorem_1(
        step=0.1, rounds=100, workers=16, rho=0.0125, chi2=0.01, gap=3.0, mean_disagreement=0.2, **PROBLEM
    )
    first, noise = 2 * 3.0 / 10, 2 * 0.1 * 2.0 / 16
    disagreement = (36 * 0.0125 + 3 * 0.01 * 4) / 0.01 * 0.2
    assert value == pytest.approx(first + noise + disagreement + 96 * 0.0125 * 5)


def test_without_contraction_only_theorem_1_is_left() -> None:
    for rho in (math.nan, math.inf, 1.0):
        told = promise(rate=0.9, rho=rho, chi2=0.0, workers=16, **PROBLEM)
        assert told.disagreement is None
        assert told.learning_error is None
        assert told.step == step_limit_1(2.0)
        assert told.step_limit_2 == 0.0


def test_a_step_beyond_the_limits_promises_nothing() -> None:
    told = promise(rate=1.0, rho=0.0, chi2=0.0, workers=4, step=0.3, rounds=10, gap=1.0, **PROBLEM)
    assert told.disagreement is None
    assert told.gradient is None


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 1.0), st.floats(0.0, 0.99), st.integers(2, 100))
def test_promises_are_monotone_in_rho(rate: float, share: float, workers: int) -> None:
    """More contraction error, weaker promises."""
    limit = rate / (8 * math.sqrt(workers))
    told = [
        promise(rate=rate, rho=rho, chi2=0.0, workers=workers, step=1e-6, rounds=10, gap=1.0, **PROBLEM)
        for rho in (0.0, share * limit * 0.5, share * limit)
    ]
    for less, more in pairwise(told):
        assert less.disagreement is not None
        assert more.disagreement is not None
        assert less.gradient is not None
        assert more.gradient is not None
        assert less.disagreement <= more.disagreement * (1 + 1e-12)
        assert less.gradient <= more.gradient * (1 + 1e-12)
        assert less.step_limit_2 >= more.step_limit_2 * (1 - 1e-12)


def test_theorem_2_holds_in_a_simulation() -> None:
    """Plain averaging on a ring with f_n = ||x - z_n||^2 / 2: L = 1, delta_in = 0, delta_out known."""
    from byzmesh.networks import network
    from byzmesh.theory.mixing import mixing_rate

    net = network("ring", n=8)
    centres = np.random.default_rng(0).normal(size=(8, 3))
    outer = float(np.sqrt(((centres - centres.mean(axis=0)) ** 2).sum(axis=1).max()))
    told = promise(
        rate=mixing_rate(net.mixing), rho=0.0, chi2=0.0, workers=8, smoothness=1.0, delta_in=0.0, delta_out=outer
    )
    models = np.zeros((8, 3))
    for _ in range(500):
        models = net.mixing @ (models - told.step * (models - centres))
        disagreement = ((models - models.mean(axis=0)) ** 2).sum(axis=1).mean()
        assert told.disagreement is not None
        assert disagreement <= told.disagreement


@pytest.mark.parametrize(
    ("change", "message"),
    [({"smoothness": 0.0}, "L must be"), ({"delta_in": -1.0}, "delta_in must be"), ({"step": math.nan}, "step must")],
)
def test_mistakes(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        promise(**{"rate": 0.9, "rho": 0.0, "chi2": 0.0, "workers": 4, **PROBLEM, **change})


def test_constants_of_a_quadratic() -> None:
    """Gradient A (x - z_n) plus noise of known size: L is the largest singular value seen, delta_out the spread."""
    scale = np.array([1.0, 4.0])
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])

    def full(x: Any) -> Any:
        return scale * (x - centres)

    def stochastic(x: Any, draw: int) -> Any:
        return full(x) + np.array([3.0, 4.0]) * (-1.0) ** draw

    found = constants_of(full, stochastic, [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], draws=2)
    assert found.smoothness == pytest.approx(4.0)
    assert found.delta_in == pytest.approx(5.0)
    offset = scale * (centres - centres.mean(axis=0))
    assert found.delta_out == pytest.approx(float(np.sqrt((offset**2).sum(axis=1).max())))
    assert found.how == {"L": "sampled", "delta_in": "sampled", "delta_out": "sampled"}
    assert constants_of(full, stochastic, [[0.0, 0.0]], smoothness=9.0).how["L"] == "given"


def test_softmax_smoothness_bounds_the_hessian() -> None:
    draw = np.random.default_rng(1)
    sample = np.append(draw.normal(size=3), 1.0)
    bound = linear_model_smoothness([sample[:3]], "softmax", decay=0.01)
    for _ in range(50):
        logits = draw.normal(size=4) * 3
        share = np.exp(logits) / np.exp(logits).sum()
        hessian = np.kron(np.diag(share) - np.outer(share, share), np.outer(sample, sample)) + 0.01 * np.eye(16)
        assert np.linalg.eigvalsh(hessian)[-1] <= bound + 1e-12


@pytest.mark.parametrize("problem", ["least-squares", {"name": "quadratic", "curvature": 3.0}, "softmax"])
def test_sampled_models_lie_on_the_way_down(problem: Any, few_digits: Path) -> None:
    """Every point is downhill of the one before: with steps of 8 / L least squares ran away to 3e8."""
    if isinstance(problem, str):
        problem = {"name": problem, "dataset": str(few_digits)}
    few = estimate_constants(problem, workers=3, points=1, draws=2)
    many = estimate_constants(problem, workers=3, points=9, draws=2)
    assert many.smoothness == few.smoothness
    assert few.delta_out <= many.delta_out <= 10.0 * few.delta_out + 1e-9
    assert few.delta_in <= many.delta_in <= 10.0 * few.delta_in + 1e-9


def test_constants_mistakes() -> None:
    with pytest.raises(ConfigError, match="P >= 2"):
        constants_of(lambda x: x[None], lambda x, k: x[None], [[0.0]])
    with pytest.raises(ConfigError, match="equal models"):
        constants_of(lambda x: x[None], lambda x, k: x[None], [[0.0], [0.0]])
    with pytest.raises(ConfigError, match="loss must be"):
        linear_model_smoothness([[1.0]], "hinge")

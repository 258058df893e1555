"""Lemmas 1 to 3 and the steps of Theorem 2's proof, evaluated directly; each with inputs on which it is an equality or
that say how far it is from one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.theory.algorithm_1 import PUSHES, Case, Vector, exchange, rate
from tests.theory.test_theorems_hold import drawn, uneven_ring

SEEDS = st.integers(0, 10**6)


def frobenius(matrix: Vector) -> float:
    return math.sqrt(sum(float(value) ** 2 for row in matrix for value in row))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(1, 4))
def test_lemma_1(seed: int, size: int, columns: int) -> None:
    """||A Z||_F <= ||A|| ||Z||_F; equal if the columns of Z are top singular vectors of A."""
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(size, size))
    largest = float(np.linalg.svd(matrix, compute_uv=False)[0])
    other = draw.normal(size=(size, columns))
    assert frobenius(matrix @ other) <= largest * frobenius(other) * (1 + 1e-12)
    top = np.outer(np.linalg.svd(matrix)[2][0], draw.normal(size=columns))
    assert frobenius(matrix @ top) == pytest.approx(largest * frobenius(top))


def half_disagreement(models: list[Vector], gradients: list[Vector], step: float, noise: Vector | None) -> float:
    """E H^{k+1/2} over independent noise of the workers, exactly: H of the mean half steps and the noise's share."""
    workers = len(models)
    half = [x - step * g for x, g in zip(models, gradients)]
    average = sum(half) / workers
    value = sum(float((x - average) @ (x - average)) for x in half) / workers
    if noise is not None:
        squares = [float(np.mean([one @ one for one in samples])) for samples in noise]
        value += step**2 * sum(squares) / workers * (1.0 - 1.0 / workers)
    return value


def lemma_2(v: float, case: Case, disagreement: float) -> tuple[float, float]:
    """The two parts of the right side of Lemma 2."""
    first = (1.0 / (1.0 - v) + 6.0 * case.step**2 * case.smoothness**2 / v) * disagreement
    return first, 4.0 * case.step**2 / v * (case.delta_in**2 + case.delta_out**2)


def test_the_expectation_of_lemma_2_is_exact() -> None:
    """Against all 2^3 outcomes of three workers' coins."""
    draw = np.random.default_rng(0)
    models, gradients = list(draw.normal(size=(3, 2))), list(draw.normal(size=(3, 2)))
    up = draw.normal(size=(3, 2))
    noise = np.stack([up, -up], axis=1)
    outcomes = [
        half_disagreement(models, [g + noise[n, choice[n]] for n, g in enumerate(gradients)], 0.3, None)
        for choice in product((0, 1), repeat=3)
    ]
    assert half_disagreement(models, gradients, 0.3, noise) == pytest.approx(np.mean(outcomes))


@pytest.mark.parametrize(("noisy", "differ"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("push", PUSHES)
def test_lemma_2_along_runs(push: str, noisy: bool, differ: bool) -> None:
    """In every round, for several v; at H = 0 and v near 1, where it is sharpest, it is within 4 / (1 - 1/N) and 10."""
    sharpest = math.inf
    for seed in range(4):
        case = drawn(seed, even=seed % 2 == 0, slow=False, push=push, level=3.0, noisy=noisy, differ=differ)
        draw = np.random.default_rng(seed)
        models = [case.start.copy() for _ in range(case.workers)]
        for _ in range(case.rounds):
            average = sum(models) / case.workers
            before = sum(float((x - average) @ (x - average)) for x in models) / case.workers
            gradients = [case.slope(n, models[n]) for n in range(case.workers)]
            left = half_disagreement(models, gradients, case.step, case.noise)
            for v in (0.1, 0.3, 0.5, 0.9, 0.999):
                parts = lemma_2(v, case, before)
                assert left <= sum(parts) * (1 + 1e-9)
                assert left > parts[0] or before > 0.0, "the variations can be dropped"
                sharpest = min(sharpest, sum(parts) / left) if left > 0.0 else sharpest
            if case.noise is not None:
                gradients = [g + case.noise[n, draw.integers(4)] for n, g in enumerate(gradients)]
            models = exchange(case, [x - case.step * g for x, g in zip(models, gradients)])
    assert sharpest < (5.1 if not differ else 10.0)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(1, 4))
def test_lemma_3(seed: int, kept: int, dropped: int) -> None:
    """A partial weighted mean against the whole one; equal if one point is dropped."""
    draw = np.random.default_rng(seed)
    weight = draw.uniform(0.1, 2.0, kept + dropped)
    points = draw.normal(size=(kept + dropped, 3))
    part = sum(weight[n] * points[n] for n in range(kept)) / sum(weight[:kept])
    whole = sum(weight[n] * points[n] for n in range(kept + dropped)) / sum(weight)
    gone = range(kept, kept + dropped)
    apart = float(np.linalg.norm(part - whole))
    first = sum(weight[kept:]) / sum(weight) * max(float(np.linalg.norm(points[n] - part)) for n in gone)
    second = sum(weight[kept:]) / sum(weight[:kept]) * max(float(np.linalg.norm(points[n] - whole)) for n in gone)
    assert apart <= first * (1 + 1e-9)
    assert apart <= second * (1 + 1e-9)
    if dropped == 1:
        assert first == pytest.approx(apart)
        assert second == pytest.approx(apart)


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("level", [0.0, 0.5, 0.99])
def test_one_exchange_contracts_as_the_proof_of_theorem_2_says(push: str, level: float) -> None:
    """||(I - J) X^{k+1}||^2 <= (1 - lambda + 8 rho sqrt N) ||(I - J) X^{k+1/2}||^2; equal for rho = 0 on the slowest
    mode, so that a smaller factor is noticed."""
    factors: list[float] = []
    for seed in range(6):
        draw = np.random.default_rng(seed)
        mixing = uneven_ring(5, draw)
        rho = level * rate(mixing) / (8.0 * math.sqrt(5))
        case = drawn(seed, even=True, slow=False, push=push, level=0.0, noisy=False, differ=True)
        case = Case(**{**vars(case), "mixing": mixing, "rho": rho})
        centred = np.array(mixing) - np.array(mixing).mean(axis=0)
        slowest = np.linalg.svd(centred)[2][0]
        for shape in (np.outer(slowest, [1.0, 0.0]), draw.normal(size=(5, 2))):
            after = np.array(exchange(case, list(shape)))
            before = frobenius(shape - shape.mean(axis=0)) ** 2
            factors.append(frobenius(after - after.mean(axis=0)) ** 2 / before)
            assert factors[-1] <= 1.0 - rate(mixing) + 8.0 * rho * math.sqrt(5) + 1e-12
        if level == 0.0:
            assert factors[-2] == pytest.approx(1.0 - rate(mixing))

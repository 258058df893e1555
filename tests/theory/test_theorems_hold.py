"""Theorems 1 and 2 against runs of Algorithm 1 under the worst rules that Definition 1 allows, all written with loops.

The theorems must hold in every case, and every term must be needed: without it, or divided by the number in `SHARP`,
some case breaks the inequality. The numbers say how sharp the inequalities are: even the sharpest term, 2 gap/(step K),
is twice what a run can attain, so that a test cannot see a constant that is merely halved.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from byzmesh.theory.comparison import Terms, Trace, compare
from tests.theory.algorithm_1 import (
    PUSHES,
    Case,
    Vector,
    allowed_1,
    allowed_2,
    chi2,
    omega_of,
    rate,
    run,
    terms_1,
    terms_2,
    together,
)

TWO: dict[str, Any] = {"start": np.zeros(1), "smoothness": 1.0, "delta_in": 0.0, "delta_out": 1.0, "gap": 0.0}
"""Two workers that pull to 1 and -1, from 0."""


def pulls(n: int, x: Vector) -> Vector:
    return x - (-1.0) ** n


def same(n: int, x: Vector) -> Vector:
    return x


def kinked(n: int, x: Vector) -> Vector:
    """Huber losses around 1 and -1 with slopes up to 1 and 0.2: L = 1, f* at 0.8, and delta_out = 0.6 at 0."""
    return np.clip(x - (1.0, -1.0)[n], -(1.0, 0.2)[n], (1.0, 0.2)[n])


def two(a: float, b: float) -> list[list[float]]:
    return [[1.0 - a, a], [b, 1.0 - b]]


COIN = np.array([[[1.0], [-1.0]]] * 2)
QUIET = {**TWO, "delta_out": 0.0}
SHARP: dict[str, tuple[float, Case]] = {
    "gap": (
        2.1,
        Case(
            name="descent",
            mixing=two(0.5, 0.5),
            slope=same,
            step=0.02,
            rounds=250,
            **{**QUIET, "start": np.ones(1), "gap": 0.5},
        ),
    ),
    "noise": (
        4.0,
        Case(
            name="noise",
            mixing=two(0.5, 0.5),
            slope=same,
            step=0.28,
            rounds=400,
            noise=COIN,
            draws=20,
            **{**QUIET, "delta_in": 1.0},
        ),
    ),
    "L^2 H": (
        13.0,
        Case(
            name="kinks",
            mixing=two(0.02, 0.02),
            slope=kinked,
            step=0.02,
            rounds=4000,
            **{**TWO, "start": np.array([0.8]), "delta_out": 0.6},
        ),
    ),
    "rho^2 N H": (
        25.0,
        Case(
            name="slow and pushed",
            mixing=two(0.02, 0.02),
            slope=pulls,
            step=0.004,
            rounds=5000,
            rho=0.01,
            push=together,
            **TWO,
        ),
    ),
    "chi^2 H": (140.0, Case(name="slow", mixing=two(0.06, 0.02), slope=pulls, step=0.004, rounds=5000, **TWO)),
    "rho^2 N delta^2": (
        215.0,
        Case(
            name="pushed",
            mixing=two(0.5, 0.5),
            slope=pulls,
            step=0.01,
            rounds=1500,
            rho=0.08,
            push=together,
            **TWO,
        ),
    ),
    "chi^2 delta^2": (
        98.0,
        Case(name="uneven", mixing=[[0.75, 0.25]] * 2, slope=pulls, step=0.05, rounds=2000, **TWO),
    ),
}
"""A term of Theorem 1, a number by which it cannot be divided, and the case that shows it."""


@pytest.mark.parametrize("term", SHARP)
def test_theorem_1_needs_each_of_its_terms(term: str) -> None:
    factor, case = SHARP[term]
    assert allowed_1(case)
    disagreement, gradient = run(case)
    left = sum(gradient[1:]) / case.rounds
    right = terms_1(case, disagreement)
    assert 0.0 < left <= sum(right.values())
    assert left > sum(right.values()) - right[term], "the term can be dropped"
    assert left > sum(right.values()) - right[term] * (1.0 - 1.0 / factor), "the term can be that much smaller"


SHARP_2 = {
    "delta_out": (7.3, Case(name="halfway", mixing=two(0.25, 0.25), slope=pulls, step=0.01, rounds=500, **TWO)),
    "delta_in": (
        21.0,
        Case(
            name="noisy",
            mixing=two(0.4, 0.4),
            slope=same,
            step=0.05,
            rounds=60,
            noise=COIN,
            draws=60,
            **{**QUIET, "delta_in": 1.0},
        ),
    ),
}


@pytest.mark.parametrize("term", SHARP_2)
def test_theorem_2_needs_each_of_its_terms(term: str) -> None:
    factor, case = SHARP_2[term]
    assert allowed_2(case)
    disagreement, _ = run(case)
    right = terms_2(case)
    assert 0.0 < max(disagreement) <= sum(right.values())
    assert max(disagreement) > sum(right.values()) - right[term] * (1.0 - 1.0 / factor)


def uneven_ring(workers: int, generator: np.random.Generator) -> list[list[float]]:
    """A ring with one chord and uneven weights: rows sum to 1, columns do not."""
    weight = np.zeros((workers, workers))
    for n in range(workers):
        for m in (n - 1, n, (n + 1) % workers):
            weight[n, m] = generator.uniform(0.3, 1.0)
    weight[0, workers // 2] = 0.5
    return [[float(value) for value in row / row.sum()] for row in weight]


def drawn(seed: int, *, even: bool, slow: bool, push: str, level: float, noisy: bool, differ: bool) -> Case:
    """A random case: 5 workers in the plane; rho is `level` of rho*, the step the largest of both theorems or less."""
    generator = np.random.default_rng(seed)
    workers, size = 5, 2
    mixing = [[0.2] * workers for _ in range(workers)] if even else uneven_ring(workers, generator)
    centres = generator.normal(size=(workers, size)) * differ
    centres -= centres.mean(axis=0)
    curvature = float(generator.uniform(0.5, 3.0))
    noise = generator.normal(size=(workers, 4, size))
    noise -= noise.mean(axis=1, keepdims=True)
    noise /= np.sqrt((noise**2).sum(axis=2).mean(axis=1))[:, None, None]
    start = generator.normal(size=size)
    case = Case(
        name=f"drawn {seed}",
        mixing=mixing,
        slope=lambda n, x: curvature * (x - centres[n]),
        start=start,
        step=1.0,
        rounds=40,
        smoothness=curvature,
        delta_in=float(noisy),
        delta_out=curvature * max(float(np.linalg.norm(centre)) for centre in centres),
        gap=0.5 * curvature * float(start @ start),
        noise=noise if noisy else None,
        rho=level * rate(mixing) / (8.0 * math.sqrt(workers)),
        push=PUSHES[push],
        draws=8 if noisy else 1,
    )
    limit = 1.0 / (2.0 * math.sqrt(3.0) * curvature)
    omega = omega_of(case)
    if omega > 0.0:
        limit = min(limit, math.sqrt((2.0 - omega) * omega**2 / (6.0 - 2.0 * omega)) / (3.0 * curvature))
    return replace(case, step=limit * (0.1 if slow else 1.0))


CHOICES = list(product((False, True), (False, True), PUSHES, (0.0, 0.5, 0.95, 6.0), ((1, 1), (1, 0), (0, 1))))


@pytest.mark.parametrize("seed", range(0, len(CHOICES), 3))
def test_the_theorems_hold(seed: int) -> None:
    """Steps, adversaries, noise, chi^2 = 0 and above, rho below and above rho*: every third of all combinations."""
    even, slow, push, level, (noisy, differ) = CHOICES[seed]
    case = drawn(seed, even=even, slow=slow, push=push, level=level, noisy=bool(noisy), differ=bool(differ))
    assert allowed_1(case)
    assert even == (chi2(case.mixing) < 1e-12)
    disagreement, gradient = run(case)
    assert sum(gradient[1:]) / case.rounds <= sum(terms_1(case, disagreement).values())
    if level < 1.0:
        assert allowed_2(case)
        assert max(disagreement) <= sum(terms_2(case).values()) * (1 + 1e-9) + 1e-25
    else:
        assert not allowed_2(case)


@pytest.mark.parametrize("case", [case for _, case in [*SHARP.values(), *SHARP_2.values()]], ids=lambda case: case.name)
def test_the_library_has_the_same_sides(case: Case) -> None:
    """`compare` on the trace of the loops: the same left and right sides, to rounding."""
    disagreement, gradient = run(case)
    trace = Trace(
        disagreement=np.array([disagreement]),
        gradient=np.array([gradient]),
        contraction=np.full((1, case.rounds), case.rho),
        largest=1.0,
        epsilon=2.0**-52,
    )
    terms = Terms(
        workers=case.workers,
        rounds=case.rounds,
        step=case.step,
        rate=rate(case.mixing),
        connected=True,
        rho=case.rho,
        chi2=chi2(case.mixing),
        smoothness=case.smoothness,
        delta_in=case.delta_in,
        delta_out=case.delta_out,
        gap=case.gap,
    )
    told = {comparison.name: comparison for comparison in compare(terms, trace)}
    first = told["Theorem 1"]
    assert first.status == "held"
    assert first.left == pytest.approx(sum(gradient[1:]) / case.rounds)
    assert first.right == pytest.approx(sum(terms_1(case, disagreement).values()))
    second = told["Theorem 2"]
    assert (second.status == "held") == allowed_2(case)
    if allowed_2(case):
        assert second.left == pytest.approx(max(disagreement))
        assert second.right == pytest.approx(sum(terms_2(case).values()))
    third = told["Corollary 1"]
    assert (third.status == "held") == (allowed_2(case) and chi2(case.mixing) < 1e-12)
    if third.status == "held":
        promised = [sum(terms_2(case).values())] * (case.rounds + 1)
        assert third.right == pytest.approx(sum(terms_1(case, promised).values()))

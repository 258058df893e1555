"""Algorithm 1 and both sides of its theorems, written with loops straight from the paper.

The rules are the worst that Definition 1 allows: every worker ends exactly rho max_m ||x_m - xbar_n|| away from xbar_n,
in a direction that an adversary chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Vector: TypeAlias = Any
"""(D,) a model; sums of them start from 0, which has no dimension."""
Push = Callable[[int, list[Vector], list[Vector], float], Vector]
"""(worker, the x_m, the xbar_n, length of the move) -> the move of this worker."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run: W, honest losses by their gradients, noise, and an adversary.

    slope(n, x)   gradient of f_n at x; smoothness and delta_out belong to it, and so does gap = f(x^0) - f*
    noise         (N, samples, D), each worker's samples with mean 0 and mean square delta_in^2
    """

    name: str
    mixing: list[list[float]]
    slope: Callable[[int, Vector], Vector]
    start: Vector
    step: float
    rounds: int
    smoothness: float
    delta_in: float
    delta_out: float
    gap: float
    noise: Vector | None = None
    rho: float = 0.0
    push: Push | None = None
    draws: int = 1

    @property
    def workers(self) -> int:
        return len(self.mixing)


def run(case: Case) -> tuple[list[float], list[float]]:
    """(E H^k, E ||grad f(xbar^k)||^2) for k = 0 ... K, means over the draws."""
    total = [[0.0, 0.0] for _ in range(case.rounds + 1)]
    for draw in range(case.draws):
        generator = np.random.default_rng([draw, 77])
        models = [case.start.copy() for _ in range(case.workers)]
        for k in range(case.rounds + 1):
            average = sum(models) / case.workers
            total[k][0] += sum(float((x - average) @ (x - average)) for x in models) / case.workers
            slope = sum(case.slope(n, average) for n in range(case.workers)) / case.workers
            total[k][1] += float(slope @ slope)
            half = []
            for n in range(case.workers):
                gradient = case.slope(n, models[n])
                if case.noise is not None:
                    gradient = gradient + case.noise[n, generator.integers(case.noise.shape[1])]
                half.append(models[n] - case.step * gradient)
            models = exchange(case, half)
    return [h / case.draws for h, _ in total], [g / case.draws for _, g in total]


def exchange(case: Case, half: list[Vector]) -> list[Vector]:
    """One exchange: xbar_n, and a move of length rho max_m ||x_m - xbar_n|| in the adversary's direction."""
    virtual = [sum(case.mixing[n][m] * half[m] for m in range(case.workers)) for n in range(case.workers)]
    after = []
    for n in range(case.workers):
        near = [m for m in range(case.workers) if case.mixing[n][m] > 0.0 or m == n]
        far = max(float(np.linalg.norm(half[m] - virtual[n])) for m in near)
        move = case.push(n, half, virtual, case.rho * far) if case.push is not None else 0.0 * half[n]
        assert np.linalg.norm(move) <= case.rho * far * (1.0 + 1e-9)
        after.append(virtual[n] + move)
    return after


def rate(mixing: list[list[float]]) -> float:
    """lambda = 1 - ||(I - 11^T/N) W||^2."""
    size = len(mixing)
    centred = [[mixing[i][j] - sum(mixing[k][j] for k in range(size)) / size for j in range(size)] for i in range(size)]
    return 1.0 - float(np.linalg.svd(np.array(centred), compute_uv=False)[0]) ** 2


def chi2(mixing: list[list[float]]) -> float:
    """||W^T 1 - 1||^2 / N."""
    size = len(mixing)
    return sum((sum(mixing[i][j] for i in range(size)) - 1.0) ** 2 for j in range(size)) / size


def omega_of(case: Case) -> float:
    return rate(case.mixing) - 8.0 * case.rho * math.sqrt(case.workers)


def allowed_1(case: Case) -> bool:
    """Whether the step is one of Theorem 1's."""
    return case.step <= 1.0 / (2.0 * math.sqrt(3.0) * case.smoothness) * (1 + 1e-12)


def allowed_2(case: Case) -> bool:
    """Whether rho < rho* and the step is one of Theorem 2's."""
    omega = omega_of(case)
    limit = math.sqrt((2.0 - omega) * omega**2 / (6.0 - 2.0 * omega)) / (3.0 * case.smoothness) if omega > 0 else 0.0
    return omega > 0.0 and case.step <= limit * (1 + 1e-12)


def terms_1(case: Case, disagreement: list[float]) -> dict[str, float]:
    """The right side of Theorem 1 by its terms: rho^2 N and chi^2 apart."""
    squares = case.delta_in**2 + case.delta_out**2
    mean = sum(disagreement[1:]) / case.rounds
    estimation, mixing = case.rho**2 * case.workers, chi2(case.mixing)
    return {
        "gap": 2.0 * case.gap / (case.step * case.rounds),
        "noise": 2.0 * case.step * case.delta_in**2 * case.smoothness / case.workers,
        "L^2 H": 3.0 * case.smoothness**2 * mean,
        "rho^2 N H": 36.0 * estimation / case.step**2 * mean,
        "chi^2 H": 36.0 * mixing / case.step**2 * mean,
        "rho^2 N delta^2": 96.0 * estimation * squares,
        "chi^2 delta^2": 96.0 * mixing * squares,
    }


def terms_2(case: Case) -> dict[str, float]:
    """The right side of Theorem 2 by its terms."""
    omega = omega_of(case)
    factor = case.step**2 * 12.0 * (1.0 - omega) / omega**3
    return {"delta_in": factor * case.delta_in**2, "delta_out": factor * case.delta_out**2}


def together(n: int, half: list[Vector], virtual: list[Vector], length: float) -> Vector:
    """Everybody the same way: moves the average."""
    return length * np.eye(len(half[0]))[0]


def apart(n: int, half: list[Vector], virtual: list[Vector], length: float) -> Vector:
    """Away from the average: against agreement."""
    away = virtual[n] - sum(half) / len(half)
    size = float(np.linalg.norm(away))
    return length * away / size if size > 0.0 else together(n, half, virtual, length)


def split(n: int, half: list[Vector], virtual: list[Vector], length: float) -> Vector:
    """Every other worker the other way."""
    return (-1.0) ** n * together(n, half, virtual, length)


def searched(n: int, half: list[Vector], virtual: list[Vector], length: float) -> Vector:
    """Of 20 directions, the one that leaves this worker farthest from the average."""
    generator = np.random.default_rng(n)
    average = sum(half) / len(half)
    tried = [apart(n, half, virtual, length)]
    for _ in range(20):
        direction = generator.normal(size=len(half[0]))
        tried.append(length * direction / np.linalg.norm(direction))
    return max(tried, key=lambda move: float(np.linalg.norm(virtual[n] + move - average)))


PUSHES: dict[str, Push] = {"together": together, "apart": apart, "split": split, "searched": searched}

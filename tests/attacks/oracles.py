"""Slow oracles straight from the definitions: one (liar, victim) pair at a time, in float64, by loops.

`x[n]` is the model of honest node n. Each oracle returns the message of liar b to victim n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

from tests.attacks.scenes import World, fiedler_of

Models = dict[int, np.ndarray]
Oracle = Callable[[World, Models, int, int], np.ndarray]


def weighted_mean(world: World, x: Models, n: int, with_own: bool) -> np.ndarray:
    members = world.honest_neighbours(n) + ([n] if with_own else [])
    if not members:
        return x[n]
    total = sum(world.weights[n, m] for m in members)
    return np.asarray(sum(world.weights[n, m] * x[m] for m in members) / total)


def plain_mean(world: World, x: Models, n: int, with_own: bool) -> np.ndarray:
    members = world.honest_neighbours(n) + ([n] if with_own else [])
    if not members:
        return x[n]
    return np.asarray(sum(x[m] for m in members) / len(members))


def sign_flipping_text(world: World, x: Models, n: int, b: int) -> np.ndarray:
    return -weighted_mean(world, x, n, with_own=False)


def sign_flipping_published(world: World, x: Models, n: int, b: int) -> np.ndarray:
    return -plain_mean(world, x, n, with_own=True)


def isolation_text(world: World, x: Models, n: int, b: int) -> np.ndarray:
    numerator = x[n].copy()
    for m in world.honest_neighbours(n):
        numerator -= world.weights[n, m] * x[m]
    return np.asarray(numerator / sum(world.weights[n, c] for c in world.lying_neighbours(n)))


def isolation_published(world: World, x: Models, n: int, b: int) -> np.ndarray:
    numerator = x[n].copy()
    for m in [*world.honest_neighbours(n), n]:
        numerator -= world.metropolis[n, m] * x[m]
    return np.asarray(numerator / sum(world.metropolis[n, c] for c in world.lying_neighbours(n)))


def ipm(eps: float) -> Oracle:
    return lambda world, x, n, b: -eps * plain_mean(world, x, n, with_own=True)


def dissensus(eps: float) -> Oracle:
    def message(world: World, x: Models, n: int, b: int) -> np.ndarray:
        lie = sum(world.weights[n, c] for c in world.lying_neighbours(n))
        out = x[n].copy()
        for m in world.honest_neighbours(n):
            out -= eps * world.weights[n, m] * (x[m] - x[n]) / lie
        return out

    return message


def alie_factor(world: World, n: int) -> float:
    liars = len(world.lying_neighbours(n))
    d = len(world.honest_neighbours(n)) + liars
    s = math.floor((d + 1) / 2) - liars
    if s <= 0:
        s = 1
    return float(norm.ppf((d - s) / d))


def alie(z: float | None) -> Oracle:
    def message(world: World, x: Models, n: int, b: int) -> np.ndarray:
        members = world.honest_neighbours(n)
        mean = plain_mean(world, x, n, with_own=False)
        if len(members) < 2:
            return mean
        variance = sum((x[m] - mean) ** 2 for m in members) / (len(members) - 1)
        return np.asarray(mean + (alie_factor(world, n) if z is None else z) * np.sqrt(variance))

    return message


def mimic(world: World, x: Models, n: int, b: int) -> np.ndarray:
    stack = np.stack([x[m] for m in world.honest])
    centred = stack - stack.mean(axis=0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    distance = np.abs(centred @ direction)
    for row in range(len(stack)):
        if math.isclose(distance[row], distance.max(), rel_tol=1e-5):
            return np.asarray(stack[row])
    raise AssertionError("some row is the farthest")


def spread_of_neighbours(world: World, x: Models, n: int) -> tuple[np.ndarray, np.ndarray]:
    members = world.honest_neighbours(n)
    mean = plain_mean(world, x, n, with_own=False)
    if len(members) < 2:
        return mean, np.zeros_like(mean)
    return mean, np.sqrt(sum((x[m] - mean) ** 2 for m in members) / (len(members) - 1))


def largest_gamma(allowed: Callable[[float], bool]) -> float:
    """By bisection, like the authors of the attacks."""
    low, high = 0.0, 1.0
    while allowed(high):
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def min_max(world: World, x: Models, n: int, b: int) -> np.ndarray:
    mean, std = spread_of_neighbours(world, x, n)
    if not std.any():
        return mean
    members = world.honest_neighbours(n)
    widest = max(float(np.sum((x[k] - x[m]) ** 2)) for k in members for m in members)
    gamma = largest_gamma(
        lambda g: max(float(np.sum((mean - g * std - x[m]) ** 2)) for m in members) <= widest * (1 + 1e-15)
    )
    return mean - gamma * std


def min_sum(world: World, x: Models, n: int, b: int) -> np.ndarray:
    mean, std = spread_of_neighbours(world, x, n)
    if not std.any():
        return mean
    members = world.honest_neighbours(n)
    widest = max(sum(float(np.sum((x[k] - x[m]) ** 2)) for m in members) for k in members)
    gamma = largest_gamma(
        lambda g: sum(float(np.sum((mean - g * std - x[m]) ** 2)) for m in members) <= widest * (1 + 1e-15)
    )
    return mean - gamma * std


def spectral(scale: float) -> Oracle:
    def message(world: World, x: Models, n: int, b: int) -> np.ndarray:
        mode = fiedler_of(world)
        gap = sum(mode[row] * x[m] for row, m in enumerate(world.honest))
        return np.asarray(x[n] + scale * mode[world.honest.index(n)] * gap)

    return message


def reflected(scale: float, at_start: bool) -> Oracle:
    """In the first round the start is the average of the honest models, and so is their running average."""

    def message(world: World, x: Models, n: int, b: int) -> np.ndarray:
        about = sum(x.values()) / len(x) if at_start else np.zeros_like(x[n])
        return np.asarray(about - scale * (plain_mean(world, x, n, with_own=True) - about))

    return message


def zero(world: World, x: Models, n: int, b: int) -> np.ndarray:
    return np.zeros_like(x[n])


DETERMINISTIC: list[tuple[str, dict[str, Any], Oracle]] = [
    ("sign-flipping", {}, sign_flipping_text),
    ("sign-flipping", {"own": True, "mean": "plain"}, sign_flipping_published),
    ("sign-flipping", {"own": True}, lambda world, x, n, b: -weighted_mean(world, x, n, with_own=True)),
    ("isolation", {}, isolation_text),
    ("isolation", {"own": True, "weights": "metropolis"}, isolation_published),
    ("IPM", {}, ipm(0.1)),
    ("IPM", {"eps": 1.0}, ipm(1.0)),
    ("dissensus", {}, dissensus(1.5)),
    ("dissensus", {"eps": 0.5}, dissensus(0.5)),
    ("ALIE", {}, alie(None)),
    ("ALIE", {"z": -2.0}, alie(-2.0)),
    ("gaussian", {"std": 0.0}, lambda world, x, n, b: weighted_mean(world, x, n, with_own=False)),
    ("gaussian", {"std": 0.0, "mean": "plain"}, lambda world, x, n, b: plain_mean(world, x, n, with_own=False)),
    ("mimic", {}, mimic),
    ("zero", {}, zero),
    ("sign-flipping", {"scale": 3.0}, lambda world, x, n, b: -3.0 * weighted_mean(world, x, n, with_own=False)),
    ("isolation", {"scale": 0.5}, lambda world, x, n, b: 0.5 * (x[n] + isolation_text(world, x, n, b))),
    ("min-max", {"scale": 0.0}, lambda world, x, n, b: plain_mean(world, x, n, with_own=False)),
    ("reflection", {"reference": "zero", "scale": 2.0}, reflected(2.0, at_start=False)),
    ("reflection", {}, reflected(1.0, at_start=True)),
    ("reflection", {"reference": "average", "scale": 0.5}, reflected(0.5, at_start=True)),
    ("late", {"after": 1}, lambda world, x, n, b: weighted_mean(world, x, n, with_own=False)),
    ("late", {"inner": "ALIE", "after": 0}, alie(None)),
    (
        "mixed",
        {},
        lambda world, x, n, b: (sign_flipping_text, alie(None))[world.byzantine.index(b) % 2](world, x, n, b),
    ),
    ("same-value", {}, lambda world, x, n, b: np.full_like(x[n], 1.0)),
    ("same-value", {"value": -2.5}, lambda world, x, n, b: np.full_like(x[n], -2.5)),
    ("stale", {}, lambda world, x, n, b: np.asarray(sum(x.values()) / len(x))),
    ("min-max", {}, min_max),
    ("min-sum", {}, min_sum),
    ("spectral-heterogeneity", {}, spectral(1.0)),
    ("spectral-heterogeneity", {"scale": -3.0}, spectral(-3.0)),
]

"""The point with the smallest sum of distances to given points, by Newton's method on their inner products.

    F(z) = sum_i ||z - y_i||,   g = sum_i e_i,   H = sum_i (I - e_i e_i') / ||z - y_i||,   e_i = (z - y_i) / ||z - y_i||

With masses m_i every sum below is weighted by them; a point of mass 2 is two points at one place. They are 1 in GeoMed.

If a data point minimises F it is the best data point y_k, so one test settles that case: y_k is optimal if and only if
the unit vectors from it to the others sum to a vector no longer than the number of points at y_k (Vardi and Zhang
2000). If it is not, their step leads to a lower F than any data point has, and from there F is smooth: every further
step lowers F, so the iteration never meets a data point again. It ends when a Newton step is shorter than `tolerance`
times the harmonic mean of the distances, S / W with W = sum_i 1 / ||z - y_i||. Then ||g|| <= W ||step|| <= tolerance S,
and whatever the scale of the data

    F(z) - min F <= ||g|| ||z - z*|| <= 2 tolerance F(z),      since S ||z - z*|| <= F(z) + F(z*).

The points are given by inner products; a Cholesky factor of these has their coordinates in at most K dimensions. Sums
of distances are compared as sums of ||z - y_i|| - ||y_i||, in which a lie at 1e30 does not drown the others. At the
minimum z is the mean of the y_i with weights 1 / ||z - y_i||, which are the coefficients. O(K^3) once and O(K^2) for
each turn of the conjugate gradients that solve for a step.
"""

from __future__ import annotations

import numpy as np

from byzmesh.compiled import exact, fast
from byzmesh.types import Booleans, Floats

MOST_STEPS = 100
MOST_HALVINGS = 50
SOLVED = 1e-16
"""Squared residual, as a fraction of the squared gradient, that ends the conjugate gradients of a step."""
SAME = 1e3
"""Roundings by which the sums of distances of two equally good data points may differ."""


@fast
def _coordinates(gram: Floats, rounding: float) -> Floats:
    """(K, dimension) points with these inner products, by a Cholesky factor that starts with the longest of them."""
    count = len(gram)
    points = np.zeros((count, count))
    rest = np.diag(gram).copy()
    least = rounding * rest
    used = 0
    for column in range(count):
        first = -1
        for i in range(count):
            if rest[i] > least[i] and (first < 0 or rest[i] > rest[first]):
                first = i
        if first < 0:
            break
        size = np.sqrt(rest[first])
        for i in range(count):
            if rest[i] > least[i]:
                product = gram[i, first]
                for earlier in range(column):
                    product -= points[i, earlier] * points[first, earlier]
                points[i, column] = product / size
                rest[i] -= points[i, column] ** 2
        points[first, column] = size
        rest[first] = 0.0
        used = column + 1
    return points[:, :used].copy()


@fast
def _distances(points: Floats, length: Floats, mass: Floats, z: Floats, out: Floats) -> float:
    """Fill `out` with the distances of the points from z; F(z) - F(0)."""
    square, total = (z * z).sum(), 0.0
    for i in range(len(out)):
        gap = product = 0.0
        for k in range(len(z)):
            gap += (z[k] - points[i, k]) ** 2
            product += z[k] * points[i, k]
        out[i] = np.sqrt(gap)
        if out[i] + length[i] > 0.0:
            total += mass[i] * ((square - 2.0 * product) / (out[i] + length[i]))
    return total


@exact
def _best_point(
    gram: Floats, points: Floats, length: Floats, mass: Floats, rounding: float
) -> tuple[Floats, Floats, float]:
    """(the best data points as shares, all 0 if these are not optimal; else a better point z; F(z) - F(0))."""
    count = len(points)
    gap = np.zeros((count, count))
    total = np.zeros(count)
    for i in range(count):
        for j in range(count):
            square = gram[i, i] + gram[j, j] - 2.0 * gram[i, j]
            if i != j and square > rounding * (length[i] + length[j]) ** 2:
                gap[i, j] = np.sqrt(square)
            if gap[i, j] + length[j] > 0.0:
                total[i] += mass[j] * ((gram[i, i] - 2.0 * gram[i, j]) / (gap[i, j] + length[j]))
    best = np.argmin(total)
    shares = np.zeros(count)
    z = points[best].copy()
    pull = np.zeros(len(z))
    weight = here = 0.0
    for j in range(count):
        if gap[best, j] > 0.0:
            pull += mass[j] * ((points[j] - z) / gap[best, j])
            weight += mass[j] / gap[best, j]
        else:
            here += mass[j]
    force = np.sqrt((pull * pull).sum())
    spare = np.empty(count)
    if force > here * (1.0 + SAME * rounding):
        stride = (1.0 - here / force) / weight
        for _ in range(MOST_HALVINGS):
            value = _distances(points, length, mass, z + stride * pull, spare)
            if value < total[best] and spare.min() > 0.0:
                return shares, z + stride * pull, value
            stride *= 0.5
    for i in range(count):
        if total[i] - total[best] <= SAME * rounding * mass.sum() * gap[best, i]:
            shares[i] = 1.0
    return shares / shares.sum(), z, total[best]


@fast
def _newton_step(points: Floats, mass: Floats, z: Floats, distance: Floats) -> tuple[Floats, float]:
    """(H^-1 (-g), its product with g) by conjugate gradients."""
    inverse = 1.0 / distance
    weight = (mass * inverse).sum()
    unit = np.empty(points.shape)
    left = np.zeros(len(z))
    for i in range(len(points)):
        for k in range(len(z)):
            unit[i, k] = (z[k] - points[i, k]) * inverse[i]
            left[k] -= mass[i] * unit[i, k]
    step = np.zeros(len(z))
    towards = left.copy()
    square = (left * left).sum()
    enough, slope = SOLVED * square, 0.0
    for _ in range(len(z) + 10):
        if square <= enough:
            break
        curved = weight * towards
        for i in range(len(points)):
            along = 0.0
            for k in range(len(z)):
                along += unit[i, k] * towards[k]
            along *= mass[i] * inverse[i]
            for k in range(len(z)):
                curved[k] -= along * unit[i, k]
        bend = (towards * curved).sum()
        if bend <= 0.0:
            break
        size = square / bend
        slope -= size * square
        step += size * towards
        left -= size * curved
        former = square
        square = (left * left).sum()
        towards = left + (square / former) * towards
    return step, slope


@exact
def geometric_median(inner: Floats, present: Booleans, masses: Floats, tolerance: float, rounding: float) -> Floats:
    """(R, K) coefficients of the geometric median of the present slots, of mass `masses` (R, K).

    `rounding` is that of squared distances.
    """
    receivers, slots = present.shape
    out = np.zeros((receivers, slots))
    for receiver in range(receivers):
        held = np.flatnonzero(present[receiver])
        gram = inner[receiver][held][:, held]
        points = _coordinates(gram, rounding)
        mass = masses[receiver][held]
        length = np.sqrt(np.maximum(np.diag(gram), 0.0))
        shares, z, value = _best_point(gram, points, length, mass, rounding)
        if shares.sum() == 0.0:
            distance = np.empty(len(held))
            for _ in range(MOST_STEPS):
                _distances(points, length, mass, z, distance)
                step, slope = _newton_step(points, mass, z, distance)
                reach = tolerance * mass.sum() / (mass / distance).sum()
                last = (step * step).sum() <= reach * reach
                size, moved = 1.0, False
                for _ in range(MOST_HALVINGS):
                    lower = _distances(points, length, mass, z + size * step, distance)
                    if distance.min() > 0.0 and (last or lower < value + 1e-4 * size * slope):
                        z, value, moved = z + size * step, lower, True
                        break
                    size *= 0.5
                if last or not moved:
                    break
            _distances(points, length, mass, z, distance)
            shares = mass / distance
            shares /= shares.sum()
        for i in range(len(held)):
            out[receiver, held[i]] = shares[i]
    return out

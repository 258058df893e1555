"""Every rule for one receiver, slow and straight from its definition: what the fast versions are compared with.

    oracle(own (D,), received (d, D), weights (d + 1,) own first, f, **options) -> (D,) in float64

S = d + 1 vectors, own first, then the neighbours by sender id. A choice of an extremum takes the lowest index among
those within a relative `TIE` of it, compared on squared distances (or Krum scores). Nothing here checks feasibility.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float64]
Oracle = Callable[..., Vector]

TIE = 1e-9
WEISZFELD_FLOOR = 1e-12


def stack(own: Any, received: Any) -> Vectors:
    """(S, D) own first, in float64."""
    own = np.asarray(own, np.float64)
    received = np.asarray(received, np.float64).reshape(-1, own.size)
    return np.concatenate([own[None, :], received], axis=0)


def distance2(a: Vector, b: Vector) -> float:
    """Squared Euclidean distance, summed without loss."""
    return math.fsum((float(p) - float(q)) ** 2 for p, q in zip(a, b))


def first_least(values: Sequence[float], among: Sequence[int]) -> int:
    """Lowest index of `among` whose value is the least, up to `TIE`."""
    least = min(values[i] for i in among)
    return min(i for i in among if values[i] <= least * (1.0 + TIE))


def first_largest(values: Sequence[float], among: Sequence[int]) -> int:
    """Lowest index of `among` whose value is the largest, up to `TIE`."""
    largest = max(values[i] for i in among)
    return min(i for i in among if values[i] >= largest * (1.0 - TIE))


def smallest(values: Sequence[float], count: int, among: Sequence[int]) -> list[int]:
    """The `count` indices of `among` with the least values, one after the other."""
    left, chosen = list(among), []
    for _ in range(count):
        index = first_least(values, left)
        left.remove(index)
        chosen.append(index)
    return chosen


def clip(vector: Vector, radius: float) -> Vector:
    """min(1, radius / ||vector||) vector."""
    length = math.sqrt(distance2(vector, np.zeros_like(vector)))
    return vector if length <= radius else vector * (radius / length)


def wei_mean(own: Any, received: Any, weights: Any, f: int = 0) -> Vector:
    total = np.zeros(len(own))
    for weight, vector in zip(weights, stack(own, received)):
        total = total + float(weight) * vector
    return total


def no_comm(own: Any, received: Any, weights: Any, f: int = 0) -> Vector:
    return np.asarray(own, np.float64)


def coo_med(own: Any, received: Any, weights: Any, f: int = 0, *, even: str = "middle") -> Vector:
    result = []
    for column in stack(own, received).T:
        ordered = sorted(float(value) for value in column)
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        result.append(low if even == "lower" else 0.5 * low + 0.5 * high)
    return np.array(result)


def sum_of_distances(point: Vector, vectors: Vectors, mass: Any) -> float:
    return math.fsum(m * math.sqrt(distance2(vector, point)) for m, vector in zip(mass, vectors))


def median_point(vectors: Vectors, masses: Sequence[float] | None = None) -> Vector:
    """The argmin of the sum of distances: the best vectors' mean where they are optimal, else Newton's limit."""
    mass = np.ones(len(vectors)) if masses is None else np.asarray(masses)
    sums = [sum_of_distances(vector, vectors, mass) for vector in vectors]
    best = vectors[int(np.argmin(sums))]
    away = np.array([distance2(vector, best) > 0.0 for vector in vectors])
    apart = (vectors - best)[away].reshape(-1, best.size)
    units = mass[away, None] * apart / np.sqrt((apart**2).sum(axis=1, keepdims=True))
    if np.linalg.norm(units.sum(axis=0)) <= mass[~away].sum() * (1.0 + TIE):
        return np.asarray(vectors[[i for i, value in enumerate(sums) if value <= min(sums) * (1.0 + TIE)]].mean(axis=0))
    point, step = best, units.sum(axis=0) * min(np.sqrt((apart**2).sum(axis=1)))
    for _ in range(200):
        size = 1.0
        here = sum_of_distances(point, vectors, mass)
        while sum_of_distances(point + size * step, vectors, mass) > here and size > 1e-9:
            size *= 0.5
        point = point + size * step
        gaps = point - vectors
        lengths = np.sqrt((gaps**2).sum(axis=1))
        units = gaps / lengths[:, None]
        hessian = sum(m * (np.eye(best.size) - np.outer(u, u)) / long for m, u, long in zip(mass, units, lengths))
        step = -np.linalg.solve(hessian, (mass[:, None] * units).sum(axis=0))
        if np.linalg.norm(step) <= 1e-13 * lengths.max():
            break
    return np.asarray(point)


def geo_med(
    own: Any, received: Any, weights: Any, f: int = 0, *, steps: int | None = None, tolerance: float = 1e-5
) -> Vector:
    vectors = stack(own, received)
    if steps is None:
        return median_point(vectors)
    point = vectors.mean(axis=0)
    for _ in range(steps):
        inverse = [1.0 / max(math.sqrt(distance2(vector, point)), WEISZFELD_FLOOR) for vector in vectors]
        moved = sum(share * vector for share, vector in zip(inverse, vectors)) / sum(inverse)
        movement = math.sqrt(distance2(moved, point))
        point = moved
        if movement < tolerance:
            break
    return np.asarray(point)


def krum_scores(vectors: Vectors, f: int, remaining: Sequence[int]) -> list[float]:
    """Sum of squared distances to the len(remaining) - f - 2 (at least one) nearest others; inf outside `remaining`."""
    scores = [math.inf] * len(vectors)
    for i in remaining:
        others = sorted(distance2(vectors[i], vectors[j]) for j in remaining if j != i)
        scores[i] = math.fsum(others[: max(len(remaining) - f - 2, 1)])
    return scores


def krum(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    everyone = range(len(vectors))
    return np.asarray(vectors[first_least(krum_scores(vectors, f, everyone), everyone)])


def multi_krum(own: Any, received: Any, weights: Any, f: int, *, m: int | None = None) -> Vector:
    vectors = stack(own, received)
    everyone = range(len(vectors))
    count = len(vectors) - f if m is None else m
    return np.asarray(vectors[smallest(krum_scores(vectors, f, everyone), count, everyone)].mean(axis=0))


def tri_mean(own: Any, received: Any, weights: Any, f: int) -> Vector:
    own, received = np.asarray(own, np.float64), stack(own, received)[1:]
    result = []
    for mine, column in zip(own, received.T):
        kept = sorted(float(value) for value in column)[f : len(column) - f]
        result.append((math.fsum(kept) + float(mine)) / (len(kept) + 1))
    return np.array(result)


def faba(mine: Any, received: Any, weights: Any, f: int, *, own: str = "inside") -> Vector:
    vectors = stack(mine, received)
    neighbours = list(range(1, len(vectors)))
    for _ in range(f):
        averaged = [0, *neighbours] if own == "inside" else neighbours
        centre = vectors[averaged].mean(axis=0)
        neighbours.remove(first_largest([distance2(vector, centre) for vector in vectors], neighbours))
    return np.asarray(vectors[[0, *neighbours]].mean(axis=0))


def ios_trusted(vectors: Vectors, weights: Any, f: int) -> tuple[list[int], Vector]:
    """Who IOS still trusts after f cuts, own first, and their weighted average."""

    def average(trusted: list[int]) -> Vector:
        return np.asarray(sum(weights[m] * vectors[m] for m in trusted) / sum(weights[m] for m in trusted))

    trusted = list(range(len(vectors)))
    for _ in range(f):
        centre = average(trusted)
        trusted.remove(first_largest([distance2(vector, centre) for vector in vectors], trusted[1:]))
    return trusted, average(trusted)


def ios(own: Any, received: Any, weights: Any, f: int) -> Vector:
    return ios_trusted(stack(own, received), np.asarray(weights, np.float64), f)[1]


def lazy_ios(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    trusted, _ = ios_trusted(vectors, np.asarray(weights, np.float64), f)
    return np.asarray(
        vectors[0] + sum((weights[m] * (vectors[m] - vectors[0]) for m in trusted), start=np.zeros(len(own)))
    )


def reprieve(own: Any, received: Any, weights: Any, f: int, *, c: float = 3.5) -> Vector:
    """IOS, then the cut within c weighted medians of the trusted average's distances come back."""
    vectors, weights = stack(own, received), np.asarray(weights, np.float64)
    trusted, centre = ios_trusted(vectors, weights, f)
    gaps = [math.sqrt(distance2(vector, centre)) for vector in vectors]
    half, weighed, scale = 0.5 * math.fsum(weights[m] for m in trusted), 0.0, 0.0
    for m in sorted(trusted, key=lambda m: gaps[m]):
        weighed, scale = weighed + float(weights[m]), gaps[m]
        if weighed >= half * (1.0 - 1e-12):
            break
    back = [m for m in range(1, len(vectors)) if m in trusted or gaps[m] <= c * scale]
    members = [0, *back]
    return np.asarray(sum(weights[m] * vectors[m] for m in members) / sum(weights[m] for m in members))


def tether(own: Any, received: Any, weights: Any, f: int, *, c: float = 4.5) -> Vector:
    """IOS's cuts that are beyond c medians are left out, everybody else is shortened to where all but s are."""
    vectors, weights = stack(own, received), np.asarray(weights, np.float64)
    h = lying_weight(weights, f)
    trusted, centre = ios_trusted(vectors, weights, f)
    within = math.fsum(weights[m] for m in trusted)
    if h == 0.0 or within == 0.0:
        return np.asarray(sum(weight * vector for weight, vector in zip(weights, vectors, strict=True)))
    gaps = [math.sqrt(distance2(vector, centre)) for vector in vectors]
    near = sorted(range(len(vectors)), key=lambda m: gaps[m])
    median = next(
        gaps[m]
        for place, m in enumerate(near)
        if math.fsum(weights[k] for k in near[: place + 1] if k in trusted) >= 0.5 * within * (1.0 - 1e-12)
    )
    members = [m for m in near if m in trusted or gaps[m] <= c * median]
    heard = math.fsum(weights[m] for m in members)
    left = max(0.0, h - (math.fsum(weights) - heard))
    spare = max(left, min(2.0 * left, 0.25))
    length = next(
        gaps[m]
        for place, m in enumerate(members)
        if math.fsum(weights[k] for k in members[: place + 1]) >= heard - spare - 1e-12
    )
    pulls = {m: float(weights[m]) * (1.0 if gaps[m] <= length else length / gaps[m]) for m in members}
    return np.asarray(sum(pull * vectors[m] for m, pull in pulls.items()) / sum(pulls.values()))


def lying_weight(weights: Any, f: int) -> float:
    """The f largest neighbour weights together."""
    return math.fsum(sorted((float(weight) for weight in weights[1:]), reverse=True)[:f])


def nearest_of_weight(vectors: Vectors, weights: Any, spare: float) -> list[int]:
    """Neighbours, nearest to own first, as long as their weights sum to at most all neighbours' minus `spare`."""
    gaps = [distance2(vector, vectors[0]) for vector in vectors]
    total = math.fsum(float(weight) for weight in weights[1:])
    kept: list[int] = []
    for m in smallest(gaps, len(vectors) - 1, range(1, len(vectors))):
        if math.fsum(float(weights[k]) for k in [*kept, m]) > total * (1.0 + 1e-12) - spare:
            break
        kept.append(m)
    return kept


def gossip_step(vectors: Vectors, weights: Any, members: Sequence[int], radius: float) -> Vector:
    """own + sum over the members of w clip(x_m - own, radius)."""
    zero = np.zeros(vectors.shape[1])
    return np.asarray(
        vectors[0] + sum((float(weights[m]) * clip(vectors[m] - vectors[0], radius) for m in members), start=zero)
    )


def adaptive_radius(vectors: Vectors, weights: Any, kept: Sequence[int], bound: float) -> float:
    if bound == 0.0:
        return math.inf
    return math.sqrt(math.fsum(float(weights[m]) * distance2(vectors[m], vectors[0]) for m in kept) / bound)


def gts(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    kept = nearest_of_weight(vectors, weights, lying_weight(weights, f))
    return gossip_step(vectors, weights, kept, math.inf)


def clipped_gossip(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors, bound = stack(own, received), lying_weight(weights, f)
    kept = nearest_of_weight(vectors, weights, bound)
    radius = adaptive_radius(vectors, weights, kept, bound)
    return gossip_step(vectors, weights, range(1, len(vectors)), radius)


def cs_plus(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    kept = nearest_of_weight(vectors, weights, 2.0 * lying_weight(weights, f))
    radius = max((math.sqrt(distance2(vectors[m], vectors[0])) for m in kept), default=0.0)
    return gossip_step(vectors, weights, range(1, len(vectors)), radius)


def rtc(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors, bound = stack(own, received), lying_weight(weights, f)
    kept = nearest_of_weight(vectors, weights, bound)
    return gossip_step(vectors, weights, kept, adaptive_radius(vectors, weights, kept, bound))


def leash(
    own: Any,
    received: Any,
    weights: Any,
    f: int = 0,
    *,
    c: float = 2.0,
    agree: int = 30,
    step: float = 1.0,
    number: int = 0,
) -> Vector:
    """Every neighbour pulls by at most its weight times c steps; at first, if that is more, as far as half of them."""
    vectors = stack(own, received)
    far = [math.sqrt(distance2(vector, vectors[0])) for vector in vectors]
    radius, heard = c * step, 0.0
    if number < agree:
        for m in sorted(range(1, len(vectors)), key=lambda m: far[m]):
            heard += weights[m]
            if heard >= 0.5 * sum(weights[1:]) * (1.0 - 1e-12):
                radius = max(radius, far[m])
                break
    return gossip_step(vectors, weights, range(1, len(vectors)), radius)


def balance(
    own: Any,
    received: Any,
    weights: Any,
    f: int = 0,
    *,
    gamma: float = 0.3,
    kappa: float = 1.0,
    alpha: float = 0.5,
    progress: float = 0.0,
) -> Vector:
    """alpha own + (1 - alpha) mean of those within gamma exp(-kappa t/T) ||own|| of own; own if there are none."""
    vectors = stack(own, received)
    limit = (gamma * math.exp(-kappa * progress)) ** 2 * distance2(vectors[0], np.zeros(len(vectors[0])))
    near = [vector for vector in vectors[1:] if distance2(vector, vectors[0]) <= limit]
    return np.asarray(alpha * vectors[0] + (1.0 - alpha) * np.mean(near, axis=0) if near else vectors[0])


def cc(
    own: Any,
    received: Any,
    weights: Any,
    f: int = 0,
    *,
    tau: float,
    centre: str = "own",
    iterations: int = 1,
    weighting: str = "equal",
    memory: Any = None,
) -> Vector:
    """Centre <- centre + sum_m weight_m clip(x_m - centre, tau); `memory` is the previous output, 0 at first."""
    vectors = stack(own, received)
    shares = [1.0 / len(vectors)] * len(vectors) if weighting == "equal" else [float(weight) for weight in weights]
    start = own if centre == "own" else np.zeros(len(own)) if memory is None else memory
    point = np.asarray(start, np.float64)
    for _ in range(iterations):
        point = point + sum(share * clip(vector - point, tau) for share, vector in zip(shares, vectors))
    return point


def scc(own: Any, received: Any, weights: Any, f: int = 0, *, tau: float) -> Vector:
    vectors = stack(own, received)
    return np.asarray(
        vectors[0]
        + sum(
            (float(weight) * clip(vector - vectors[0], tau) for weight, vector in zip(weights[1:], vectors[1:])),
            start=np.zeros(len(own)),
        )
    )


def drsa(
    own: Any,
    received: Any,
    weights: Any,
    f: int = 0,
    *,
    penalty: float,
    at: str = "half",
    previous: Any = None,
    step: float = 1.0,
) -> Vector:
    """own + step * penalty * sum_m sign(x_m - reference); reference is own (`half`) or own before its gradient step."""
    vectors = stack(own, received)
    reference = vectors[0] if at == "half" else np.asarray(previous, np.float64)
    signs = np.zeros(len(own))
    for vector in vectors[1:]:
        for coordinate, (theirs, mine) in enumerate(zip(vector, reference)):
            signs[coordinate] += int(theirs > mine) - int(theirs < mine)
    return np.asarray(vectors[0] + step * penalty * signs)


def sign_shares(vector: Vector) -> list[float]:
    """Shares of negative, zero and positive coordinates."""
    values = [float(value) for value in vector]
    count = [sum(v < 0 for v in values), sum(v == 0 for v in values), sum(v > 0 for v in values)]
    return [number / len(values) for number in count]


def sign_divergence(own: list[float], other: list[float], divergence: str) -> float:
    """True KL sum_i t_i log(t_i / p_i), infinite where p_i = 0 < t_i; published: (1/3) sum_i t_i (log t_i - p_i)."""
    total = 0.0
    for t, p in zip(own, other):
        if t == 0.0:
            continue
        if divergence == "published":
            total += t * (math.log(t) - p) / 3.0
        else:
            total += math.inf if p == 0.0 else t * (math.log(t) - math.log(p))
    return total


def sim_rew(
    own: Any, received: Any, weights: Any, f: int = 0, *, divergence: str = "kl", previous: Any, step: float = 1.0
) -> Vector:
    """previous + sum over own and neighbours of s1 s2 clip(D_j, ||D_n||), D_j = x_j - previous; softmax over all S."""
    start = np.asarray(previous, np.float64)
    moves = stack(own, received) - start
    shares = [sign_shares(move) for move in moves]
    logits = [-sign_divergence(shares[0], share, divergence) for share in shares]
    softmax = [math.exp(logit - max(logits)) for logit in logits]
    zero = np.zeros(len(start))
    lengths = [math.sqrt(distance2(move, zero)) for move in moves]
    result = start
    for j, move in enumerate(moves):
        if lengths[j] == 0.0 or lengths[0] == 0.0:
            continue
        cosine = math.fsum(a * b for a, b in zip(move, moves[0])) / (lengths[j] * lengths[0])
        similarity = 1.0 if j == 0 else max(0.0, cosine)
        result = result + softmax[j] / sum(softmax) * similarity * clip(move, lengths[0])
    return result


def mean_near_median(values: Sequence[float], keep: int) -> float:
    """Mean of the `keep` values nearest the median (middle of two for an even number); the smaller value on a tie."""
    ordered = sorted(float(value) for value in values)
    median = 0.5 * ordered[(len(ordered) - 1) // 2] + 0.5 * ordered[len(ordered) // 2]
    nearest = sorted(ordered, key=lambda value: (abs(value - median), value))[:keep]
    return math.fsum(nearest) / keep


def mea_med(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    return np.array([mean_near_median(column, len(vectors) - f) for column in vectors.T])


def bulyan(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    remaining, picked = list(range(len(vectors))), []
    for _ in range(len(vectors) - 2 * f):
        best = first_least(krum_scores(vectors, f, remaining), remaining)
        remaining.remove(best)
        picked.append(best)
    return np.array([mean_near_median(column, len(vectors) - 4 * f) for column in vectors[picked].T])


def nna(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    gaps = [distance2(vector, vectors[0]) for vector in vectors]
    return np.asarray(vectors[[0, *smallest(gaps, len(vectors) - f - 1, range(1, len(vectors)))]].mean(axis=0))


def mda(own: Any, received: Any, weights: Any, f: int) -> Vector:
    vectors = stack(own, received)
    subsets = list(itertools.combinations(range(len(vectors)), len(vectors) - f))
    diameters = [
        max((distance2(vectors[i], vectors[j]) for i, j in itertools.combinations(subset, 2)), default=0.0)
        for subset in subsets
    ]
    return np.asarray(vectors[list(subsets[first_least(diameters, range(len(subsets)))])].mean(axis=0))


def bucketing(
    mine: Any, received: Any, weights: Any, f: int, *, groups: Sequence[Sequence[int]], rule: str, **options: Any
) -> Vector:
    """`rule` on own and the plain mean of each group of neighbours, numbered from 0; a group's weights add up."""
    neighbours = stack(mine, received)[1:]
    means = np.array([neighbours[list(group)].mean(axis=0) for group in groups])
    summed = [float(weights[0]), *(sum(float(weights[1 + m]) for m in group) for group in groups)]
    return ORACLES[rule](mine, means, summed, f, **options)


def nnm(mine: Any, received: Any, weights: Any, f: int, *, rule: str, **options: Any) -> Vector:
    """`rule` with equal weights after each vector became the mean of its S - f nearest, itself included."""
    vectors = stack(mine, received)
    mixed = []
    for i, vector in enumerate(vectors):
        gaps = [distance2(vector, other) for other in vectors]
        others = [j for j in range(len(vectors)) if j != i]
        mixed.append(vectors[[i, *smallest(gaps, len(vectors) - f - 1, others)]].mean(axis=0))
    return ORACLES[rule](mixed[0], mixed[1:], [1.0 / len(vectors)] * len(vectors), f, **options)


def weighted_nnm(mine: Any, received: Any, weights: Any, f: int, *, rule: str, **options: Any) -> Vector:
    """`rule` after each vector became the weighted mean of its nearest of all but the f heaviest's weight."""
    vectors, most = stack(mine, received), 1.0 - heaviest_sum(weights, f)
    mixed = []
    for i, vector in enumerate(vectors):
        others = [j for j in range(len(vectors)) if j != i]
        gaps = [distance2(vector, other) for other in vectors]
        left, mean = most, np.zeros_like(vector)
        for j in [i, *smallest(gaps, len(others), others)]:
            part = max(0.0, min(left, float(weights[j])))
            mean += part / most * vectors[j]
            left -= part
        mixed.append(mean)
    return ORACLES[rule](mixed[0], mixed[1:], weights, f, **options)


def ubar(
    own: Any,
    received: Any,
    weights: Any,
    f: int = 0,
    *,
    rho: float,
    alpha: float,
    loss: Callable[[Vector], float],
    fallback: str = "own",
) -> Vector:
    """alpha own + (1 - alpha) mean of those of the floor(rho d) nearest whose loss is not above own; own if none is."""
    vectors = stack(own, received)
    gaps = [distance2(vector, vectors[0]) for vector in vectors]
    nearest = smallest(gaps, math.floor(rho * (len(vectors) - 1)), range(1, len(vectors)))
    accepted = [m for m in nearest if loss(vectors[m]) <= loss(vectors[0])]
    if not accepted and nearest and fallback == "best":
        accepted = [min(sorted(nearest), key=lambda m: loss(vectors[m]))]
    if not accepted:
        return np.asarray(vectors[0])
    return np.asarray(alpha * vectors[0] + (1.0 - alpha) * vectors[accepted].mean(axis=0))


def phocas(own: Any, received: Any, weights: Any, f: int) -> Vector:
    """Per coordinate the mean of the S - f values nearest the mean without the f least and the f largest."""
    result = []
    for column in stack(own, received).T:
        values = sorted(float(value) for value in column)
        middle = math.fsum(values[f : len(values) - f]) / (len(values) - 2 * f)
        for _ in range(f):
            values.remove(values[-1] if middle - values[0] <= (values[-1] - middle) * (1.0 + TIE) else values[0])
        result.append(math.fsum(values) / len(values))
    return np.array(result)


def largest_variance(vectors: Vectors, weights: Sequence[float]) -> tuple[float, Vector, Vectors]:
    """(largest eigenvalue, mean, eigenvectors of that eigenvalue as rows) of the D x D weighted covariance matrix."""
    total = math.fsum(weights)
    mean = sum((c * vector for c, vector in zip(weights, vectors)), start=np.zeros(vectors.shape[1])) / total
    covariance = np.zeros((vectors.shape[1], vectors.shape[1]))
    for c, vector in zip(weights, vectors):
        covariance += c * np.outer(vector - mean, vector - mean) / total
    values, columns = np.linalg.eigh(covariance)
    return float(values[-1]), mean, columns.T[values >= values[-1] * (1.0 - TIE)]


def caf(own: Any, received: Any, weights: Any, f: int) -> Vector:
    """The mean with the smallest largest variance while more than S - 2f weight is left; outliers along it lose."""
    vectors = stack(own, received)
    left = [1.0] * len(vectors)
    best, answer = math.inf, vectors.mean(axis=0)
    while f > 0 and sum(left) > len(vectors) - 2 * f + TIE:
        value, mean, directions = largest_variance(vectors, left)
        if value < best * (1.0 - TIE):
            best, answer = value, mean
        tau = [
            math.fsum(float(direction @ (vector - mean)) ** 2 for direction in directions) if c > 0.0 else 0.0
            for c, vector in zip(left, vectors)
        ]
        if max(tau) == 0.0:
            break
        shares = [1.0 - t / max(tau) for t in tau]
        left = [c * share if share > TIE else 0.0 for c, share in zip(left, shares)]
    return np.asarray(answer)


def smea(own: Any, received: Any, weights: Any, f: int) -> Vector:
    """The mean of the first of all subsets of S - f with the smallest largest variance."""
    vectors = stack(own, received)
    subsets = list(itertools.combinations(range(len(vectors)), len(vectors) - f))
    values = []
    for subset in subsets:
        gaps = vectors[list(subset)] - vectors[list(subset)].mean(axis=0)
        values.append(float(np.linalg.norm(gaps, 2)) ** 2)  # the largest singular value, squared
    return np.asarray(vectors[list(subsets[first_least(values, range(len(subsets)))])].mean(axis=0))


def arc(mine: Any, received: Any, weights: Any, f: int, *, rule: str, **options: Any) -> Vector:
    """`rule` after the floor(2 f (S - f) / S) farthest from own were clipped to the next distance from own."""
    vectors = stack(mine, received)
    lengths = sorted((math.sqrt(distance2(vector, vectors[0])) for vector in vectors), reverse=True)
    radius = lengths[2 * f * (len(vectors) - f) // len(vectors)]
    near = np.array([vectors[0] + clip(vector - vectors[0], radius) for vector in vectors[1:]])
    return ORACLES[rule](mine, near.reshape(-1, len(vectors[0])), weights, f, **options)


def zeno(
    own: Any, received: Any, weights: Any, f: int, *, rho: float = 0.05, loss: Callable[[Vector], float]
) -> Vector:
    """The mean of own and the d - f neighbours with the highest loss(own) - loss(y) - rho ||y - own||^2."""
    vectors = stack(own, received)
    scores = [loss(vectors[0]) - loss(vector) - rho * distance2(vector, vectors[0]) for vector in vectors]
    ranked = sorted(range(1, len(vectors)), key=lambda m: -scores[m])
    return np.asarray(vectors[[0, *ranked[: len(ranked) - f]]].mean(axis=0))


def byrdie(
    own: Any,
    received: Any,
    weights: Any,
    f: int,
    *,
    previous: Any,
    block: int | None = 1,
    repeats: int = 1,
    number: int,
) -> Vector:
    """Each coordinate in turn: the trimmed mean of the models before the step, plus own's step; the others wait."""
    own, start = np.asarray(own, np.float64), np.asarray(previous, np.float64)
    trimmed = tri_mean(start, received, weights, f)
    result = start.copy()
    size = len(own) if block is None else min(block, len(own))
    for place in range(size):
        coordinate = (number // repeats * size + place) % len(own)
        result[coordinate] = trimmed[coordinate] + own[coordinate] - start[coordinate]
    return result


def generic(own: Any, received: Any, weights: Any, f: int, *, rule: str, r: float, **options: Any) -> Vector:
    """(1 - r) times what `rule` returns plus r times own."""
    return np.asarray((1.0 - r) * ORACLES[rule](own, received, weights, f, **options) + r * np.asarray(own, np.float64))


def heaviest_sum(weights: Any, f: int) -> float:
    """What the f heaviest neighbours weigh together."""
    return math.fsum(sorted((float(weight) for weight in weights[1:]), reverse=True)[:f])


def weighted_coo_med(own: Any, received: Any, weights: Any, f: int = 0) -> Vector:
    """Per coordinate the value at which the weights of the smaller ones reach half; the middle of two if exactly."""
    result = []
    for column in stack(own, received).T:
        ranked = sorted(zip((float(value) for value in column), (float(weight) for weight in weights)))
        half = math.fsum(weight for _, weight in ranked) / 2.0
        low = next(value for i, (value, _) in enumerate(ranked) if _reached(ranked, i) >= half * (1.0 - 1e-12))
        high = next(value for i, (value, _) in enumerate(ranked) if _reached(ranked, i) > half * (1.0 + 1e-12))
        result.append(low / 2.0 + high / 2.0)
    return np.array(result)


def _reached(ranked: Sequence[tuple[float, float]], last: int) -> float:
    return math.fsum(weight for _, weight in ranked[: last + 1])


def weighted_tri_mean(own: Any, received: Any, weights: Any, f: int) -> Vector:
    """Own and what is left of the neighbours' sorted weights, as a step function, after b is cut from both ends."""
    b, result = heaviest_sum(weights, f), []
    for mine, column in zip(np.asarray(own, np.float64), stack(own, received)[1:].T):
        ranked = sorted(zip((float(value) for value in column), (float(weight) for weight in weights[1:])))
        total = math.fsum(weight for _, weight in ranked)
        parts = [(float(mine), float(weights[0]))]
        for i, (value, weight) in enumerate(ranked):
            ends = _reached(ranked, i)
            left = min(ends, total - b) - max(ends - weight, b)
            if total - 2.0 * b > 1e-12 and left > 0.0:
                parts.append((value, left))
        kept = math.fsum(weight for _, weight in parts)
        result.append(math.fsum(value * (weight / kept) for value, weight in parts))
    return np.array(result)


def weighted_krum(own: Any, received: Any, weights: Any, f: int) -> Vector:
    """The vector with the least weighted squared distance to its nearest of all weight but the f + 1 heaviest's."""
    vectors, b = stack(own, received), heaviest_sum(weights, f + 1)
    scores = []
    for i, vector in enumerate(vectors):
        left, total = 1.0 - float(weights[i]) - b, 0.0
        for gap, j in sorted((distance2(vector, other), j) for j, other in enumerate(vectors) if j != i):
            total += max(0.0, min(left, float(weights[j]))) * gap
            left -= float(weights[j])
        scores.append(total)
    return np.asarray(vectors[first_least(scores, range(len(vectors)))])


def weighted_geo_med(own: Any, received: Any, weights: Any, f: int = 0, *, tolerance: float = 1e-5) -> Vector:
    return median_point(stack(own, received), [float(weight) for weight in weights])


ORACLES: dict[str, Oracle] = {
    "WeiMean": wei_mean,
    "NoComm": no_comm,
    "CooMed": coo_med,
    "GeoMed": geo_med,
    "Krum": krum,
    "MultiKrum": multi_krum,
    "TriMean": tri_mean,
    "FABA": faba,
    "IOS": ios,
    "CC": cc,
    "SCC": scc,
    "DRSA": drsa,
    "SimRew": sim_rew,
    "Bulyan": bulyan,
    "MeaMed": mea_med,
    "NNA": nna,
    "MDA": mda,
    "bucketing": bucketing,
    "NNM": nnm,
    "WeightedNNM": weighted_nnm,
    "UBAR": ubar,
    "Phocas": phocas,
    "CAF": caf,
    "SMEA": smea,
    "ARC": arc,
    "Zeno": zeno,
    "ByRDiE": byrdie,
    "generic": generic,
    "Reprieve": reprieve,
    "Tether": tether,
    "LazyIOS": lazy_ios,
    "GTS": gts,
    "ClippedGossip": clipped_gossip,
    "CS+": cs_plus,
    "RTC": rtc,
    "BALANCE": balance,
    "Leash": leash,
    "WeightedCooMed": weighted_coo_med,
    "WeightedTriMean": weighted_tri_mean,
    "WeightedKrum": weighted_krum,
    "WeightedGeoMed": weighted_geo_med,
}

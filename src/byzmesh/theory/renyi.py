"""The arithmetic of differential privacy: from noise and rounds to epsilon, and back.

z is the noise multiplier: the standard deviation of the noise over the sensitivity, the largest change that one change
of the data can make. Rounds add up.

    Gaussian    k rounds with multipliers z_1 .. z_k are one with 1 / z^2 = sum 1 / z_i^2, and epsilon is exact:
                delta = Phi(1 / (2 z) - epsilon z) - e^epsilon Phi(-1 / (2 z) - epsilon z)        (Balle and Wang 2018)
    sampled     each round uses a random part q of the samples; Renyi divergences of orders a add up, and
                epsilon = min_a rdp(a) + log(1 - 1/a) - log(delta a) / (a - 1)     (Canonne, Kamath and Steinke 2020)

    poisson     every sample takes part with probability q; neighbours differ by one sample more or less:
                rdp(a) = log(sum_j C(a, j) (1 - q)^(a - j) q^j e^((j^2 - j) / (2 z^2))) / (a - 1)     (Mironov 2019)
    distinct    q m of m samples without repetition; neighbours differ in one sample (Wang et al. 2019):
                rdp(a) <= log(1 + sum_{j>1} C(a, j) q^j min(4 chi(j), 2 e^((j^2 - j) / (2 z^2)))) / (a - 1)
                chi(j) = E (e^(X/z - 1/(2 z^2)) - 1)^j for even j, X standard normal; for odd j the geometric mean of
                those beside it

Orders are whole numbers from 2 on: coarse for large epsilon, where sampling hardly helps, and never too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from byzmesh.checks import fraction, positive
from byzmesh.errors import ConfigError
from byzmesh.types import Floats

ORDERS = (*range(2, 65), 72, 80, 96, 128, 192, 256)
SAMPLINGS = ("poisson", "distinct")
GRID = 0.02
"""Width of a step of the integrals."""


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """The least delta of the Gaussian mechanism for this epsilon."""
    from scipy.special import log_ndtr, ndtr

    half, far = 0.5 / multiplier, epsilon * multiplier
    second = math.exp(min(epsilon + float(log_ndtr(-half - far)), 0.0)) if multiplier > 0 else 0.0
    return float(ndtr(half - far)) - second


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """The least epsilon of the Gaussian mechanism for this delta; infinite without noise.

    >>> round(gaussian_epsilon(1.0, 1e-5), 3), gaussian_epsilon(0.0, 1e-5)
    (4.377, inf)
    """
    fraction("delta", delta, zero=False, one=False)
    if multiplier <= 0.0:
        return math.inf
    if math.isinf(multiplier) or gaussian_delta(multiplier, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(multiplier, high) > delta:
        high *= 2.0
    return _least(lambda epsilon: gaussian_delta(multiplier, epsilon) <= delta, 0.0, high)


def composed(multipliers: Floats) -> float:
    """The multiplier of one Gaussian mechanism that says as much as all of these.

    >>> composed(np.array([2.0, 2.0, 2.0, 2.0]))
    1.0
    """
    with np.errstate(divide="ignore"):
        total = float((1.0 / np.asarray(multipliers, np.float64) ** 2).sum())
    return math.inf if total == 0.0 else 1.0 / math.sqrt(total)


def sampled_rdp(multiplier: float, rate: float, sampling: str = "distinct") -> Floats:
    """(orders,) Renyi divergence of one round with a random part `rate` of the samples, at each of `ORDERS`.

    >>> sampled_rdp(1.0, 0.01, "poisson")[0].round(9), sampled_rdp(1.0, 1.0)[0]
    (np.float64(0.000171813), np.float64(1.0))
    """
    from scipy.special import gammaln, logsumexp

    if not 0.0 < rate <= 1.0:
        raise ConfigError(f"rate must be above 0 and at most 1, got {rate}")
    if sampling not in SAMPLINGS:
        raise ConfigError(f"sampling must be poisson or distinct, got {sampling!r}")
    if multiplier <= 0.0:
        return np.full(len(ORDERS), np.inf)
    whole = np.array([order / (2.0 * multiplier**2) for order in ORDERS])
    if rate == 1.0:
        return whole
    found = np.empty(len(ORDERS))
    inverse = 1.0 / multiplier**2
    chi: Floats = _log_chi(multiplier) if sampling == "distinct" else np.zeros(0)
    for place, order in enumerate(ORDERS):
        j = np.arange(order + 1)
        terms = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1) + j * math.log(rate)
        if sampling == "poisson":
            log_moment = float(logsumexp(terms + (j * j - j) * inverse / 2.0 + (order - j) * math.log1p(-rate)))
        else:
            at_most = np.minimum(math.log(4.0) + chi[: order + 1], math.log(2.0) + (j * j - j) * inverse / 2.0)
            log_moment = float(logsumexp(np.append((terms + at_most)[2:], 0.0)))
        found[place] = max(0.0, log_moment) / (order - 1)
    least: Floats = np.minimum(found, whole)
    return least


def epsilon_of(rdp: Floats, delta: float) -> float:
    """The least epsilon that these divergences at `ORDERS` allow for a delta."""
    fraction("delta", delta, zero=False, one=False)
    order = np.array(ORDERS, np.float64)
    each = rdp + np.log1p(-1.0 / order) - np.log(delta * order) / (order - 1.0)
    return max(0.0, float(each.min()))


def noise_for(epsilon: float, spent: Callable[[float], float]) -> float:
    """The least factor on the noise for which `spent`(factor), the epsilon, is at most the target.

    >>> round(noise_for(2.0, lambda factor: 10.0 / factor), 6)
    5.0
    """
    positive("epsilon", epsilon)
    high = 1.0
    while spent(high) > epsilon:
        high *= 2.0
        if high > 1e30:
            raise ConfigError(f"epsilon must be at least {spent(high):.3g}, the least that is proved, got {epsilon:g}")
    return _least(lambda factor: spent(factor) <= epsilon, high / 2.0 if high > 1.0 else 0.0, high)


def rounds_to_show(rounds: int) -> Sequence[int]:
    """Round numbers at which to print epsilon: powers of ten and the last.

    >>> rounds_to_show(2500)
    [1, 10, 100, 1000, 2500]
    """
    tens = [10**power for power in range(12) if 10**power < rounds]
    return [*tens, rounds]


@lru_cache(maxsize=256)
def _log_chi(multiplier: float) -> Floats:
    """log chi(j) for j = 0 .. the largest order, infinite where it would take long and nothing is gained.

    The integrand is positive and smooth, so that the trapezoidal rule is exact to rounding; the sum over binomials that
    it equals is not: its terms cancel.
    """
    from scipy.special import logsumexp

    top, s = max(ORDERS), 1.0 / multiplier
    found = np.full(top + 2, np.inf)
    for j in range(2, top + 2, 2):
        if j * s > 40.0:
            break
        x = np.arange(-14.0, 14.0 + j * s, GRID)
        gap = np.abs(np.expm1(s * x - s * s / 2.0))
        with np.errstate(divide="ignore"):
            found[j] = float(logsumexp(j * np.log(gap) - x * x / 2.0)) + math.log(GRID / math.sqrt(2.0 * math.pi))
    found[3:-1:2] = (found[2:-2:2] + found[4::2]) / 2.0
    return found[: top + 1]


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least value between these for which it holds, to 1e-10 of it, rounded up."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high - low <= 1e-10 * high:
            break
    return high

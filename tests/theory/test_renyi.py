"""The accountant against the values of Google's dp-accounting 0.6.0, against integrals, and against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.theory import renyi


@pytest.mark.parametrize(
    ("multiplier", "delta", "epsilon"),
    [
        (1.0, 1e-5, 4.377178095681137),
        (0.5, 1e-6, 10.997151214220652),
        (4.0, 1e-5, 0.9263415039982288),
        (20.0, 1e-5, 0.16004203445813098),
    ],
)
def test_gaussian_noise_costs_what_the_library_says(multiplier: float, delta: float, epsilon: float) -> None:
    assert renyi.gaussian_epsilon(multiplier, delta) == pytest.approx(epsilon, rel=1e-9)
    assert renyi.gaussian_delta(multiplier, epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(
    ("sampling", "multiplier", "rate", "rounds", "delta", "epsilon"),
    [
        ("poisson", 1.1, 256 / 60000, 14062, 1e-5, 2.5969811785948815),
        ("poisson", 4.0, 0.1, 500, 1e-5, 2.551358477747206),
        ("poisson", 0.7, 0.02, 200, 1e-6, 7.097942541649747),
        ("distinct", 1.0, 0.01, 1000, 1e-5, 3.576111482350549),
        ("distinct", 4.0, 0.1, 500, 1e-5, 5.6022419461716195),
        ("distinct", 8.0, 0.1, 150, 1e-5, 1.3118999760818648),
        ("distinct", 50.0, 0.25, 1000, 1e-6, 1.499264840631994),
        ("distinct", 0.7, 0.02, 200, 1e-6, 8.497165093560142),
    ],
)
def test_sampled_noise_costs_what_the_library_says(
    sampling: str, multiplier: float, rate: float, rounds: int, delta: float, epsilon: float
) -> None:
    """Computed once with RdpAccountant of dp-accounting 0.6.0 at the same orders; distinct: REPLACE_ONE."""
    spent = renyi.epsilon_of(rounds * renyi.sampled_rdp(multiplier, rate, sampling), delta)
    assert spent == pytest.approx(epsilon, rel=1e-9)


def test_values_that_the_library_publishes_in_its_own_tests() -> None:
    """dp-accounting, rdp_privacy_accountant_test.py: poisson_sampled_gaussian, epsilon_delta_pure_dp and _gaussian."""
    rdp = 50 * renyi.sampled_rdp(2.5, 0.01, "poisson")
    for order, published in ((5, 2.18075656e-03), (50, 2.38460375e-02)):
        assert rdp[renyi.ORDERS.index(order)] == pytest.approx(published, rel=1e-4)
    pure = np.where(np.array(renyi.ORDERS) <= 32, 1.1, np.inf)
    assert renyi.epsilon_of(pure, 1e-5) == pytest.approx(1.32783806176, abs=1e-7)
    assert 0.9 < renyi.gaussian_epsilon(4.530877117, 1e-6) < 1.0, "by Renyi divergences 1, exactly less"


def test_poisson_sampling_by_an_integral() -> None:
    """rdp(a) = log E_q (1 - r + r p/q)^a / (a - 1), by the trapezoidal rule."""
    x = np.arange(-40.0, 60.0, 0.01)
    z, rate = 1.3, 0.07
    ratio = 1.0 - rate + rate * np.exp((x - 0.5 / z) / z)
    found = renyi.sampled_rdp(z, rate, "poisson")
    for place, order in list(enumerate(renyi.ORDERS))[:8]:
        moment = (ratio**order * np.exp(-x * x / 2)).sum() * 0.01 / math.sqrt(2 * math.pi)
        assert found[place] == pytest.approx(math.log(moment) / (order - 1), rel=1e-9)


def test_more_noise_fewer_rounds_and_fewer_samples_never_cost_more() -> None:
    for sampling in renyi.SAMPLINGS:
        costs = [renyi.epsilon_of(100 * renyi.sampled_rdp(z, 0.05, sampling), 1e-5) for z in (0.6, 1.0, 3.0, 30.0)]
        assert costs == sorted(costs, reverse=True)
        whole = renyi.sampled_rdp(2.0, 1.0, sampling)
        assert (renyi.sampled_rdp(2.0, 0.3, sampling) <= whole).all() and whole[0] == pytest.approx(2 / (2 * 4.0))
    assert renyi.gaussian_epsilon(renyi.composed(np.full(100, 20.0)), 1e-5) == renyi.gaussian_epsilon(2.0, 1e-5)
    assert renyi.composed(np.array([np.inf, 3.0])) == 3.0 and renyi.gaussian_epsilon(math.inf, 1e-5) == 0.0


def test_the_noise_for_a_target_is_just_enough() -> None:
    def spent(factor: float) -> float:
        return renyi.epsilon_of(200 * renyi.sampled_rdp(factor, 0.02), 1e-5)

    factor = renyi.noise_for(1.5, spent)
    assert spent(factor) <= 1.5 < spent(factor * 0.999)
    with pytest.raises(ConfigError, match="epsilon must be at least 2, the least that is proved, got 1"):
        renyi.noise_for(1.0, lambda factor: 2.0)
    with pytest.raises(ConfigError, match="rate must be above 0"):
        renyi.sampled_rdp(1.0, 0.0)

"""What Theorems 1 and 2 and Corollary 1 promise in numbers.

    omega  = lambda - 8 rho sqrt(N)               > 0 iff the rule is RCA
    Delta  = 12 (1 - omega) / omega^3
    step   <= 1/(2 sqrt(3) L)                                            Theorem 1
    step   <= sqrt((2 - omega) omega^2 / (6 - 2 omega)) / (3 L)          Theorem 2
    E H^k  <= step^2 Delta d2,    d2 = delta_in^2 + delta_out^2          Theorem 2: disagreement
    mean over k of E ||grad f(xbar^k)||^2                                Theorem 1: gradient norm
           <= 2 gap/(step K) + 2 step delta_in^2 L / N
            + (36 e + 3 step^2 L^2) / (step^2 K) sum_k E H^k + 96 e d2,  e = rho^2 N + chi^2

Corollary 1 is the limit of many rounds and small steps with H^k from Theorem 2: (96 + 36 Delta) e d2; the paper states
its order. `gap` is f(xbar^0) - f*, K the number of rounds, L the smoothness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from byzmesh.checks import at_least, positive


def omega(rate: float, rho: float, workers: int) -> float:
    """lambda - 8 rho sqrt(N).

    >>> omega(0.9, 0.01, 25)
    0.5
    """
    return rate - 8.0 * rho * math.sqrt(workers)


def delta(omega: float) -> float:
    """Delta = 12 (1 - omega) / omega^3, infinite unless omega > 0.

    >>> delta(0.5)
    48.0
    """
    return 12.0 * (1.0 - omega) / omega**3 if omega > 0.0 else math.inf


def step_limit_1(smoothness: float) -> float:
    """The largest step of Theorem 1: 1 / (2 sqrt(3) L).

    >>> round(step_limit_1(1.0), 4)
    0.2887
    """
    return 1.0 / (2.0 * math.sqrt(3.0) * smoothness)


def step_limit_2(smoothness: float, omega: float) -> float:
    """The largest step of Theorem 2; 0 unless omega > 0.

    >>> round(step_limit_2(1.0, 1.0), 4)
    0.1667
    """
    if omega <= 0.0:
        return 0.0
    return math.sqrt((2.0 - omega) * omega**2 / (6.0 - 2.0 * omega)) / (3.0 * smoothness)


def theorem_1(
    *,
    step: float,
    rounds: int,
    smoothness: float,
    workers: int,
    rho: float,
    chi2: float,
    delta_in: float,
    delta_out: float,
    gap: float,
    mean_disagreement: float,
) -> float:
    """Right-hand side of Theorem 1; `mean_disagreement` is the mean of E H^k over the rounds.

    >>> theorem_1(step=0.1, rounds=10, smoothness=1.0, workers=5, rho=0.0, chi2=0.0, delta_in=1.0, delta_out=0.0,
    ...           gap=1.0, mean_disagreement=0.0)
    2.04
    """
    error = rho**2 * workers + chi2
    variation = delta_in**2 + delta_out**2
    start = 2.0 * gap / (step * rounds)
    noise = 2.0 * step * delta_in**2 * smoothness / workers
    disagreement = (36.0 * error + 3.0 * step**2 * smoothness**2) / step**2 * mean_disagreement
    return start + noise + disagreement + 96.0 * error * variation


def theorem_2(step: float, omega: float, delta_in: float, delta_out: float) -> float:
    """Bound on the disagreement E H^k: step^2 Delta (delta_in^2 + delta_out^2).

    >>> theorem_2(0.1, 0.5, 1.0, 0.0)
    0.4800000000000001
    """
    return step**2 * delta(omega) * (delta_in**2 + delta_out**2)


def corollary_1(rho: float, chi2: float, workers: int, omega: float, delta_in: float, delta_out: float) -> float:
    """Asymptotic learning error with the constants of the theorems: (96 + 36 Delta)(rho^2 N + chi^2) d2."""
    error = rho**2 * workers + chi2
    return 0.0 if error == 0.0 else (96.0 + 36.0 * delta(omega)) * error * (delta_in**2 + delta_out**2)


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The theorems in numbers for one network, rule and problem.

    step is the one asked for, or the largest that the applicable theorems allow; disagreement and learning_error are
    None unless the rule is RCA; gradient also needs `rounds` and `gap`.
    """

    omega: float
    delta: float
    step_limit_1: float
    step_limit_2: float
    step: float
    disagreement: float | None
    gradient: float | None
    learning_error: float | None


def promise(
    *,
    rate: float,
    rho: float,
    chi2: float,
    workers: int,
    smoothness: float,
    delta_in: float,
    delta_out: float,
    step: float | None = None,
    rounds: int | None = None,
    gap: float | None = None,
) -> Promise:
    """Everything the theorems say; if rho is NaN or infinite (nothing proved), only Theorem 1's step remains.

    >>> told = promise(rate=0.9, rho=0.01, chi2=0.0, workers=25, smoothness=2.0, delta_in=1.0, delta_out=1.0)
    >>> round(told.step, 4), round(told.disagreement, 4)
    (0.0456, 0.2)
    """
    for name, value in {"L": smoothness, "step": step, "rounds": rounds}.items():
        if value is not None:
            positive(name, value)
    for name, value in {"delta_in": delta_in, "delta_out": delta_out}.items():
        at_least(name, value, 0)
    excess = omega(rate, rho, workers) if math.isfinite(rho) else -math.inf
    first, second = step_limit_1(smoothness), step_limit_2(smoothness, excess)
    contracts = excess > 0.0
    chosen = step if step is not None else (min(first, second) if contracts else first)
    disagreement = theorem_2(chosen, excess, delta_in, delta_out) if contracts and chosen <= second else None
    gradient = None
    if disagreement is not None and chosen <= first and rounds is not None and gap is not None:
        gradient = theorem_1(
            step=chosen,
            rounds=rounds,
            smoothness=smoothness,
            workers=workers,
            rho=rho,
            chi2=chi2,
            delta_in=delta_in,
            delta_out=delta_out,
            gap=gap,
            mean_disagreement=disagreement,
        )
    error = corollary_1(rho, chi2, workers, excess, delta_in, delta_out) if contracts else None
    return Promise(
        omega=excess,
        delta=delta(excess),
        step_limit_1=first,
        step_limit_2=second,
        step=chosen,
        disagreement=disagreement,
        gradient=gradient,
        learning_error=error,
    )

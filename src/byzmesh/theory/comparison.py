"""Theorems 1 and 2 and Corollary 1 held against a run: both sides, or what keeps the theorem from saying anything.

    Theorem 1     (1/K) sum_{k=1..K} ||grad f(xbar^k)||^2   with the H^k of the run on the right side
    Theorem 2     max_k H^k
    Corollary 1   the left side of Theorem 1, with Theorem 2's bound on H^k on the right side: what it states as an
                  order, with constants and with the terms that vanish for many rounds

The theorems are about expectations over the gradients' noise. With noise, left sides are means over draws of it; one
draw may lie above a bound on the mean, so only a mean beyond it by `SIGMAS` standard errors contradicts a theorem.
Without noise everything in the proofs holds along the run itself: rho may then be the largest ratio that the run had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.theory.mixing import STRICT, rho_star
from byzmesh.theory.theorems import corollary_1, omega, step_limit_1, step_limit_2, theorem_1, theorem_2
from byzmesh.types import Floats

HELD, EXCEEDED, SILENT = "held", "exceeded", "says nothing"
SIGMAS = 5.0
ROUNDING = 64.0
"""Models may be off by this many units of rounding; what follows from that is no contradiction."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What the right sides consist of. A number that is not known is NaN; `step` is NaN if it changes in the run.

    rate       lambda of W                     connected  whether W's graph is strongly connected
    rho        contraction constant of (A, W)  chi2       of W
    gap        f(xbar^0) - f*                  rounds     K
    """

    workers: int
    rounds: int
    step: float
    rate: float
    connected: bool
    rho: float
    chi2: float
    smoothness: float
    delta_in: float
    delta_out: float
    gap: float

    @property
    def omega(self) -> float:
        """lambda - 8 rho sqrt(N)."""
        return omega(self.rate, self.rho, self.workers)

    def bound_1(self, mean_disagreement: Any) -> Any:
        """Right side of Theorem 1, for the mean of H^k over the rounds (a number or an array of them)."""
        return theorem_1(
            step=self.step,
            rounds=self.rounds,
            smoothness=self.smoothness,
            workers=self.workers,
            rho=self.rho,
            chi2=self.chi2,
            delta_in=self.delta_in,
            delta_out=self.delta_out,
            gap=self.gap,
            mean_disagreement=mean_disagreement,
        )

    def bound_2(self) -> float:
        """Right side of Theorem 2."""
        return theorem_2(self.step, self.omega, self.delta_in, self.delta_out)

    def limit(self) -> float:
        """What is left of Corollary 1's right side for many rounds and small steps."""
        return corollary_1(self.rho, self.chi2, self.workers, self.omega, self.delta_in, self.delta_out)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What the left sides consist of, for R draws of the noise and K rounds.

    disagreement  (R, K + 1) H^k               gradient  (R, K + 1) ||grad f(xbar^k)||^2
    contraction   (R, K) the largest ratio of Definition 1 over the honest workers in each exchange
    largest       norm of the largest honest model
    epsilon       rounding unit of the models
    """

    disagreement: Floats
    gradient: Floats
    contraction: Floats
    largest: float
    epsilon: float

    @property
    def rho(self) -> float:
        """The largest ratio that occurred."""
        return float(self.contraction.max(initial=0.0))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One theorem and the run: `status` is held, exceeded or says nothing, then for the reasons `unmet`."""

    name: str
    about: str
    status: str
    left: float | None = None
    right: float | None = None
    unmet: tuple[str, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        if self.left is None or self.right is None:
            return f"{self.name} ({self.about}) says nothing about this run: {'; '.join(self.unmet)}."
        told = f"{self.name} ({self.about}) {self.status}: {self.left:.4g} against at most {self.right:.4g}"
        if 0.0 < self.left <= self.right:
            told += f", {self.right / self.left:.3g} times as much"
        elif self.left > self.right > 0.0:
            told += f", which is {self.left / self.right:.3g} times that"
        return f"{told}{f' ({self.note})' if self.note else ''}."


def unmet_1(terms: Terms) -> tuple[str, ...]:
    """Conditions of Theorem 1 that these terms do not meet, in words.

    >>> met = Terms(workers=4, rounds=9, step=0.1, rate=0.9, connected=True, rho=0.0, chi2=0.0, smoothness=1.0,
    ...             delta_in=1.0, delta_out=1.0, gap=1.0)
    >>> unmet_1(met)
    ()
    """
    return (*_unknown(terms, gap=True), *_too_large(terms, step_limit_1(terms.smoothness)))


def unmet_2(terms: Terms) -> tuple[str, ...]:
    """Conditions of Theorem 2 that are not met, in words."""
    told = list(_unknown(terms, gap=False))
    star = rho_star(terms.rate, terms.workers)
    if math.isnan(terms.rate):
        told.append("lambda is not known for so large a network")
    elif not (terms.connected and terms.rate > 0.0):
        told.append(f"the honest workers are not connected well enough (lambda {terms.rate:.4g} must be above 0)")
    elif math.isfinite(terms.rho) and not terms.rho < star:
        told.append(f"rho {terms.rho:.4g} is not below rho* = lambda / (8 sqrt N) = {star:.4g}")
    elif math.isfinite(terms.rho):
        told += _too_large(terms, step_limit_2(terms.smoothness, terms.omega))
    return tuple(told)


def unmet_corollary(terms: Terms) -> tuple[str, ...]:
    """Conditions of Corollary 1 that are not met: those of both theorems, and that W is doubly stochastic."""
    uneven = (f"W is not doubly stochastic (chi^2 {terms.chi2:.4g})",) if terms.chi2 > STRICT else ()
    return tuple(dict.fromkeys([*unmet_1(terms), *unmet_2(terms), *uneven]))


def _unknown(terms: Terms, gap: bool) -> list[str]:
    needed = {
        "the smoothness L": terms.smoothness,
        "delta_in": terms.delta_in,
        "delta_out": terms.delta_out,
        **({"f(x^0) - f*": terms.gap} if gap else {}),
    }
    told = [
        f"no bound on {name} that holds at every model is known (sampled values prove nothing)"
        for name, value in needed.items()
        if not math.isfinite(value)
    ]
    if not math.isfinite(terms.rho):
        told.append("no bound on rho is proved for this rule here")
    if math.isnan(terms.step):
        told.append("the step size is not constant")
    return told


def _too_large(terms: Terms, limit: float) -> list[str]:
    return [f"the step size {terms.step:.4g} is above {limit:.4g}"] if terms.step > limit else []


ABOUT = {
    "Theorem 1": "the mean squared gradient at the average model",
    "Theorem 2": "the disagreement H in every round",
    "Corollary 1": "the mean squared gradient, with Theorem 2's bound on H",
}


def unmet(terms: Terms) -> dict[str, tuple[str, ...]]:
    """What keeps each theorem from saying anything, by its name; nothing if it applies."""
    return {"Theorem 1": unmet_1(terms), "Theorem 2": unmet_2(terms), "Corollary 1": unmet_corollary(terms)}


def silent(name: str, why: tuple[str, ...]) -> Comparison:
    """A theorem that says nothing."""
    return Comparison(name=name, about=ABOUT[name], status=SILENT, unmet=why)


def compare(terms: Terms, trace: Trace) -> tuple[Comparison, ...]:
    """Theorem 1, Theorem 2 and Corollary 1 compared with a run."""
    noisy = terms.delta_in > 0.0
    slack = (ROUNDING * trace.epsilon * trace.largest) ** 2
    gradient = trace.gradient[:, 1:].mean(axis=1, keepdims=True)
    disagreement = trace.disagreement[:, 1:].mean(axis=1, keepdims=True)
    told = []
    for name, why in unmet(terms).items():
        if why:
            told.append(silent(name, why))
        elif name == "Theorem 1":
            told.append(_sides(name, gradient, terms.bound_1(disagreement), terms.smoothness**2 * slack, noisy))
        elif name == "Theorem 2":
            told.append(_sides(name, trace.disagreement, terms.bound_2(), slack, noisy))
        else:
            left_over = f"{terms.limit():.4g} of that remains for many rounds and small steps"
            right = terms.bound_1(terms.bound_2())
            told.append(_sides(name, gradient, right, terms.smoothness**2 * slack, noisy, left_over))
    return tuple(told)


def definition_1(proved: float, trace: Trace) -> Comparison:
    """The contraction that was proved compared with the largest ratio of the run."""
    about = "the largest move by lies, in honest spreads, against the proved rho"
    if not math.isfinite(proved):
        why = ("no bound on rho is proved for this rule here",)
        return Comparison(name="Definition 1", about=about, status=SILENT, unmet=why)
    status = EXCEEDED if trace.rho > proved * (1.0 + 1e-9) else HELD
    return Comparison(name="Definition 1", about=about, status=status, left=trace.rho, right=proved)


def _sides(name: str, left: Floats, right: Any, slack: float, noisy: bool, note: str = "") -> Comparison:
    """Both sides (R, M) or one number, R draws of M values whose means the theorem bounds."""
    draws = len(left)
    apart = left - right
    beyond = apart.mean(axis=0) - slack
    error = apart.std(axis=0, ddof=1) / math.sqrt(draws) if draws > 1 else np.full(len(beyond), math.inf)
    drawn = f"mean of {draws} draws of the noise" if draws > 1 else "one draw of the noise"
    status = HELD
    why: tuple[str, ...] = ()
    if (beyond > 0.0).any():
        clear = not noisy or bool((beyond > SIGMAS * error).any())
        status = EXCEEDED if clear else SILENT
        why = () if clear else (f"it bounds the mean over the noise, about which the {drawn} cannot tell",)
    return Comparison(
        name=name,
        about=ABOUT[name],
        status=status,
        left=float(left.mean(axis=0).max()),
        right=float(np.mean(right)),
        unmet=why,
        note="; ".join(filter(None, (note, drawn if noisy else "", *why))),
    )

"""The theorems held against a run: `check_theorems`, behind `byzmesh certify --run KEY`.

A stored run has its metrics at some rounds, the theorems are about every round. A run is a function of its config, so
it is computed again, round by round, with what the theorems need. That works for every stored run, and costs one run
and one full gradient per round. Where no theorem applies, which is found out first, nothing is computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from byzmesh.checks import at_least, positive, whole
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.problems.base import Bounded
from byzmesh.rules.interop import to_host
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.run import Run
from byzmesh.simulation.tracing import trace_of
from byzmesh.store import Store
from byzmesh.sweeps.build import build
from byzmesh.theory.certificate_text import number
from byzmesh.theory.comparison import (
    ABOUT,
    EXCEEDED,
    HELD,
    SILENT,
    Comparison,
    Terms,
    Trace,
    compare,
    definition_1,
    silent,
    unmet,
)
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.mixing import chi2, mixing_rate, strongly_connected, virtual_mixing

EXIT_CODES = {HELD: 0, EXCEEDED: 1, SILENT: 3}
"""As of every certificate; 2 is a usage error."""


@dataclass(frozen=True, kw_only=True)
class TheoremsReport:
    """The theorems and a run. `print` shows it as text, `to_dict` is for programs.

    comparisons  Theorem 1, Theorem 2 and Corollary 1, and Definition 1 if the run was computed
    rho_from     where the rho in `terms` comes from: "proved", "run" or "nowhere"
    trace        H^k, gradients and contraction of every round; None if no theorem applies, so nothing was computed
    deviation    of a stored run: the largest difference between the H that it stores and this computation, relative to
                 the largest H; None: nothing to compare
    """

    about: str
    terms: Terms
    rho_from: str
    comparisons: tuple[Comparison, ...]
    trace: Trace | None
    deviation: float | None = None

    def __getitem__(self, name: str) -> Comparison:
        """A comparison by its name, "Theorem 2" say."""
        return next(told for told in self.comparisons if told.name == name)

    @property
    def status(self) -> str:
        """exceeded if anything is; held if all theorems held; otherwise at least one of them says nothing."""
        found = {told.status for told in self.comparisons if told.name in ABOUT or told.status == EXCEEDED}
        return EXCEEDED if EXCEEDED in found else SILENT if SILENT in found else HELD

    @property
    def exit_code(self) -> int:
        """0: everything held, 1: something was exceeded, 3: some theorem says nothing about this run."""
        return EXIT_CODES[self.status]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that is not known or infinite is None."""
        terms = {name: _plain(value) for name, value in asdict(self.terms).items()}
        told = [{name: _plain(value) for name, value in asdict(comparison).items()} for comparison in self.comparisons]
        return {
            "about": self.about,
            "status": self.status,
            **terms,
            "rho_from": self.rho_from,
            "deviation": self.deviation,
            "comparisons": told,
        }

    def __str__(self) -> str:
        terms = self.terms
        answer = {HELD: "all hold", EXCEEDED: "not all hold", SILENT: "not all of them apply"}[self.status]
        origin = {"proved": " (proved)", "run": " (the largest ratio of this run)", "nowhere": ""}[self.rho_from]
        step = "not constant" if math.isnan(terms.step) else number(terms.step)
        return "\n".join(
            [
                self.about,
                f"The theorems along this run: {answer}.",
                *map(str, self.comparisons),
                f"N {terms.workers}, K {terms.rounds}, step size {step}, lambda {number(terms.rate)}, rho "
                f"{number(terms.rho)}{origin}, chi^2 {number(terms.chi2)}, L {number(terms.smoothness)}, delta_in "
                f"{number(terms.delta_in)}, delta_out {number(terms.delta_out)}, f(x^0) - f* {number(terms.gap)}.",
                *([] if self.deviation is None else [f"The stored H differs from it by at most {self.deviation:.1e}."]),
            ]
        )


def check_theorems(
    run: Mapping[str, Any] | Run | Simulation,
    *,
    draws: int = 1,
    L: float | None = None,
    delta_in: float | None = None,
    delta_out: float | None = None,
    gap: float | None = None,
) -> TheoremsReport:
    """Both sides of Theorems 1 and 2 and of Corollary 1 along a run, which is computed again from the start.

    run    a config, a `Run` (its config is used) or a prepared `Simulation`
    draws  how many times to draw the gradients' noise: the first is that of the run, whose own data and first models
           all have; left sides are means over them
    L, delta_in, delta_out, gap   constants that hold at every model, if you know them (with weight decay; gap is
           f(x^0) - f*). By default they are the problem's own: exact for quadratics, bounds for softmax and logistic

    >>> import byzmesh as bm
    >>> quadratic = {"name": "noisy-quadratic", "delta_in": 0.5, "init": "common"}
    >>> told = bm.check_theorems({"problem": quadratic, "network": {"name": "complete", "n": 6}, "rule": "mean",
    ...                           "rounds": 30, "step": 0.05, "local": {"decay": 0.0}, "dtype": "float64"})
    >>> told.status, [round(told[name].right / told[name].left) for name in ("Theorem 1", "Corollary 1")]
    ('held', [2, 2])
    """
    whole("draws", draws, 1)
    if isinstance(run, Simulation):
        simulation = run
    else:
        simulation = build(resolve(run.config if isinstance(run, Run) else run))
    whole("rounds of the run", simulation.rounds, 1)
    given = {"smoothness": L, "delta_in": delta_in, "delta_out": delta_out, "gap": gap}
    proved, terms = _terms(simulation, given)
    about = _about(simulation)
    lacking = _other_algorithm(simulation)
    deterministic = terms.delta_in == 0.0
    # without noise rho is that of the run, which cannot be below 0
    possible = unmet(replace(terms, rho=0.0) if deterministic else terms)
    if lacking or all(possible.values()):
        told = tuple(silent(name, (*lacking, *why)) for name, why in unmet(terms).items())
        origin = "proved" if math.isfinite(proved) else "nowhere"
        return TheoremsReport(about=about, terms=terms, rho_from=origin, comparisons=told, trace=None)
    trace = trace_of(simulation, draws)
    terms = replace(terms, rounds=trace.disagreement.shape[1] - 1)
    origin = "proved" if math.isfinite(proved) else "nowhere"
    if deterministic and not proved <= trace.rho:
        terms, origin = replace(terms, rho=trace.rho), "run"
    told = (definition_1(proved, trace), *compare(terms, trace))
    return TheoremsReport(about=about, terms=terms, rho_from=origin, comparisons=told, trace=trace)


def check_stored(store: Store, key: str, **options: Any) -> TheoremsReport:
    """`check_theorems` of a stored run, whose H is compared with the one computed again."""
    record = store.get(key)
    report = check_theorems(build(record.config), **options)
    series = store.series(record.key)
    if report.trace is None or "disagreement" not in series:
        return report
    again = report.trace.disagreement[0]
    at = series["round"].astype(np.int64)
    stored = series["disagreement"][at < len(again)]
    top = max(float(again.max()), float(np.finfo(np.float64).tiny))
    apart = float(np.abs(stored - again[at[at < len(again)]]).max(initial=0.0)) / top
    return replace(report, deviation=apart)


def _about(simulation: Simulation) -> str:
    network = simulation.network
    liars = len(network.byzantine)
    return (
        f"{simulation.rule.name} on {network.name}, {len(network.honest)} honest workers"
        + (f", {liars} lying ({simulation.attack.name})" if liars else ", nobody lying")
        + f", {simulation.rounds} rounds, computed again from the config."
    )


def _terms(simulation: Simulation, given: Mapping[str, float | None]) -> tuple[float, Terms]:
    """The proved rho (NaN or infinite: none) and everything that the right sides need."""
    task, network, rule = simulation.task, simulation.network, simulation.rule
    if network.samples is not None:
        raise ConfigError("the theorems are about the mean over workers; this run weighs samples (objective: samples)")
    mixing = virtual_mixing(network, rule).matrix
    proved = proved_contraction(network, rule, simulation.setting.bound, simulation.setting.weight_bound).rho
    known = dict.fromkeys(given, math.nan)
    if isinstance(task, Bounded):
        decay = simulation.local.decay
        start = task.initial()[: task.workers].mean(axis=0, dtype=np.float64)
        value = float(task.local_losses(start).mean()) + 0.5 * decay * float(start @ start)
        inner, outer = task.variations()
        known = {
            "smoothness": task.smoothness() + decay,
            "delta_in": inner,
            "delta_out": outer,
            "gap": value - task.least_loss(),
        }
    for name, number_given in given.items():
        if number_given is not None:
            known[name] = positive("L", number_given) if name == "smoothness" else at_least(name, number_given, 0)
    sizes = {simulation.schedule(k) for k in range(simulation.rounds)}
    return proved, Terms(
        workers=len(network.honest),
        rounds=simulation.rounds,
        step=sizes.pop() if len(sizes) == 1 else math.nan,
        rate=mixing_rate(mixing),
        connected=strongly_connected(mixing),
        rho=proved,
        chi2=chi2(mixing),
        **known,
    )


def _other_algorithm(simulation: Simulation) -> tuple[str, ...]:
    """What the run does differently from Algorithm 1, about which the theorems are."""
    local, told = simulation.local, []
    if local.momentum != "none":
        told.append("Algorithm 1 has no momentum")
    if local.variance != "none":
        told.append("Algorithm 1 has no variance reduction")
    if local.clip is not None or local.clip_samples is not None:
        told.append("Algorithm 1 does not clip gradients")
    if local.steps > 1:
        told.append(f"Algorithm 1 has one gradient step per round, not {local.steps}")
    if simulation.rule.sends != "half":
        told.append("Algorithm 1 exchanges models after the gradient step")
    first = to_host(simulation.task.initial())[: simulation.task.workers]
    if (first != first[0]).any():
        told.append("Algorithm 1 starts all workers from the same model")
    return tuple(told)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""The certificate of a rule on a network: as text (words first, then numbers) and for programs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.theory.certificate_text import about, bounds, levels, number, tolerance, yes_or_no
from byzmesh.theory.connectivity import Connectivity
from byzmesh.theory.consensus import Condition
from byzmesh.theory.contraction import Proof
from byzmesh.theory.gossip import Spectrum
from byzmesh.theory.mixing import Mixing
from byzmesh.theory.question import Question
from byzmesh.theory.search.agreement import Agreement
from byzmesh.theory.search.climb import Search
from byzmesh.theory.sites import SiteReport, in_a_sentence
from byzmesh.theory.theorems import Promise
from byzmesh.theory.verdict import ANSWERS, Verdict
from byzmesh.theory.verdicts import WorkerReport
from byzmesh.types import Floats

EXIT_CODES = {"proved": 0, "refuted": 1, "unknown": 3}
"""Exit codes of `byzmesh certify`; 2 is a usage error."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate:
    """What is known about a rule on a network. `print` shows it as text, `to_dict` is for programs.

    rate        lambda; if liars may be anywhere, a lower bound, or None if none is known
    rho_bound   the proved bound (None: nothing proved; infinity: proved to be unbounded)
    search      the result of the search for bad inputs
    mixing, chi2, doubly_stochastic, strongly_connected and perron belong to W with the given liars, or with nobody
    lying
    """

    question: Question
    rule: Rule
    limit: float
    mixing: Mixing
    rate: float | None
    rho_star: float | None
    chi2: float
    sites: tuple[SiteReport, ...]
    doubly_stochastic: bool
    strongly_connected: bool
    connectivity: Connectivity
    perron: Floats | None
    proof: Proof
    workers: tuple[WorkerReport, ...]
    bounded: Verdict
    fair: Verdict
    agrees: Verdict
    rdsa: Verdict
    rca: Verdict
    conditions: tuple[Condition, ...]
    spectrum: Spectrum | None
    search: Search | None
    agreement: Agreement | None
    promise: Promise | None
    guarantee: str
    channel: str | None = None
    """What lies and the channel can do together, in words."""

    @property
    def network(self) -> Network:
        """The network, with its liars if they are given."""
        return self.question.network

    @property
    def verdict(self) -> Verdict:
        """The verdict on the guarantee that was asked for."""
        return {
            "connected": self.connectivity.verdict,
            "bounded": self.bounded,
            "fair": self.fair,
            "agrees": self.agrees,
            "rdsa": self.rdsa,
            "rca": self.rca,
        }[self.guarantee]

    @property
    def holds(self) -> bool:
        """Whether the guarantee that was asked for is proved."""
        return bool(self.verdict)

    @property
    def exit_code(self) -> int:
        """0: it holds, 1: it does not hold, 3: unknown."""
        return EXIT_CODES[self.verdict.status]

    @property
    def honest_connected(self) -> bool:
        """Whether it is proved that the honest workers reach each other."""
        return bool(self.connectivity.verdict)

    @property
    def rho_bound(self) -> float | None:
        """The proved bound on rho; None: nothing is proved; infinity: proved to be unbounded."""
        return None if math.isnan(self.proof.rho) else self.proof.rho

    @property
    def factor_bound(self) -> float | None:
        """What one exchange multiplies the disagreement H by at most, whatever the liars send; None: not known."""
        return min((told.factor for told in self.conditions if told.name in ("spectral", "gossip")), default=None)

    @property
    def h_max(self) -> float:
        """The largest h."""
        return max(worker.h for worker in self.workers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that does not exist or is infinite is None."""
        return as_dict(self)

    def __str__(self) -> str:
        return in_words(self)

    def __repr__(self) -> str:
        known = "" if self.rho_bound is None else f", rho <= {number(self.rho_bound)}"
        return (
            f"Certificate({self.rule.name} on {self.network.name}: {self.guarantee} "
            f"{ANSWERS[self.verdict.status]}{known})"
        )

    def _repr_html_(self) -> str:
        from byzmesh.theory.certificate_html import certificate_html

        return certificate_html(self)


def in_words(certificate: Certificate) -> str:
    """The certificate as text."""
    return "\n".join([*_words(certificate), "", *_numbers(certificate)])


def _words(certificate: Certificate) -> list[str]:
    verdict = certificate.verdict
    lines = [about(certificate.question, certificate.rule)]
    lines.append(f"The guarantee asked for ({certificate.guarantee}): {ANSWERS[verdict.status]}.")
    for name, meaning in levels(certificate.limit, certificate.network).items():
        lines.append(f"{meaning} {getattr(certificate, name)}.")
    if certificate.connectivity.verdict.status == "refuted":
        lines.append(f"Not connected: {certificate.connectivity.verdict.reason}.")
    lines += tolerance(certificate.network, certificate.rule, certificate.workers)
    lines += in_a_sentence(certificate.network, certificate.sites)
    lines += [] if certificate.channel is None else [certificate.channel]
    searched, proof = certificate.search, certificate.proof
    if searched is not None and searched.witness is not None:
        top = "nothing is proved" if certificate.rho_bound is None else f"proved at most {bounds(proof)}"
        lines.append(f"Measured contraction: at least {number(searched.rho)}, {top}.")
    return lines


def _numbers(certificate: Certificate) -> list[str]:
    whose = "nobody lying, " if certificate.question.anywhere else ""
    least = "at least " if certificate.question.anywhere else ""
    searched = certificate.search
    lines = [
        f"W ({certificate.mixing.form}, {whose}{certificate.mixing.source}): doubly stochastic "
        f"{yes_or_no(certificate.doubly_stochastic)}, chi^2 {certificate.chi2:.6f}, "
        f"strongly connected {yes_or_no(certificate.strongly_connected)}",
        f"lambda {least}{number(certificate.rate)}, rho* {least}{number(certificate.rho_star)}, honest workers "
        f"connected {ANSWERS[certificate.connectivity.verdict.status]}",
        f"h at most {certificate.h_max:.4f}",
        f"rho in [{0.0 if searched is None else searched.rho:.4g} searched, {number(certificate.rho_bound)} proved]",
        f"RDSA (Definition 3) {certificate.rdsa.status}: {certificate.rdsa.reason}",
        f"RCA (Definition 2) {certificate.rca.status}: {certificate.rca.reason}",
    ]
    reached = certificate.agreement
    if reached is not None:
        lines.append(
            f"H per exchange times [{reached.factor:.4g} searched, {number(certificate.factor_bound)} proved]; "
            f"over {reached.rounds} exchanges at least {reached.over_rounds:.4g} each"
        )
    seen = certificate.spectrum
    if seen is not None:
        lines.append(
            f"honest Laplacian: mu_2 {least}{seen.mu_2:.4f}, mu_max {'at most ' if least else ''}{seen.mu_max:.4f}"
        )
    told = certificate.promise
    if told is not None:
        lines += [
            f"omega {told.omega:.4g}, Delta {told.delta:.4g}; step at most {told.step_limit_1:.4g} (Theorem 1), "
            f"{told.step_limit_2:.4g} (Theorem 2)",
            f"with step {told.step:.4g}: E H^k <= {number(told.disagreement)}, mean squared gradient <= "
            f"{number(told.gradient)}, in the limit {number(told.learning_error)}",
        ]
    return lines


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def as_dict(certificate: Certificate) -> dict[str, Any]:
    """The certificate as plain values."""
    network, searched, question = certificate.network, certificate.search, certificate.question
    names = ("bounded", "fair", "agrees", "rdsa", "rca")
    cut, reached = certificate.connectivity.cut, certificate.agreement
    return {
        "network": network.name,
        "names": None if network.names is None else list(network.names),
        "rule": certificate.rule.name,
        "options": {
            name: value if _is_plain(value) else str(value) for name, value in certificate.rule.options.items()
        },
        "byzantine": network.byzantine.tolist(),
        "anywhere": question.anywhere,
        "total": question.total,
        "b": None if question.b is None else question.b.tolist(),
        "guarantee": certificate.guarantee,
        "channel": certificate.channel,
        "limit": certificate.limit,
        "answer": ANSWERS[certificate.verdict.status],
        "holds": certificate.holds,
        "exit_code": certificate.exit_code,
        "summary": _words(certificate),
        "verdicts": {
            **{name: asdict(getattr(certificate, name)) for name in names},
            "connected": asdict(certificate.connectivity.verdict),
        },
        "cut": None if cut is None else cut.tolist(),
        "conditions": [
            {**{name: _plain_or_text(value) for name, value in asdict(told).items()}, "holds": told.holds}
            for told in certificate.conditions
        ],
        "lambda": _plain(certificate.rate),
        "rho_star": _plain(certificate.rho_star),
        "h": [worker.h for worker in certificate.workers],
        "h_max": certificate.h_max,
        "rho_bound": _plain(certificate.rho_bound),
        "rho_bounds": {proof.reason: _plain(proof.rho) for proof in (certificate.proof, *certificate.proof.beside)},
        "rho_unbounded": certificate.rho_bound is not None and math.isinf(certificate.rho_bound),
        "rho_searched": None if searched is None else _plain(searched.rho),
        "searched_unbounded": searched is not None and math.isinf(searched.rho),
        "disagreement": {
            "factor_bound": _plain(certificate.factor_bound),
            "factor_searched": None if reached is None else _plain(reached.factor),
            "searched_over_rounds": None if reached is None else _plain(reached.over_rounds),
        },
        "chi2": certificate.chi2,
        "samples": None if network.samples is None else network.samples.tolist(),
        "sites": [{**asdict(site), "rho_bound": _plain(site.rho_bound)} for site in certificate.sites],
        "mixing": {"form": certificate.mixing.form, "source": certificate.mixing.source},
        "doubly_stochastic": certificate.doubly_stochastic,
        "strongly_connected": certificate.strongly_connected,
        "perron": None if certificate.perron is None else certificate.perron.tolist(),
        "spectrum": None if certificate.spectrum is None else asdict(certificate.spectrum),
        "promise": None
        if certificate.promise is None
        else {name: _plain(value) for name, value in asdict(certificate.promise).items()},
        "workers": [
            {**asdict(worker), "name": network.label(worker.worker), "rho_bound": _plain(worker.rho_bound)}
            for worker in certificate.workers
        ],
    }


def _plain_or_text(value: Any) -> Any:
    return _plain(value) if isinstance(value, float) else value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)

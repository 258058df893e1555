"""The certificate of a rule on a network: for people (plain words first, numbers below) and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.rules.contraction import THIRD
from byzmesh.theory.contraction import Proof, heaviest, rca_limit
from byzmesh.theory.gossip import Gossip, contracts
from byzmesh.theory.mixing import Mixing
from byzmesh.theory.search.climb import Search
from byzmesh.theory.theorems import Promise
from byzmesh.theory.verdicts import Verdict, WorkerReport
from byzmesh.theory.worst_placement import Placement
from byzmesh.types import Floats


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What is known about a rule on a network. `print` shows it in words, `to_dict` is for machines.

    rho_bound is the proved bound (None: nothing proved; infinity: proved to be unbounded), search what the search
    for bad inputs reached.
    """

    network: Network
    rule: Rule
    f: Any
    mixing: Mixing
    rate: float
    rho_star: float
    chi2: float
    doubly_stochastic: bool
    strongly_connected: bool
    honest_connected: bool
    perron: Floats | None
    proof: Proof
    rho_bound: float | None
    workers: tuple[WorkerReport, ...]
    rdsa: Verdict
    rca: Verdict
    gossip: Gossip
    search: Search | None
    placement: Placement | None
    promise: Promise | None
    guarantee: str

    @property
    def holds(self) -> bool:
        """Whether the guarantee that was asked for is proved."""
        connected = self.honest_connected and self.strongly_connected
        return {
            "rdsa": bool(self.rdsa) and connected,
            "rca": bool(self.rca),
            "both": bool(self.rdsa) and bool(self.rca),
            "gossip": contracts(self.rule.gossip_factor, self.gossip.b, self.gossip.mu_2),
            "connected": connected,
        }[self.guarantee]

    @property
    def h_max(self) -> float:
        """The largest h."""
        return max(worker.h for worker in self.workers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a number that does not exist or is infinite is None."""
        return as_dict(self)

    def __str__(self) -> str:
        return in_words(self)


def spans(ids: Iterable[int]) -> str:
    """Ids as ranges.

    >>> spans([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7, 8'
    """
    runs: list[list[int]] = []
    for number in sorted(ids):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [
        [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run]  # two are no range
        for run in runs
    ]
    return ", ".join(part for group in parts for part in group)


def in_words(certificate: Certificate) -> str:
    """The certificate as text."""
    return "\n".join([*_words(certificate), "", *_numbers(certificate)])


def _words(certificate: Certificate) -> list[str]:
    network = certificate.network
    liars = network.byzantine.tolist()
    who = f"{len(liars)} lying ({spans(liars)})" if liars else "none lying"
    lines = [f"{certificate.rule.name} on {network.name}: {len(network.honest)} honest workers, {who}."]
    placed = certificate.placement
    if placed is not None:
        how = {
            "cut": "they leave the honest workers in pieces, nothing is worse",
            "exhaustive": f"the worst of all {placed.tried} placements",
            "greedy": f"found greedily ({placed.tried} placements tried); others may be worse",
        }[placed.method]
        lines.append(f"No placement was given: the liars are put at {spans(liars)}, {how}.")
    answer = "holds" if certificate.holds else "is not proved"
    lines.append(f"The guarantee asked for ({certificate.guarantee}) {answer}.")
    lines.append(f"RDSA (every honest worker counts the same) is {_verdict(certificate.rdsa)}.")
    lines.append(f"RCA (the honest workers reach consensus) is {_verdict(certificate.rca)}.")
    if not certificate.honest_connected:
        lines.append("The honest workers do not reach each other without a liar in between.")
    if certificate.proof.factor is not None:
        lines += _bearing(certificate)
    searched = certificate.search
    if searched is not None and searched.witness is not None:
        proved = certificate.rho_bound
        top = "nothing is proved" if proved is None else f"proved at most {_number(proved)}"
        lines.append(f"Measured contraction: at least {_number(searched.rho)}, {top}.")
    return lines


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.status}: {verdict.reason}"


def _bearing(certificate: Certificate) -> list[str]:
    """Who can bear how many liars, by h < 1/3: the workers that fail, else the most delicate ones."""
    sums = heaviest(certificate.network, certificate.mixing.form == "equal")
    limited = [worker for worker in certificate.workers if worker.bears < worker.neighbours]
    if not limited:
        return ["Every worker can bear lies from all its neighbours."]
    broken = [worker for worker in limited if worker.f > worker.bears]
    fewest = min(worker.bears for worker in limited)
    groups: dict[tuple[int, int], list[WorkerReport]] = {}
    for worker in broken or [worker for worker in limited if worker.bears == fewest]:
        beyond = min(worker.f, worker.neighbours) if broken else worker.bears + 1
        groups.setdefault((worker.bears, beyond), []).append(worker)
    rows = {worker.worker: row for row, worker in enumerate(certificate.workers)}
    lines = []
    for (bears, beyond), same in sorted(groups.items()):
        who = f"Worker {same[0].worker}" if len(same) == 1 else f"Workers {spans(each.worker for each in same)}"
        total = sums[rows[same[0].worker], beyond]
        lines.append(
            f"{who} can bear {bears} {'liar' if bears == 1 else 'liars'}, not {beyond}: "
            f"lies can weigh {total:.3f} then, which is not below 1/3."
        )
    return lines


def _numbers(certificate: Certificate) -> list[str]:
    limit = rca_limit(certificate.rho_star, certificate.proof.factor)
    gossip = certificate.gossip
    lines = [
        f"W ({certificate.mixing.form}, {certificate.mixing.source}): doubly stochastic "
        f"{_yes(certificate.doubly_stochastic)}, chi^2 {certificate.chi2:.6f}, "
        f"strongly connected {_yes(certificate.strongly_connected)}",
        f"lambda {certificate.rate:.4f}, rho* {certificate.rho_star:.5f}, honest workers connected "
        f"{_yes(certificate.honest_connected)}",
        f"h at most {certificate.h_max:.4f} (needed: < {THIRD:.4f} for a bound, < {limit:.5f} for RCA)",
        f"rho at most {_number(certificate.rho_bound)}"
        + ("" if certificate.search is None else f", at least {_number(certificate.search.rho)} (searched)"),
        f"gossip: mu_2 {gossip.mu_2:.4f}, b {gossip.b:.4f}; 2 rho b < mu_2 for "
        + (", ".join(name for name, holds in gossip.holds.items() if holds) or "no kind of rule"),
    ]
    told = certificate.promise
    if told is not None:
        lines += [
            f"omega {told.omega:.4g}, Delta {told.delta:.4g}; step at most {told.step_limit_1:.4g} (Theorem 1), "
            f"{told.step_limit_2:.4g} (Theorem 2)",
            f"with step {told.step:.4g}: E H^k <= {_number(told.disagreement)}, mean squared gradient <= "
            f"{_number(told.gradient)}, in the limit {_number(told.learning_error)}",
        ]
    return lines


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _number(value: float | None) -> str:
    if value is None:
        return "(not proved)"
    return "unbounded" if math.isinf(value) else f"{value:.4g}"


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def as_dict(certificate: Certificate) -> dict[str, Any]:
    """The certificate as plain values."""
    network, searched, placed = certificate.network, certificate.search, certificate.placement
    return {
        "network": network.name,
        "rule": certificate.rule.name,
        "options": {
            name: value if _is_plain(value) else str(value) for name, value in certificate.rule.options.items()
        },
        "byzantine": network.byzantine.tolist(),
        "placement": None if placed is None else {"method": placed.method, "tried": placed.tried},
        "guarantee": certificate.guarantee,
        "holds": certificate.holds,
        "summary": _words(certificate),
        "rdsa": bool(certificate.rdsa),
        "rca": bool(certificate.rca),
        "verdicts": {"rdsa": asdict(certificate.rdsa), "rca": asdict(certificate.rca)},
        "lambda": _plain(certificate.rate),
        "rho_star": _plain(certificate.rho_star),
        "h": [worker.h for worker in certificate.workers],
        "h_max": certificate.h_max,
        "rho_bound": _plain(certificate.rho_bound),
        "rho_unbounded": certificate.rho_bound is not None and math.isinf(certificate.rho_bound),
        "rho_searched": None if searched is None else _plain(searched.rho),
        "searched_unbounded": searched is not None and math.isinf(searched.rho),
        "chi2": certificate.chi2,
        "mixing": {"form": certificate.mixing.form, "source": certificate.mixing.source},
        "doubly_stochastic": certificate.doubly_stochastic,
        "strongly_connected": certificate.strongly_connected,
        "honest_connected": certificate.honest_connected,
        "perron": None if certificate.perron is None else certificate.perron.tolist(),
        "gossip": asdict(certificate.gossip),
        "promise": None
        if certificate.promise is None
        else {name: _plain(value) for name, value in asdict(certificate.promise).items()},
        "workers": [
            {**asdict(worker), "rho_bound": _plain(worker.rho_bound), "theorem_3": worker.h < THIRD - 1e-12}
            for worker in certificate.workers
        ],
    }


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)

"""The words of a certificate: who is meant, what a proof says, how many liars a worker can tolerate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.theory.contraction import Proof, heaviest
from byzmesh.theory.question import Question
from byzmesh.theory.verdicts import WorkerReport
from byzmesh.types import Floats

NAMED = 40
"""How many nodes, or ranges of them, a sentence lists."""

LEVELS = {
    "bounded": "bounded (no lies move a worker farther than {limit:g} honest spreads)",
    "fair": "fair (bounded, and every honest {counted} counts the same{formal})",
    "agrees": "agrees (disagreement dies out, whatever the liars send)",
}
"""Guarantees in words, weakest first."""


def levels(limit: float, network: Network) -> dict[str, str]:
    """`LEVELS` for this limit, and for workers that count the same or samples that do.

    >>> from byzmesh.networks import network
    >>> levels(1.0, network("chain", n=2, samples=[1, 2]))["fair"]
    'fair (bounded, and every honest sample counts the same)'
    """
    words = (
        {"counted": "worker", "formal": ": RDSA"} if network.samples is None else {"counted": "sample", "formal": ""}
    )
    return {name: meaning.format(limit=limit, **words) for name, meaning in LEVELS.items()}


def spans(ids: Iterable[int]) -> str:
    """Ids as ranges.

    >>> spans([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7, 8'
    """
    runs: list[list[int]] = []
    for node in sorted(ids):
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]  # 7, 8 is no range
    return ", ".join(parts)


def called(network: Network, ids: Iterable[int]) -> str:
    """Nodes by the user's names, or as ranges of numbers; of many, the first ones."""
    chosen = sorted(ids)
    parts = spans(chosen).split(", ") if network.names is None else [network.label(node) for node in chosen]
    return ", ".join(parts) if len(parts) <= NAMED else f"{', '.join(parts[:NAMED])}, ... {len(chosen)} in all"


def about(question: Question, rule: Rule) -> str:
    """A sentence that names the rule, the network and the liars."""
    network = question.network
    start = f"{rule.name} on {network.name}: "
    if question.anywhere:
        f = sorted(set(question.f.tolist()))
        per = f"at most {f[0]}" if len(f) == 1 else f"at most f = {f[0]} to {f[-1]}"
        total = "" if question.total is None else f", at most {question.total} in all"
        weight = "" if question.b is None else f" and of weight {_range(question.b)}"
        return f"{start}{network.n} nodes, any of which may lie, {per}{weight} in the neighbourhood of a worker{total}."
    liars = network.byzantine.tolist()
    return f"{start}{len(network.honest)} honest workers, {len(liars)} lying ({called(network, liars)})."


def _range(b: Floats) -> str:
    low, high = float(b.min()), float(b.max())
    return f"at most {low:.4g}" if low == high else f"at most b = {low:.4g} to {high:.4g}"


def bounds(proof: Proof) -> str:
    """The best proved bound with its reason, then the weaker ones."""
    weaker = "".join(f", {number(other.rho)} by {other.reason}" for other in proof.beside)
    return f"{number(proof.rho)} ({proof.reason}){weaker}"


def tolerance(network: Network, rule: Rule, workers: Sequence[WorkerReport]) -> list[str]:
    """How many liars workers can tolerate: for the workers that fail, otherwise for the weakest ones."""
    declared = rule.contraction
    limited = [worker for worker in workers if worker.bears is not None]
    if declared is None or declared.of_h is None or not limited:
        return []
    sums = heaviest(network, declared.equal)
    limited = [worker for worker in limited if _bears(worker) < worker.neighbours]
    if not limited:
        return ["Every worker can tolerate lies from all its neighbours."]
    broken = [worker for worker in limited if worker.f > _bears(worker)]
    fewest = min(_bears(worker) for worker in limited)
    groups: dict[tuple[int, int], list[WorkerReport]] = {}
    for worker in broken or [worker for worker in limited if _bears(worker) == fewest]:
        beyond = min(worker.f, worker.neighbours) if broken else _bears(worker) + 1
        groups.setdefault((_bears(worker), beyond), []).append(worker)
    rows = {worker.worker: row for row, worker in enumerate(workers)}
    lines = []
    for (bears, beyond), same in sorted(groups.items()):
        names = called(network, (each.worker for each in same))
        who = f"Worker {names}" if len(same) == 1 else f"Workers {names}"
        total = sums[rows[same[0].worker], [beyond]]
        bound = float(declared.of_h(total)[0])
        then = "nothing is proved" if math.isnan(bound) else f"only rho <= {bound:.3g} is proved"
        if beyond > rule.largest_f(same[0].neighbours):
            then = "the rule cannot run"
        lines.append(
            f"{who} can tolerate {max(0, bears)} {'liar' if bears == 1 else 'liars'}, not {beyond}: "
            f"lies could then weigh {total[0]:.3f}, and {then}."
        )
    return lines


def _bears(worker: WorkerReport) -> int:
    return worker.neighbours if worker.bears is None else worker.bears


def yes_or_no(value: bool) -> str:
    """A truth value as a word."""
    return "yes" if value else "no"


def number(value: float | None) -> str:
    """Four digits, "unbounded", or that it is not known (None or NaN).

    >>> number(0.123456), number(float("inf")), number(None)
    ('0.1235', 'unbounded', '(not known)')
    """
    if value is None or math.isnan(value):
        return "(not known)"
    return "unbounded" if math.isinf(value) else f"{value:.4g}"

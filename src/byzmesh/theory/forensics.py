"""Who lied? Conclusions from the record of who cut whom.

The input has one entry per edge: sender, receiver, the number of rounds in which the receiver gave the sender no weight
(`cut`), and the number of rounds. A rule that cuts f neighbours every round cuts honest ones if it does not cut liars,
and where honest data differ as much as lies do, honest workers look worse: the only worker with some class is cut in
most rounds, while liars that stay near the mean are never cut. A ranking would accuse it. So somebody is named only if
the record is clear, with everybody cut nearly always or hardly ever:

    rate of m       = mean cut rate of m over all its receivers, including those that never cut
    named           = {m : rate >= OFTEN}, if all others have rate < SELDOM and the named are fewer than the others
    nobody          if all have rate < SELDOM
    cannot tell     otherwise, and if there are fewer than `LEAST_ROUNDS` rounds

This is a rule of thumb with a measured error rate (`MEASURED`), not a proof: cuts alone cannot distinguish a liar from
an honest worker that is an outlier at all its receivers in all rounds. If the truth is known (in a simulation), the
answer is graded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.types import Floats, Integers

OFTEN, SELDOM = 0.9, 0.05
LEAST_ROUNDS = 20
MEASURED = (
    "on 563 runs that no threshold was chosen on, 145 named somebody; with f exact none of 120 named an honest worker "
    "(95% interval up to 3.1%), with f larger than the number of liars 4 of 25 did; 26% of the liars were named"
)
"""reports/suspects, by a protocol that was fixed before. OFTEN and SELDOM were chosen, the best of five pairs, on the
stores in reports/: there 141 of 493 runs name somebody and 3 of these an honest worker."""

Verdict = Literal["named", "nobody", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Sender:
    """How often a sender was cut, at one receiver or (receiver None) on average over all its receivers."""

    sender: int
    receiver: int | None
    rate: float
    lies: bool | None
    """The truth, None if unknown."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The conclusions from a record of cuts.

    verdict    whether somebody is named, nobody stands out, or the record cannot tell
    named      the senders that are named, by id
    network    every sender over the whole network, by id, not ranked
    worker     the same for each receiver that cut at all
    mistaken   (receiver, sender, rate) of honest edges that were cut, the most often cut first; () without the truth
    precision  fraction of liars among the named; None if nobody is named or the truth is unknown
    recall     fraction of the liars that are named; None without the truth or without liars
    caught     fraction of the messages from liars that were cut; None likewise
    """

    verdict: Verdict
    named: tuple[int, ...]
    network: tuple[Sender, ...]
    worker: dict[int, tuple[Sender, ...]]
    mistaken: tuple[tuple[int, int, float], ...]
    precision: float | None
    recall: float | None
    caught: float | None


def cut_counts(sender: Integers, coefficients: Floats) -> tuple[Integers, Integers]:
    """(cut, heard) (R, K) of one round, to sum over rounds: which neighbours got no weight, and which were present.

    sender is `network.layout.sender` (R, K), coefficients (R, K).

    >>> cut, heard = cut_counts(np.array([[0, 1, 2, -1]]), np.array([[0.5, 0.5, 0.0, 0.0]]))
    >>> cut, heard
    (array([[0, 0, 1, 0]]), array([[0, 1, 1, 0]]))
    """
    there = sender >= 0
    there[:, 0] = False
    return (there & (coefficients == 0.0)).astype(np.int64), there.astype(np.int64)


def find_suspects(
    sender: npt.ArrayLike,
    receiver: npt.ArrayLike,
    cut: npt.ArrayLike,
    rounds: npt.ArrayLike,
    byzantine: Iterable[int] | None = None,
) -> Findings:
    """Who stands out among the senders of E edges; `byzantine` is the truth, if known.

    >>> findings = find_suspects([1, 2, 3, 0, 2, 3], [0, 0, 0, 1, 1, 1], [0, 99, 1, 2, 98, 0], 100, byzantine=[2])
    >>> findings.verdict, findings.named, findings.precision, findings.recall
    ('named', (2,), 1.0, 1.0)
    >>> find_suspects([1, 2, 3], [0, 0, 0], [99, 60, 30], 100).verdict
    'cannot tell'
    """
    source, target = np.asarray(sender, np.int64), np.asarray(receiver, np.int64)
    times = np.broadcast_to(np.asarray(rounds, np.float64), source.shape)
    count = np.asarray(cut, np.float64)
    if not source.shape == target.shape == count.shape or source.ndim != 1:
        raise ConfigError(f"sender, receiver and cut must have one entry per edge, got {source.shape}, {count.shape}")
    if len(times) and (times.min() <= 0.0 or count.min() < 0.0 or (count > times).any()):
        raise ConfigError("cut must be between 0 and rounds, and rounds at least 1, for every edge")
    liars = None if byzantine is None else {int(node) for node in byzantine}
    rate = count / times

    def told(node: int, at: int | None, mean: float) -> Sender:
        return Sender(sender=node, receiver=at, rate=mean, lies=None if liars is None else node in liars)

    worker = {
        node: tuple(
            told(int(source[edge]), node, float(rate[edge]))
            for edge in sorted(np.flatnonzero(target == node), key=lambda edge: int(source[edge]))
        )
        for node in np.unique(target[count > 0.0]).tolist()
    }
    network = []
    for node in np.unique(source).tolist():
        network.append(told(node, None, float(rate[source == node].mean())))
    verdict, named = _verdict(network, times)
    mistaken, caught = _mistaken(source, target, count, times, liars)
    precision = recall = None
    if liars is not None:
        lying = {one.sender for one in network if one.lies}
        precision = len(lying & set(named)) / len(named) if named else None
        recall = len(lying & set(named)) / len(lying) if lying else None
    return Findings(
        verdict=verdict,
        named=named,
        network=tuple(network),
        worker=worker,
        mistaken=mistaken,
        precision=precision,
        recall=recall,
        caught=caught,
    )


def _verdict(network: list[Sender], rounds: Floats) -> tuple[Verdict, tuple[int, ...]]:
    often = tuple(one.sender for one in network if one.rate >= OFTEN)
    seldom = sum(one.rate < SELDOM for one in network)
    if len(rounds) == 0 or rounds.max() < LEAST_ROUNDS:
        return "cannot tell", ()
    if seldom == len(network):
        return "nobody", ()
    if len(often) + seldom == len(network) and len(often) < seldom:
        return "named", often
    return "cannot tell", ()


def _mistaken(
    source: Integers, target: Integers, count: Floats, times: Floats, liars: set[int] | None
) -> tuple[tuple[tuple[int, int, float], ...], float | None]:
    """(honest edges that were cut, fraction of the liars' messages that were cut)."""
    if liars is None:
        return (), None
    lying = np.isin(source, sorted(liars))
    wrong = np.flatnonzero(~lying & ~np.isin(target, sorted(liars)) & (count > 0.0))
    wrong = wrong[np.argsort(-(count[wrong] / times[wrong]), kind="stable")]
    mistaken = tuple((int(target[edge]), int(source[edge]), float(count[edge] / times[edge])) for edge in wrong)
    return mistaken, float(count[lying].sum() / times[lying].sum()) if lying.any() else None

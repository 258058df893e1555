"""Who lied? Reading the record of who was cut by whom.

Input is one entry per edge: sender, receiver, in how many of its rounds the receiver gave the sender no weight (`cut`),
and how many rounds there were. A rule that cuts f neighbours every round also cuts honest ones, so what counts is not
the rate itself but its excess over the receiver's usual rate:

    excess(m -> n)  = cut rate of m at n - mean cut rate of n's neighbours
    suspicion of m  = mean excess over the receivers that cut at all, weighted by rounds

Where the truth is known (simulation) the ranking is graded: precision at B is the share of true liars among the B most
suspected, B being the number of liars.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError
from byzmesh.types import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A sender with its suspicion, at one receiver or (receiver None) over the network."""

    sender: int
    receiver: int | None
    suspicion: float
    rate: float
    lies: bool | None
    """The truth, None where it is not known."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the record shows.

    network    suspects over the whole network, the most suspected first
    worker     the same for each receiver that cut at all
    mistaken   (receiver, sender, rate) of honest edges that were cut, the most often cut first; () without the truth
    precision  share of liars among the most suspected; None without the truth or without liars
    caught     share of the messages from liars that were cut; None likewise
    """

    network: tuple[Suspect, ...]
    worker: dict[int, tuple[Suspect, ...]]
    mistaken: tuple[tuple[int, int, float], ...]
    precision: float | None
    caught: float | None


def cut_counts(sender: Integers, coefficients: Floats) -> tuple[Integers, Integers]:
    """(cut, heard) (R, K) of one round, to be summed over rounds: which neighbours got no weight, which were there.

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
    """Rank the senders of E edges; `byzantine` is the truth, if known.

    >>> findings = find_suspects([1, 2, 0, 2], [0, 0, 1, 1], [1, 9, 2, 8], 10, byzantine=[2])
    >>> findings.network[0].sender, findings.precision, findings.mistaken
    (2, 1.0, ((1, 0, 0.2), (0, 1, 0.1)))
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
    excess = np.zeros(len(rate))
    active = np.zeros(len(rate), bool)
    for node in np.unique(target):
        edges = target == node
        excess[edges] = rate[edges] - rate[edges].mean()
        active[edges] = bool(count[edges].any())

    def truth(node: int) -> bool | None:
        return None if liars is None else node in liars

    worker = {}
    for node in np.unique(target[active]).tolist():
        edges = np.flatnonzero(target == node)
        order = edges[np.lexsort((source[edges], -excess[edges]))]
        worker[node] = tuple(
            Suspect(
                sender=int(source[edge]),
                receiver=node,
                suspicion=float(excess[edge]),
                rate=float(rate[edge]),
                lies=truth(int(source[edge])),
            )
            for edge in order
        )
    overall = []
    for node in np.unique(source).tolist():
        edges = active & (source == node)
        weight = times[edges]
        suspicion = float(np.average(excess[edges], weights=weight)) if edges.any() else 0.0
        mean = float(np.average(rate[edges], weights=weight)) if edges.any() else 0.0
        overall.append(Suspect(sender=node, receiver=None, suspicion=suspicion, rate=mean, lies=truth(node)))
    overall.sort(key=lambda suspect: (-suspect.suspicion, suspect.sender))
    mistaken, precision, caught = _graded(overall, source, target, count, times, liars)
    return Findings(network=tuple(overall), worker=worker, mistaken=mistaken, precision=precision, caught=caught)


def _graded(
    overall: list[Suspect], source: Integers, target: Integers, count: Floats, times: Floats, liars: set[int] | None
) -> tuple[tuple[tuple[int, int, float], ...], float | None, float | None]:
    if liars is None:
        return (), None, None
    lying = np.isin(source, sorted(liars))
    wrong = np.flatnonzero(~lying & ~np.isin(target, sorted(liars)) & (count > 0.0))
    wrong = wrong[np.argsort(-(count[wrong] / times[wrong]), kind="stable")]
    mistaken = tuple((int(target[edge]), int(source[edge]), float(count[edge] / times[edge])) for edge in wrong)
    seen = [suspect for suspect in overall if suspect.lies]
    if not seen:
        return mistaken, None, None
    hits = sum(bool(suspect.lies) for suspect in overall[: len(seen)])
    return mistaken, hits / len(seen), float(count[lying].sum() / times[lying].sum())

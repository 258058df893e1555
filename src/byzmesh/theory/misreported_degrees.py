"""Misreported degrees: what liars gain from them, and weights that do not rely on reports.

Metropolis-Hastings weights need the neighbours' degrees, w_nm = 1 / (1 + max(d_n, d_m)), and a liar may report
anything. Because of the maximum with the worker's own degree, which it counts itself,

    a low report    raises the liar's weight, to at most 1 / (1 + d_n): h_n grows up to f_n / (1 + d_n)
    a high report   lowers the liar's own weight: it silences itself
    honest edges    keep their weights, so W stays doubly stochastic (if a scheme used the largest degree of the network
                    instead, one report of 10^6 would stop all mixing)

Two ways of building W' that limit or ignore reports, for networks and, row by row, for peers:

    bounded   reports are cut to [1, largest] and combined with its own degree as above; a report that is not a number
              counts as `largest`. Liars can only choose their weight within [1 / (1 + largest), 1 / (1 + d_n)]
    fixed     w_nm = 1 / (1 + largest) for an agreed largest degree: no report is read at all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice
from byzmesh.errors import ConfigError
from byzmesh.heaviest import THIRD, below
from byzmesh.networks import Network
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.mixing import chi2, mixing_rate, to_own
from byzmesh.types import Floats


def peer_weights(own_degree: int, reported: npt.ArrayLike, largest: int, way: str = "bounded") -> Floats:
    """(d + 1,) a worker's weights, own first, from the d degrees that its neighbours report.

    >>> peer_weights(3, [1, 10**9, float("nan")], largest=5).round(3)
    array([0.417, 0.25 , 0.167, 0.167])
    >>> peer_weights(3, [1, 10**9, 2], largest=5, way="fixed").round(3)
    array([0.5  , 0.167, 0.167, 0.167])
    """
    told = np.asarray(reported, np.float64)
    if told.shape != (own_degree,):
        raise ConfigError(f"reported must have {own_degree} degrees, one per neighbour, got shape {told.shape}")
    if largest < own_degree:
        raise ConfigError(f"largest must be at least the worker's own degree {own_degree}, got {largest}")
    if choice("way", way, ("bounded", "fixed")) == "fixed":
        degree = np.full(own_degree, float(largest))
    else:
        degree = np.maximum(own_degree, np.clip(np.where(np.isnan(told), largest, told), 1.0, largest))
    weight = 1.0 / (1.0 + degree)
    return np.concatenate([[1.0 - weight.sum()], weight])


def distrusting(network: Network, largest: int | None = None, way: str = "fixed") -> Network:
    """The network with weights that no report can change; `largest` (default: the largest degree) is agreed beforehand.

    >>> from byzmesh.networks import network
    >>> distrusting(network("star", n=4), largest=9).mixing[0]
    array([0.7, 0.1, 0.1, 0.1])
    """
    top = int(network.degree.max()) if largest is None else largest
    return _rebuilt(network, network.degree[network.links.sender], top, way)


def misreported(network: Network, report: float = 0.0, largest: int | None = None) -> Network:
    """The network as honest workers would weigh it if every liar reported the degree `report`.

    largest  the bound on reports; None: there is none, as in plain Metropolis-Hastings weights

    >>> from byzmesh.networks import network
    >>> misreported(network("star", n=4, byzantine=[0]), report=0).mixing[1, 0]
    np.float64(0.5)
    """
    links = network.links
    lie = network.lies[links.sender] & ~network.lies[links.receiver]
    told = np.where(lie, report, network.degree[links.sender])
    top = max(float(network.degree.max()), report) if largest is None else largest
    return _rebuilt(network, told, int(top), "bounded")


def _rebuilt(network: Network, told: Any, largest: int, way: str) -> Network:
    links = network.links
    between, own = np.zeros(len(links.sender)), np.zeros(network.n)
    for worker in range(network.n):
        span = slice(links.start[worker], links.start[worker + 1])
        row = peer_weights(int(links.degree[worker]), told[span], largest, way)
        own[worker], between[span] = row[0], row[1:]
    return network.with_weights(links.matrix(between, own))


@dataclass(frozen=True)
class Effect:
    """Certificate numbers under true and under false degrees: (h_max, lambda, chi^2, workers with h >= 1/3)."""

    true: tuple[float, float, float, int]
    low: tuple[float, float, float, int]
    high: tuple[float, float, float, int]
    fixed: tuple[float, float, float, int]


def effect_of_misreports(network: Network, f: Any = "exact", largest: int | None = None) -> Effect:
    """What changes if all liars report degree 0, or 10^6, and what a fixed largest degree would give.

    >>> from byzmesh.networks import network
    >>> effect = effect_of_misreports(network("paper/octopus"))
    >>> [round(value, 3) for value in effect.true], [round(value, 3) for value in effect.low]
    ([0.143, 0.225, 0.0, 0], [0.143, 0.225, 0.0, 0])
    """

    def numbers(changed: Network) -> tuple[float, float, float, int]:
        h = cut_weight(changed, network.bounds(f))
        matrix = to_own(changed)
        return float(h.max()), mixing_rate(matrix), chi2(matrix), int((~below(h, THIRD)).sum())

    return Effect(
        numbers(distrusting(network, way="bounded")),
        numbers(misreported(network, 0.0)),
        numbers(misreported(network, 1e6)),
        numbers(distrusting(network, largest)),
    )

"""Example 2 by computation: how many liars random Erdos-Renyi graphs tolerate as they grow.

For N honest workers, b liars and every pair linked with probability p, with f exact and Metropolis-Hastings weights,

    theorem-3   h < 1/3 everywhere                          grows like N
    rca         12 h/(1 - 3 h) < lambda/(8 sqrt N)          Example 2: like sqrt(N), but with the constants 12 and 8 the
                                                            first liar is tolerated only from N of about 96^2/p^2
    rca-order   h/(1 - 3 h) < lambda/sqrt N                 the same without the constants: the shape of Example 2
    gossip      2 b < mu_2 (oracle clipping)                grows like N

A graph on 2 N nodes is drawn once per seed; b liars are its nodes N .. N + b - 1, so more liars mean a larger graph of
the same draw, and the largest b is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byzmesh import rng
from byzmesh.checks import choice, fraction
from byzmesh.files import save_figure
from byzmesh.heaviest import THIRD
from byzmesh.networks import Network
from byzmesh.rules.ios import theorem_3
from byzmesh.theory.contraction import cut_weight, rca_limit
from byzmesh.theory.gossip import oracle_contracts
from byzmesh.theory.mixing import STRICT, mixing_rate, rho_star, to_own
from byzmesh.types import Booleans


def _h(network: Network) -> float:
    return float(cut_weight(network, network.lying_neighbours).max())


def _theorem_3(network: Network) -> bool:
    return _h(network) < THIRD - STRICT


def _rca(network: Network) -> bool:
    h, workers = _h(network), len(network.honest)
    if h >= rca_limit(rho_star(1.0, workers)):  # lambda is at most 1: no eigenvalue needed to say no
        return False
    return h < rca_limit(rho_star(mixing_rate(to_own(network)), workers)) - STRICT


def _rca_order(network: Network) -> bool:
    h, root = _h(network), float(np.sqrt(len(network.honest)))
    if h >= THIRD - STRICT or float(theorem_3(np.array([h]))[0]) / 12.0 >= 1.0 / root:
        return False
    return float(theorem_3(np.array([h]))[0]) / 12.0 < mixing_rate(to_own(network)) / root


CONDITIONS: dict[str, Callable[[Network], bool]] = {
    "theorem-3": _theorem_3,
    "rca": _rca,
    "rca-order": _rca_order,
    "gossip": oracle_contracts,
}


@dataclass(frozen=True)
class Borne:
    """The largest numbers of liars, one per seed, that N honest workers tolerate under a condition."""

    workers: int
    condition: str
    liars: tuple[int, ...]


def largest_liars(
    workers: Sequence[int] = (20, 50, 100, 200, 500, 1000, 2000),
    conditions: Sequence[str] = ("theorem-3", "rca", "rca-order"),
    *,
    p: float = 0.7,
    seeds: int = 3,
) -> list[Borne]:
    """The largest b for each N, condition and seed.

    >>> largest_liars([20], ["theorem-3", "rca"], seeds=1)
    [Borne(workers=20, condition='theorem-3', liars=(5,)), Borne(workers=20, condition='rca', liars=(0,))]
    """
    for condition in conditions:
        choice("condition", condition, CONDITIONS)
    fraction("p", p, zero=False)
    borne = []
    for count in workers:
        graphs = [_drawn(count, p, seed) for seed in range(seeds)]
        for condition in conditions:
            holds = CONDITIONS[condition]
            borne.append(Borne(count, condition, tuple(_bisect(links, count, holds) for links in graphs)))
    return borne


def _drawn(count: int, p: float, seed: int) -> Booleans:
    upper = np.triu(rng.generator(seed, rng.TOPOLOGY, count).random((2 * count, 2 * count)) < p, 1)
    links: Booleans = upper | upper.T
    return links


def _bisect(links: Booleans, count: int, holds: Callable[[Network], bool]) -> int:
    low, high = 0, count + 1  # 0 liars are tolerated by Example 1; N + 1 stands for "too many"
    while high - low > 1:
        middle = (low + high) // 2
        size = count + middle
        if middle <= count and holds(
            Network.from_adjacency(links[:size, :size], byzantine=range(count, size), name="erdos-renyi")
        ):
            low = middle
        else:
            high = middle
    return low


def plot_scaling(borne: Sequence[Borne], path: str | Path) -> Path:
    """Draw the largest b against N on logarithmic axes beside sqrt(N), to PNG, SVG or PDF; zeros lie on the axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for condition in dict.fromkeys(item.condition for item in borne):
        items = [item for item in borne if item.condition == condition]
        axes.plot([item.workers for item in items], [np.mean(item.liars) for item in items], "o-", label=condition)
    sizes = sorted({item.workers for item in borne})
    axes.plot(sizes, np.sqrt(sizes), "k--", label="sqrt(N)")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xlabel("honest workers N")
    axes.set_ylabel("largest number of liars")
    axes.legend()
    return save_figure(figure, path, option="path")

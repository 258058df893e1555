"""Who trusted whom, and who is linked to whom: the heatmaps and network pictures of a report.

trust of receiver n in sender m    fraction of the rounds with a message in which n did not cut it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh.networks import Network
from byzmesh.networks.drawing import positions
from byzmesh.store import Store

MOST_NODES = 200
"""Larger networks are left out of a report: their pictures and heatmaps would be unreadable."""


@dataclass(frozen=True)
class Heatmap:
    """Trust per edge: values[r][s] of receiver r in sender s in [0, 1], None where there is no edge."""

    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    liars: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A network to draw: positions in the unit square, links as pairs, who lies."""

    title: str
    places: tuple[tuple[float, float], ...]
    links: tuple[tuple[int, int], ...]
    liars: tuple[int, ...]


def heatmap(store: Store, key: str) -> Heatmap | None:
    """Trust in a run; None if it recorded no cuts (coordinate-wise rules) or never cut anybody."""
    edges = store.edges(key)
    if not len(edges) or not edges[:, 2].any():
        return None
    spec = store.get(key).config["network"]
    senders, receivers = (np.unique(edges[:, column]) for column in (0, 1))
    if len(senders) > MOST_NODES:
        return None
    values = np.full((len(receivers), len(senders)), np.nan)
    row, column = np.searchsorted(receivers, edges[:, 1]), np.searchsorted(senders, edges[:, 0])
    values[row, column] = 1.0 - edges[:, 2] / np.maximum(edges[:, 3], 1)
    return Heatmap(
        tuple(senders.tolist()),
        tuple(receivers.tolist()),
        tuple(spec["byzantine"]),
        tuple(tuple(None if np.isnan(value) else round(value, 4) for value in row) for row in values.tolist()),
    )


def picture(net: Network, title: str) -> Picture | None:
    """A network to draw; None if it is too large to be readable."""
    if net.n > MOST_NODES:
        return None
    spots = positions(net)
    low, high = spots.min(axis=0), spots.max(axis=0)
    scaled = (spots - (low + high) / 2.0) / max(float((high - low).max()), 1e-9) + 0.5
    links = net.links.edges().tolist()
    return Picture(
        title,
        tuple((round(x, 4), round(1.0 - y, 4)) for x, y in scaled.tolist()),
        tuple((one, other) for one, other in links),
        tuple(net.byzantine.tolist()),
    )

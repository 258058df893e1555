"""A network as inline SVG: for notebooks and the documentation. `drawing` makes files.

Colours are those of `drawing`; links have the colour of the text around them, so that both themes work.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from byzmesh.networks.drawing import HONEST, LYING, positions
from byzmesh.types import Floats

if TYPE_CHECKING:
    from byzmesh.networks.graph import Network

MOST_NODES = 200
"""Larger networks have no picture."""


def svg(network: Network, cut: Floats | None = None, width: float = 260.0) -> str:
    """The picture, `width` pixels wide or high; empty for networks that are too large.

    cut  (n, n) fraction of rounds in which the row's worker cut the column's: links fade the more often they are cut
    """
    if network.n > MOST_NODES:
        return ""
    spots = positions(network)
    low, high = spots.min(axis=0), spots.max(axis=0)
    scale = max(float((high - low).max()), 1e-9)
    radius = float(np.clip(0.35 * width / network.n**0.75, 2.5, 9.0))
    margin, inner = radius + 2.0, width - 2.0 * radius - 4.0
    wide, tall = (margin * 2.0 + inner * (high - low) / scale).tolist()
    placed = [(margin + inner * x, tall - margin - inner * y) for x, y in ((spots - low) / scale).tolist()]
    lines = []
    one_way = network.links.back < 0
    arrows = np.stack([network.links.sender[one_way], network.links.receiver[one_way]], axis=1)
    for (a, b), arrow in [(ends, False) for ends in network.links.both_ways().tolist()] + [
        (ends, True) for ends in arrows.tolist()
    ]:
        kept = 1.0 if cut is None else 1.0 - float(cut[b, a] if arrow else max(cut[a, b], cut[b, a]))
        colour = LYING if network.lies[a] or network.lies[b] else "currentColor"
        style = f'stroke="{colour}" stroke-opacity="{0.08 + 0.37 * kept:.2f}"'
        lines.append(f'<path d="{_way(placed[a], placed[b], radius if arrow else 0.0)}" {style} fill="none"/>')
    nodes = []
    for node, (x, y) in enumerate(placed):
        told = f"<title>{escape(network.label(node))}{', lying' if network.lies[node] else ''}</title>"
        if network.lies[node]:
            side = 1.8 * radius
            at = f'x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}"'
            nodes.append(f'<rect class="lies" {at} fill="{LYING}">{told}</rect>')
        else:
            nodes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{HONEST}">{told}</circle>')
    liars = f", {len(network.byzantine)} of them lying" if len(network.byzantine) else ""
    return (
        f'<svg class="network" role="img" aria-label="{escape(network.name)}: {network.n} workers{liars}" '
        f'viewBox="0 0 {wide:.0f} {tall:.0f}" width="{wide:.0f}" height="{tall:.0f}">{"".join(lines + nodes)}</svg>'
    )


def _way(start: tuple[float, float], end: tuple[float, float], rim: float) -> str:
    """A line; with a rim it stops there, at the receiver, with an arrowhead.

    >>> _way((0.0, 0.0), (10.0, 0.0), 0.0), _way((0.0, 0.0), (10.0, 0.0), 2.0)
    ('M0.0,0.0L10.0,0.0', 'M0.0,0.0L8.0,0.0M3.5,-2.5L8.0,0.0L3.5,2.5')
    """
    (x1, y1), (x2, y2) = start, end
    length = max(float(np.hypot(x2 - x1, y2 - y1)), 1e-9)
    u, v = (x2 - x1) / length, (y2 - y1) / length
    x, y = x2 - rim * u, y2 - rim * v
    line = f"M{x1:.1f},{y1:.1f}L{x:.1f},{y:.1f}"
    if not rim:
        return line
    wings = [(x - 4.5 * u + side * v, y - 4.5 * v - side * u) for side in (2.5, -2.5)]
    return f"{line}M{wings[0][0]:.1f},{wings[0][1]:.1f}L{x:.1f},{y:.1f}L{wings[1][0]:.1f},{wings[1][1]:.1f}"


def network_html(network: Network) -> str:
    """The picture beside what it is, for a notebook."""
    degrees = network.degree
    spread = f"{degrees.min()}" if degrees.min() == degrees.max() else f"{degrees.min()} to {degrees.max()}"
    shown = ", ".join(network.label(node) for node in network.byzantine[:12].tolist())
    more = ", ..." if len(network.byzantine) > 12 else ""
    facts = {
        "workers": f"{network.n}, {len(network.honest)} of them honest",
        "lying": f"{shown}{more}" or "nobody",
        "neighbours": spread,
        "links": f"{len(network.links.edges())}{', directed' if network.directed else ''}",
        "weights": network.weights,
    }
    return f"<b>{escape(network.name)}</b><div>{svg(network)}</div>{facts_table(facts)}"


def facts_table(facts: dict[str, str]) -> str:
    """Two columns, words and values, as HTML."""
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(word)}</td><td style="text-align:left">{escape(value)}</td></tr>'
        for word, value in facts.items()
    )
    return f"<table>{rows}</table>"

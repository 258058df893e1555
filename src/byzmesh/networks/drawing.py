"""A network as a picture: honest workers are blue circles, liars red squares, and links to a liar reddish.

Nodes are drawn where the topology says (castles as two circles, a torus as a bent grid). Other graphs are drawn on a
circle if they are dense, where any other layout is a hairball, and otherwise by a spring layout with a fixed seed. Node
and label sizes follow from the smallest distance between two nodes, so that none overlap; nodes much too close are
pushed apart first. The same network gives the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byzmesh.curves import picture
from byzmesh.errors import ConfigError
from byzmesh.files import figure_suffix, save_figure
from byzmesh.networks.positions import circle
from byzmesh.types import Floats

if TYPE_CHECKING:
    from byzmesh.networks.graph import Network


HONEST, LYING = "#2563a8", "#c62828"
HONEST_LINK, LYING_LINK = "#8796a8", "#e3a29b"
DENSE = 0.3
"""Fraction of possible links above which a graph without positions is drawn on a circle."""
MOST_NODES = 2000
"""More nodes are not drawn: they would be smaller than a pixel."""
SMALLEST_LETTERS = 4.0
"""Points; smaller labels are left out."""


def draw(network: Network, path: Path, cut: Floats | None = None) -> Path:
    """Draw to a PNG, SVG or PDF file, by suffix."""
    figure_suffix(path)
    return save_figure(figure_of(network, cut), path)


def figure_of(network: Network, cut: Floats | None = None) -> Any:
    """The picture as a matplotlib figure.

    cut  (n, n) fraction of rounds in which the row's worker cut the column's: links are then redder and wider the more
         often one end cut the other, instead of coloured by who lies
    """
    if network.n > MOST_NODES:
        raise ConfigError(
            f"a picture shows at most {MOST_NODES} nodes, network {network.name} has {network.n}; draw a smaller one "
            "of its kind, or save it as .graphml for a program that draws large graphs"
        )
    import matplotlib
    from matplotlib.collections import LineCollection

    spots, width, height = _scaled(_apart(positions(network)), network.n)
    size = _node_size(spots)
    figure = picture(width, height + 0.5)
    axes = figure.add_axes((0.0, 0.5 / (height + 0.5), 1.0, height / (height + 0.5)))
    axes.set_axis_off()
    axes.set_xlim(0.0, width)
    axes.set_ylim(0.0, height)
    lies = network.lies
    ends = network.links.both_ways()
    touches = lies[ends].any(axis=1)
    thin = 1.1 if len(ends) < 500 else 0.5
    if cut is None:
        colours: Any = np.where(touches, LYING_LINK, HONEST_LINK).tolist()
        widths: Any = thin
    else:
        rate = np.maximum(cut, cut.T)[ends[:, 0], ends[:, 1]]
        colours, widths = matplotlib.colormaps["YlOrRd"](0.15 + 0.85 * rate), thin * (0.6 + 2.4 * rate)
    axes.add_collection(LineCollection(list(spots[ends]), colors=colours, linewidths=widths, zorder=1))
    if network.directed:
        _arrows(axes, network, spots, size, cut)
    for chosen, colour, marker, share, label in (
        (~lies, HONEST, "o", 1.0, "honest"),
        (lies, LYING, "s", 0.85, "lying"),
    ):
        if chosen.any():
            marks: dict[str, Any] = {"s": (share * size) ** 2, "c": colour, "marker": marker, "label": label}
            axes.scatter(spots[chosen, 0], spots[chosen, 1], **marks, edgecolors="white", linewidths=0.8, zorder=2)
    letters = min(13.0, size * (0.62 if network.n <= 10 else 0.52 if network.n <= 100 else 0.42))
    if letters >= SMALLEST_LETTERS:
        for node, (x, y) in enumerate(spots):
            axes.text(x, y, str(node), color="white", fontsize=letters, ha="center", va="center_baseline", zorder=3)
            if network.names is not None:
                below = y - size / 144.0 - 0.02  # points of the marker's radius in inches
                axes.text(x, below, network.label(node), fontsize=0.8 * letters, ha="center", va="top", zorder=3)
    title = f"{network.name}: {len(network.honest)} honest, {len(network.byzantine)} lying"
    if cut is not None:
        title += "; the redder a link, the more often cut"
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="lower center", ncols=2, frameon=False, title=title)
    for handle in legend.legend_handles:
        handle.set_sizes([70.0])
    return figure


def _arrows(axes: Any, network: Network, spots: Floats, size: float, cut: Floats | None) -> None:
    """Links that go one way, from the sender to the rim of its receiver."""
    import matplotlib

    links = network.links
    once = links.back < 0
    receiver, sender = links.receiver[once], links.sender[once]
    reddish = np.where(network.lies[receiver] | network.lies[sender], LYING_LINK, HONEST_LINK)
    colours: Any = reddish.tolist()
    if cut is not None:
        colours = matplotlib.colormaps["YlOrRd"](0.15 + 0.85 * cut[receiver, sender])
    along = spots[receiver] - spots[sender]
    length = np.maximum(np.hypot(*along.T), 1e-9)[:, None]
    along = along * np.maximum(1.0 - size / 144.0 / length, 0.3)
    style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.0022, "headwidth": 6}
    axes.quiver(*spots[sender].T, *along.T, color=colours, **style, zorder=1)


def positions(network: Network) -> Floats:
    """(n, 2) positions of the nodes, in any unit."""
    if network.positions is not None:
        return network.positions
    if len(network.links.sender) >= DENSE * network.n * (network.n - 1):
        return np.asarray(circle(network.n))
    import networkx

    graph: networkx.Graph[int] = networkx.empty_graph(network.n)
    graph.add_edges_from(network.links.edges().tolist())
    pulled = networkx.spring_layout(graph, seed=0, iterations=200 if network.n <= 200 else 50)
    return np.asarray([pulled[node] for node in range(network.n)], np.float64)


def _apart(spots: Floats) -> Floats:
    """Positions with close pairs pushed away from each other, for networks small enough to read."""
    n = len(spots)
    if not 2 <= n <= 300:
        return spots
    least = float(np.ptp(spots, axis=0).max()) * min(0.055, 1.9 / n)
    for _ in range(200):
        gap = spots[:, None, :] - spots[None, :, :]
        distance = np.hypot(gap[..., 0], gap[..., 1]) + np.eye(n) * 1e9
        short = np.maximum(least - distance, 0.0)
        if short.max() <= 1e-3 * least:
            break
        spots = spots + 0.5 * (gap * (short / np.maximum(distance, 1e-9))[..., None]).sum(axis=1)
    return spots


def _scaled(spots: Floats, n: int) -> tuple[Floats, float, float]:
    """Positions in inches inside a margin, and the width and height of the picture."""
    margin = 0.45
    spread = np.ptp(spots, axis=0)
    longest = max(float(spread.max()), 1e-9)
    inner = min(5.5 + 0.03 * n, 14.0)
    scale = inner / longest
    width, height = (max(float(length) * scale, 0.6) + 2 * margin for length in spread)
    width = max(width, 3.2)
    middle = (spots.max(axis=0) + spots.min(axis=0)) / 2.0
    return (spots - middle) * scale + np.array([width / 2.0, height / 2.0]), width, height


def _node_size(spots: Floats) -> float:
    """Diameter in points: three quarters of the smallest distance between two nodes, at most 26."""
    if len(spots) < 2:
        return 26.0
    gap = spots[:, None, :] - spots[None, :, :]
    distance = np.hypot(gap[..., 0], gap[..., 1]) + np.eye(len(spots)) * 1e9
    return float(np.clip(0.75 * 72.0 * distance.min(), 2.0, 26.0))

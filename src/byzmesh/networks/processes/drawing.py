"""Rounds of a changing network as small multiples: one small picture per round.

Honest workers are blue circles, liars red squares, sleepers hollow. A link that goes both ways is a line, a message
that goes one way an arrow to its receiver; what is late is dotted. Workers stay where they are from picture to picture,
unless the process moves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.files import figure_suffix, save_figure
from byzmesh.networks.drawing import HONEST, HONEST_LINK, LYING, LYING_LINK, positions
from byzmesh.networks.graph import Network
from byzmesh.networks.processes.base import Meeting, Meetings
from byzmesh.types import Floats

MOST_NODES, MOST_ROUNDS, COLUMNS = 200, 60, 5
_PANEL = 1.75  # inches


def draw_rounds(network: Network, meetings: Meetings, rounds: Sequence[int], path: Path) -> Path:
    """Draw these rounds to a PNG, SVG or PDF file, by suffix."""
    figure_suffix(path)
    if network.n > MOST_NODES or not 0 < len(rounds) <= MOST_ROUNDS:
        raise ConfigError(
            f"a picture of rounds shows at most {MOST_NODES} nodes and 1 to {MOST_ROUNDS} rounds, "
            f"got {network.n} nodes and {len(rounds)} rounds; draw fewer"
        )
    from matplotlib.figure import Figure

    still = _square(positions(network))
    flat = 1.0 if meetings.places(rounds[0]) is not None else (float(np.ptp(still[:, 1])) + 0.16) / 1.16
    columns = min(COLUMNS, len(rounds))
    lines = -(-len(rounds) // columns)
    tall = (_PANEL * flat + 0.2) * lines + 0.25
    figure = Figure(figsize=(_PANEL * columns, tall))
    rest = {"left": 0.01, "right": 0.99, "wspace": 0.04, "hspace": 0.24 / (_PANEL * flat)}
    figure.subplots_adjust(bottom=0.25 / tall, top=1.0 - 0.2 / tall, **rest)
    for place, number in enumerate(rounds):
        axes = figure.add_subplot(lines, columns, place + 1)
        moved = meetings.places(number)
        _panel(axes, network, meetings.at(number), still if moved is None else moved)
        axes.set_ylim(0.5 - 0.58 * flat, 0.5 + 0.58 * flat)
        axes.set_title(f"round {number}", fontsize=8, pad=2)
    named = ", ".join(one.name for one in meetings.processes) or "static"
    told = f"{network.name} with {named}: {len(network.honest)} honest (blue), {len(network.byzantine)} lying (red)"
    figure.text(0.5, 0.01, told, ha="center", va="bottom", fontsize=8)
    return save_figure(figure, path)


def _panel(axes: Any, network: Network, meeting: Meeting, spots: Floats) -> None:
    from matplotlib.collections import LineCollection

    links, lies = meeting.links, network.lies
    size = float(np.clip(60.0 / np.sqrt(network.n), 3.0, 11.0))
    thin = 0.9 if len(links.sender) <= 150 else 0.4
    late = np.zeros(len(links.sender), bool) if meeting.age is None else meeting.age > 0
    both = (links.back >= 0) & ~late & ~late[links.back]
    ends = spots[np.stack([links.receiver, links.sender], axis=1)]
    reddish = np.where(lies[links.receiver] | lies[links.sender], LYING_LINK, HONEST_LINK)
    once = both & (links.receiver < links.sender)
    axes.add_collection(LineCollection(list(ends[once]), colors=reddish[once].tolist(), linewidths=thin, zorder=1))
    axes.add_collection(
        LineCollection(list(ends[late]), colors=reddish[late].tolist(), linewidths=thin, linestyles=":", zorder=1)
    )
    arrows = ~both & ~late
    if arrows.any():
        start, along = ends[arrows, 1], ends[arrows, 0] - ends[arrows, 1]
        length = np.maximum(np.hypot(*along.T), 1e-9)[:, None]
        along = along * np.maximum(1.0 - 0.01 * size / length, 0.3)  # end at the rim of the node
        style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "headwidth": 5, "headlength": 6}
        width = 0.006 if thin > 0.5 else 0.003
        axes.quiver(*start.T, *along.T, color=reddish[arrows].tolist(), width=width, **style, zorder=1)
    for chosen, colour, marker in ((~lies, HONEST, "o"), (lies, LYING, "s")):
        up, down = chosen & meeting.active, chosen & ~meeting.active
        marks: dict[str, Any] = {"marker": marker, "zorder": 2, "linewidths": 0.8}
        axes.scatter(*spots[up].T, s=size**2, c=colour, edgecolors="white", **marks)
        axes.scatter(*spots[down].T, s=size**2, facecolors="white", edgecolors=colour, **marks)
    axes.set_xlim(-0.08, 1.08)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#d5dbe3")


def _square(spots: Floats) -> Floats:
    """Positions scaled into the unit square."""
    low, spread = spots.min(axis=0), np.ptp(spots, axis=0)
    scaled: Floats = (spots - low - spread / 2.0) / max(float(spread.max()), 1e-9) + 0.5
    return scaled

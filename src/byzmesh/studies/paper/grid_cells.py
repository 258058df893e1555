"""Cells of the reproduction's tables: a value over the seeds, the published one, the difference and its colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.reports.text_table import Grid, GridCell
from byzmesh.studies.paper.agreement import COLLAPSED, gap_tone, tone
from byzmesh.studies.paper.published import Published, beside
from byzmesh.studies.readings import Reading

BESIDE_PUBLISHED = {
    "same": "within 0.5 points of the published value",
    "near": "within 1",
    "above": "up to 5 higher",
    "far-above": "more than 5 higher",
    "below": "up to 5 lower",
    "far-below": "more than 5 lower",
    "collapsed": "both below 60%",
    "trouble": "diverged, failed or not run",
}
BESIDE_EXACT = {
    **{word: text for word, text in BESIDE_PUBLISHED.items() if word != "collapsed"},
    "same": "within 0.5 points of the run with the exact f",
    "infeasible": "the rule refuses this f for some worker",
}
BELOW = {"collapsed": "below 60%", "trouble": BESIDE_PUBLISHED["trouble"]}
ERRORS = {"same": "agrees", "far-above": "larger than published", "far-below": "smaller than published"}


def neutral(grid: Grid) -> Grid:
    """A table of a short run without colours that compare it with published values: it is not meant to reach them."""
    if grid.legend not in (BESIDE_PUBLISHED, ERRORS):
        return grid
    rows = tuple(
        (label, tuple(cell if cell.tone in KEPT else replace(cell, tone="") for cell in cells))
        for label, cells in grid.rows
    )
    return replace(grid, rows=rows, legend={tone: text for tone, text in grid.legend.items() if tone in KEPT})


KEPT = ("trouble", "infeasible")
"""Tones that say how a run ended, not how near to the published value it is."""


def accuracy_cell(group: Sequence[Reading]) -> GridCell:
    """Accuracy over the seeds, beside the published one."""
    theirs = _published(group)
    values = [reading.accuracy for reading in group if not math.isnan(reading.accuracy)]
    if not values:
        return cell_without_value(group, f"pub. {theirs.accuracy:.2f}")
    ours = float(np.mean(values))
    gap = round(ours - theirs.accuracy, 4)
    tip = (
        f"{group[0].rule}, {group[0].attack}\n"
        f"published {theirs.accuracy:.2f}%, ours {spread(values)}% ({signed(gap)})\n"
        f"CE published {theirs.consensus_error}, ours {group[0].consensus_error:.1e}; H {group[0].disagreement:.1e}\n"
        f"{group[0].rounds:,} rounds, {len(values)} seed{'s' if len(values) > 1 else ''}"
    )
    detail = f"pub. {theirs.accuracy:.2f}, {signed(gap)}"
    return GridCell(spread(values), detail, tip=tip, value=ours, tone=tone(theirs.accuracy, ours))


def error_cell(group: Sequence[Reading]) -> GridCell:
    """CE of the first seed, beside the published one."""
    theirs = _published(group).consensus_error
    ours = group[0].consensus_error
    if math.isnan(ours):
        return cell_without_value(group, f"pub. {theirs}")
    off = "far-above" if ours > theirs.value else "far-below"
    tip = f"{group[0].rule}, {group[0].attack}\nCE published {theirs}, ours {ours:.2e}\nH {group[0].disagreement:.2e}"
    detail = f"pub. {theirs}, H {group[0].disagreement:.0e}"
    return GridCell(f"{ours:.0e}", detail, tip=tip, value=ours, tone="same" if theirs.agrees(ours) else off)


def _published(group: Sequence[Reading]) -> Published:
    first = group[0]
    theirs = beside(*first.place, first.variant)
    if theirs is None:
        raise ConfigError(f"nothing is published for {', '.join((*first.place, first.variant))}")
    return theirs


def cell_without_value(group: Sequence[Reading], detail: str = "") -> GridCell:
    """Why there is no value: infeasible, failed, diverged or not yet run."""
    first = group[0]
    words = {"planned": "to run", "interrupted": "to run"}
    if first.infeasible:
        return GridCell("infeasible", detail, tip=first.failure, tone="infeasible")
    return GridCell(words.get(first.status, first.status), detail, tip=first.failure or first.status, tone="trouble")


def signed(gap: float) -> str:
    """A difference with its sign.

    >>> signed(0.5), signed(-0.126)
    ('+0.50', '−0.13')
    """
    return f"{gap:+.2f}".replace("-", "−")


def spread(values: Sequence[float]) -> str:
    """Mean, with the standard deviation if there are several.

    >>> spread([91.7]), spread([90.0, 92.0])
    ('91.70', '91.00 ± 1.41')
    """
    mean = f"{float(np.mean(values)):.2f}"
    return f"{mean} ± {float(np.std(values, ddof=1)):.2f}" if len(values) > 1 else mean


def value_cell(group: Sequence[Reading], compared: Sequence[Reading] | None) -> GridCell:
    """Accuracy over the seeds, coloured by the difference from the runs that it is `compared` with, if any."""
    values = [reading.accuracy for reading in group if not math.isnan(reading.accuracy)]
    if not values:
        return cell_without_value(group)
    mean = float(np.mean(values))
    first = group[0]
    tip = f"{first.rule}, {first.attack}, {first.variant}\nCE {first.consensus_error:.1e}, H {first.disagreement:.1e}"
    known = [reading.accuracy for reading in compared or () if not math.isnan(reading.accuracy)]
    if not known:
        collapsed = compared is None and mean < COLLAPSED
        return GridCell(spread(values), "", tip=tip, value=mean, tone="collapsed" if collapsed else "")
    gap = mean - float(np.mean(known))
    detail = signed(gap) if compared is not group else ""
    return GridCell(spread(values), detail, tip=tip, value=mean, tone=gap_tone(gap))


def cell_with_error(group: Sequence[Reading]) -> GridCell:
    """Accuracy, with CE in small print."""
    error = group[0].consensus_error
    return replace(value_cell(group, None), detail="" if math.isnan(error) else f"CE {error:.0e}")

"""The tables of the reproduction: Table I computed, Tables II to VI beside the published cells, and our own ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.networks import network
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.studies.paper.agreement import COLLAPSED, gap_tone, is_apart, tone
from byzmesh.studies.paper.published import CAPTIONS, published
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

Cells = dict[tuple[str, str], list[Reading]]


def accuracy_grid(table: str, readings: Iterable[Reading]) -> Grid:
    """Accuracy of one of Tables II to VI: ours, and below it the published value and the difference."""
    note = "In small print the published value and ours minus published, in percentage points."
    return _table(table, readings, _accuracy, f"{CAPTIONS[table]}: accuracy (%)", "", note, BESIDE_PUBLISHED)


def error_grid(table: str, readings: Iterable[Reading]) -> Grid:
    """CE of one of Tables II to VI: ours, and below it the published value and H as the text defines it."""
    note = "CE is the norm of the vector of per-coordinate variances (the published column), H their sum."
    return _table(table, readings, _error, f"{CAPTIONS[table]}: consensus error", "-ce", note, ERRORS)


def _table(
    table: str,
    readings: Iterable[Reading],
    make: Callable[..., GridCell],
    title: str,
    ending: str,
    note: str,
    legend: Any,
) -> Grid:
    cells: Cells = {}
    for reading in readings:
        cells.setdefault((reading.rule, reading.attack), []).append(reading)
    rules, attacks = (tuple(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    if any(is_apart(table, rule) for rule in rules):
        note += " † not comparable number by number: SimRew's published runs knew who lied; in some runs"
        note += " of non-iid DRSA the accuracy moves by points from one evaluation to the next."
    rows = tuple(
        (
            rule + (" †" if is_apart(table, rule) else ""),
            tuple(make(cells[rule, attack]) if (rule, attack) in cells else EMPTY for attack in attacks),
        )
        for rule in rules
    )
    return Grid(name=table + ending, title=title, corner="rule", columns=attacks, rows=rows, note=note, legend=legend)


def _accuracy(group: Sequence[Reading]) -> GridCell:
    theirs = published()[group[0].place]
    values = [reading.accuracy for reading in group if not math.isnan(reading.accuracy)]
    if not values:
        return _nothing(group, f"pub. {theirs.accuracy:.2f}")
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


def _error(group: Sequence[Reading]) -> GridCell:
    theirs = published()[group[0].place].consensus_error
    ours = group[0].consensus_error
    if math.isnan(ours):
        return _nothing(group, f"pub. {theirs}")
    off = "far-above" if ours > theirs.value else "far-below"
    tip = f"{group[0].rule}, {group[0].attack}\nCE published {theirs}, ours {ours:.2e}\nH {group[0].disagreement:.2e}"
    detail = f"pub. {theirs}, H {group[0].disagreement:.0e}"
    return GridCell(f"{ours:.0e}", detail, tip=tip, value=ours, tone="same" if theirs.agrees(ours) else off)


def _nothing(group: Sequence[Reading], detail: str = "") -> GridCell:
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


def figure_4_grid(readings: Sequence[Reading]) -> Grid:
    """Accuracy of IOS by number of liars and attack."""
    cells = _by(readings, lambda reading: (reading.variant, reading.attack))
    return _plain("figure-4", "Figure 4: IOS, 20 honest workers, non-iid: accuracy (%)", "liars", cells)


def misjudged_grids(readings: Sequence[Reading]) -> list[Grid]:
    """One table per graph: rule and attack by f, coloured by the difference from the exact f."""
    grids = []
    graphs = dict.fromkeys(reading.variant.split(", ")[0] for reading in readings)
    for graph in graphs:
        chosen = [reading for reading in readings if reading.variant.split(", ")[0] == graph]
        cells = _by(chosen, lambda reading: (f"{reading.rule}, {reading.attack}", reading.variant.split(", ")[1]))
        exact = {row: group for (row, column), group in cells.items() if column == "exact"}
        true = network(f"paper/{graph}").lying_neighbours
        workers = " and ".join(f"{int((true == count).sum())} have {count}" for count in sorted(set(true.tolist())))
        note = (
            f"Lying neighbours: of {len(true)} honest workers {workers}. f - 1, f + 1: every worker's f is one below "
            f"(at least 0) or above its own number; max: {true.max()} for all; neither is above what the rule allows "
            "for a worker's number of neighbours. In small print the difference from the exact f, in points."
        )
        grids.append(
            _plain(f"misjudged-f-{graph}", f"f misjudged on {graph}: accuracy (%)", "rule, attack", cells, exact, note)
        )
    return grids


def _by(readings: Iterable[Reading], place: Callable[[Reading], tuple[str, str]]) -> Cells:
    cells: Cells = {}
    for reading in readings:
        cells.setdefault(place(reading), []).append(reading)
    return cells


def _plain(
    name: str, title: str, corner: str, cells: Cells, beside: dict[str, list[Reading]] | None = None, note: str = ""
) -> Grid:
    labels, columns = (tuple(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    rows = tuple(
        (
            row,
            tuple(
                _value(cells[row, column], (beside or {}).get(row)) if (row, column) in cells else EMPTY
                for column in columns
            ),
        )
        for row in labels
    )
    return Grid(
        name=name,
        title=title,
        corner=corner,
        columns=columns,
        rows=rows,
        note=note,
        legend=BELOW if beside is None else BESIDE_EXACT,
    )


def _value(group: Sequence[Reading], beside: Sequence[Reading] | None) -> GridCell:
    values = [reading.accuracy for reading in group if not math.isnan(reading.accuracy)]
    if not values:
        return _nothing(group)
    mean = float(np.mean(values))
    first = group[0]
    tip = f"{first.rule}, {first.attack}, {first.variant}\nCE {first.consensus_error:.1e}, H {first.disagreement:.1e}"
    known = [reading.accuracy for reading in beside or () if not math.isnan(reading.accuracy)]
    if not known:
        collapsed = beside is None and mean < COLLAPSED
        return GridCell(spread(values), "", tip=tip, value=mean, tone="collapsed" if collapsed else "")
    gap = mean - float(np.mean(known))
    detail = signed(gap) if beside is not group else ""
    return GridCell(spread(values), detail, tip=tip, value=mean, tone=gap_tone(gap))


def claims_grid(readings: Sequence[Reading]) -> Grid:
    """The text's definition beside the one that was run and the published number."""
    lines: dict[str, dict[str, list[Reading]]] = {}
    for reading in readings:
        name, way = reading.variant.split(", ")
        label = ", ".join(dict.fromkeys((name, reading.rule, reading.attack)))
        lines.setdefault(label, {}).setdefault(way, []).append(reading)
    rows = []
    for label, ways in lines.items():
        first = ways["as run"][0]
        theirs = published()["table-3", first.rule, first.attack].accuracy
        shown = [_with_error(ways[way]) if way in ways else EMPTY for way in ("text", "as run")]
        rows.append((label, (*shown, GridCell(f"{theirs:.2f}", value=theirs))))
    columns = ("as the text says", "as run", "published")
    note = "Two-castle graph, non-iid; CE in small print. Diverged: the models left the range of numbers."
    return Grid(
        name="claims",
        title="Text against runs: accuracy (%)",
        corner="definition",
        columns=columns,
        rows=tuple(rows),
        note=note,
        legend=BELOW,
    )


def _with_error(group: Sequence[Reading]) -> GridCell:
    error = group[0].consensus_error
    return replace(_value(group, None), detail="" if math.isnan(error) else f"CE {error:.0e}")


def figure_1_grid(readings: Sequence[Reading]) -> Grid:
    """Where the curves of Figure 1 end, beside Table VI."""
    rows = []
    for group in _by(readings, lambda reading: (reading.rule, reading.attack)).values():
        beside = [replace(reading, target="table-6") for reading in group]
        ends = [reading.disagreement for reading in group if not math.isnan(reading.disagreement)]
        rows.append((group[0].rule, (_accuracy(beside), _error(beside), GridCell(f"{ends[0]:.1e}" if ends else ""))))
    columns = ("accuracy (%)", "CE", "disagreement H")
    note = "In small print the published value of Table VI."
    return Grid(
        name="figure-1",
        title="Figure 1: where the curves end",
        corner="rule",
        columns=columns,
        rows=tuple(rows),
        note=note,
        legend=BESIDE_PUBLISHED,
    )


def examples_grid(readings: Sequence[Reading]) -> Grid:
    """Where the worked examples of Section IV end."""
    rows = tuple(
        (
            f"{reading.variant}: {reading.rule}",
            (
                GridCell(f"{reading.disagreement:.3g}", value=reading.disagreement),
                GridCell(f"{reading.loss:.4g}", value=reading.loss),
            )
            if not math.isnan(reading.loss)
            else (_nothing([reading]), EMPTY),
        )
        for reading in readings
    )
    return Grid(
        name="examples",
        title="Worked examples of Section IV",
        corner="example",
        columns=("disagreement H", "loss"),
        rows=rows,
    )


def table_1_grid(rows: Sequence[Any]) -> Grid:
    """Table I from the rows of `byzmesh.studies.paper.table1.table_1`: searched rho per fraction of liars, verdicts."""
    columns = ("published rho", *(f"mu = {share:.3f}" for share in rows[0].share), "RCA", "RDSA")
    body = tuple(
        (
            row.rule,
            (
                GridCell(row.published.order),
                *(_rho(*values) for values in zip(row.rho, row.rho_star, row.order)),
                _decided(row.rca, row.published.rca),
                _decided(row.rdsa, row.published.rdsa),
            ),
        )
        for row in rows
    )
    note = (
        "rho: the largest ratio found by search on a complete graph with a share mu of liars, a lower bound. RCA and "
    )
    note += "RDSA: decided here, with the paper's mark below."
    legend = {"same": "as published", "far-below": "refuted although the paper says yes", "near": "not decided"}
    return Grid(
        name="table-1",
        title="Table I: contraction constants",
        corner="rule",
        columns=columns,
        rows=body,
        note=note,
        legend=legend,
    )


def table_1_reasons(rows: Sequence[Any]) -> Grid:
    """The reason for each verdict of Table I."""
    body = tuple((row.rule, (GridCell(row.rca.reason), GridCell(row.rdsa.reason))) for row in rows)
    return Grid(name="table-1-reasons", title="Table I: reasons", corner="rule", columns=("RCA", "RDSA"), rows=body)


def _rho(rho: float, star: float, order: float) -> GridCell:
    text = "unbounded" if math.isinf(rho) else f"{rho:.3f}"
    tip = f"searched rho {text}\nrho* = lambda / (8 sqrt N) = {star:.4f}\npublished order at this share: {order:.3f}"
    return GridCell(text, tip=tip, value=rho if math.isfinite(rho) else math.nan)


def _decided(verdict: Any, theirs: bool) -> GridCell:
    ours = {"proved": True, "refuted": False}.get(verdict.status)
    tone_word = "near" if ours is None else "same" if ours == theirs else "far-below"
    return GridCell(verdict.status, f"pub. {'yes' if theirs else 'no'}", tip=verdict.reason, tone=tone_word)
